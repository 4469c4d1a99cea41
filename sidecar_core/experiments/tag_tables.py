"""Results of `leak`, `judge` and `cost` as text for a terminal."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.tables import bounds, columns, percent, signed
from sidecar_core.report import shown

MOST_TAGS = 15


def leak_text(result: dict[str, Any]) -> str:
    """Conditions, differences, and for one article the tags that came most often."""
    watch = result["watch"]
    rows = [["condition", "samples", "leaks", "rate", "95 %", "only in document", "in neither"]]
    for name, found in result["conditions"].items():
        rows.append(
            [
                name,
                str(found["samples"]),
                str(found["leaks"]),
                percent(found["rate"], ""),
                bounds(found["ci95"], ".3f"),
                f"{found['tags_only_in_document']} of {found['tags']} tags",
                str(found["tags_in_neither"]),
            ]
        )
        if watch:
            rows[-1].append(str(found["watched"]))
    if watch:
        rows[0].append(f"“{watch}”")
    lines = [_models(result), "", columns(rows), ""]
    for pair, d in result["differences"].items():
        p = f", p = {d['p_value']:.3g}" if "p_value" in d else ""
        lines.append(f"{pair}: {signed(d['difference'])} {bounds(d['ci95'], '+.3f')}{p}")
    if "summary" in result:
        lines = [str(result["summary"]), "", *lines, "", *_tags(result)]
    else:
        lines += ["", f"{result['documents']} articles", *_skipped(result)]
    return "\n".join(lines)


def _tags(result: dict[str, Any]) -> list[str]:
    names = list(result["conditions"])
    rows = [["tag", "stands in", *names]]
    for entry in result["tags"][:MOST_TAGS]:
        place = {"document": "DOCUMENT ONLY"}.get(entry["place"], entry["place"])
        rows.append([entry["tag"], place, *(str(entry["samples"][name]) for name in names)])
    more = len(result["tags"]) - MOST_TAGS
    return [columns(rows), *([f"and {more} more"] if more > 0 else [])]


def judge_text(result: dict[str, Any]) -> str:
    """The verdicts' sum, the judge's bias, and what rules say."""
    bias, published = result["position_bias"], result["published"]
    rows = [["mean of a list", "sidecar", "standalone"]]
    for name, value in result["rules"]["sidecar"].items():
        other = result["rules"]["standalone"][name]
        rows.append([name.replace("_", " "), shown(value, 2), shown(other, 2)])
    return "\n".join(
        [
            f"{_models(result)}; judge: {result['judge']}",
            "",
            f"{result['comparisons']} comparisons: {result['ties']} ties "
            f"({result['identical_lists']} of identical lists), the sidecar wins "
            f"{result['sidecar_wins']}, the standalone {result['standalone_wins']}; "
            f"sign test p = {result['p_value']:.3g}",
            f"published: {published['ties']} ties of {published['comparisons']}, the rest "
            f"{published['decided'][0]} to {published['decided'][1]}",
            f"the judge's answers: {bias['first']} for the first list, {bias['second']} for the "
            f"second, {bias['tie']} ties (p of no bias {bias['p_value']:.3g}); both orders agreed "
            f"in {percent(bias['agreed'], '')}",
            f"mean overlap of the lists: {percent(result['overlap'], '')}",
            "",
            columns(rows),
            *_skipped(result),
            "",
            f"Every verdict is in {result['verdicts']}.",
        ]
    )


def cost_text(result: dict[str, Any]) -> str:
    """The table, where masking pays, what is left out, and what was measured."""
    tagger, device, tokens = result["tagger"], result["device"], result["tokens"]
    rows = [["batch", "GB a step", "masked", "speed-up", "sidecar", "with document", "standalone"]]
    for row in result["rows"]:
        usd = row["usd_per_million"]
        rows.append(
            [
                str(row["batch"]),
                f"{row['full_bytes'] / 1e9:.2f}",
                f"{row['masked_bytes'] / 1e9:.2f}",
                f"{row['speedup_percent']:.0f} %",
                *(f"{usd[k]:.2f}" for k in ("sidecar", "sidecar_with_document", "standalone")),
            ]
        )
    pays = result["pays_from_batch"]
    lines = [
        f"{tagger['name']}, {tagger['precision']}: {tagger['weights_bytes'] / 1e9:.2f} GB of "
        f"weights, {tagger['cache_bytes_per_token']:,.0f} bytes of cache per token",
        f"{device['name']}: {device['bandwidth'] / 1e9:,.0f} GB/s, {device['rent']:.2f} USD an "
        f"hour ({device['source']})",
        f"{tokens['full']} cached tokens with the document, {tokens['masked']} without; the last "
        "three columns are USD for a million tag lists",
        "",
        columns(rows),
        "",
        f"Masking saves {result['worth']:.0%} of a step's time "
        + (f"from a batch of {pays} on." if pays else "at no batch."),
        "Left out:",
        *(f"- {line}" for line in result["leaves_out"]),
    ]
    return "\n".join(lines + (_measured(result["measured"]) if "measured" in result else []))


def _measured(measured: dict[str, Any]) -> list[str]:
    rows = [["batch", "ms a step", "masked", "speed-up", "modelled"]]
    for row in measured["rows"]:
        rows.append(
            [
                str(row["batch"]),
                f"{1000 * row['full_seconds']:.1f}",
                f"{1000 * row['masked_seconds']:.1f}",
                percent(row["speedup"], ""),
                percent(row["modelled_speedup"], ""),
            ]
        )
    return [
        "",
        f"Measured here on {measured['device']}, {measured['precision']}, "
        f"{measured['bandwidth'] / 1e9:.0f} GB/s:",
        columns(rows),
    ]


def _models(result: dict[str, Any]) -> str:
    models = result["models"]
    return f"{models['target']} with {models['draft']}, {result['precision']}"


def _skipped(result: dict[str, Any]) -> list[str]:
    return [f"skipped {s['where']}: {s['why']}" for s in result["skipped"]]
