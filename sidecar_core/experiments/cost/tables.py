"""Results of `cost` as text for a terminal."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.tables import columns, percent


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
        *_apart(result),
        f"Masking saves {result['worth']:.0%} of a step's time "
        + (f"from a batch of {pays} on." if pays else "at no batch."),
        "Left out:",
        *(f"- {line}" for line in result["leaves_out"]),
    ]
    lines += _latency(result["latency"]) if "latency" in result else []
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
        f"Step times here on {measured['device']}, {measured['precision']}, "
        f"{measured['bandwidth'] / 1e9:.0f} GB/s:",
        columns(rows),
    ]


def _apart(result: dict[str, Any]) -> list[str]:
    """Sidecar against standalone: a generated token, a million articles, one list's time."""
    device, apart = result["device"], result["standalone_device"]
    own = result["standalone_batch"]
    rows = [["batch", "$/M tokens", "standalone", "$/M articles", "standalone", "ms", "standalone"]]
    for row in result["rows"]:
        cells = [str(row["batch"])]
        for key, factor, form in (
            ("usd_per_million_tokens", 1, ".4f"),
            ("usd_per_million_articles", 1, ".2f"),
            ("seconds_per_list", 1000, ".1f"),
        ):
            cells += [f"{factor * row[key][side]:{form}}" for side in ("sidecar", "standalone")]
        rows.append(cells)
    return [
        f"The sidecar on {device['name']}, the standalone on {apart['name']} ({apart['rent']:.2f} "
        f"USD an hour, batch {own or 'the same'}, idle {result['idle_share']:.0%}, "
        f"{1000 * result['hop_seconds']:g} ms away); {result['share_with_tags']:.0%} of the "
        "articles need tags:",
        columns(rows),
        "",
    ]


def _latency(found: dict[str, Any]) -> list[str]:
    rows = [["tagger", "seconds a list", "of the summary's time", "tokens read first"]]
    for tagger in ("sidecar", "standalone"):
        one = found[tagger]
        cells = f"{one['seconds']:.2f}", f"{one['percent']:.0f} %", f"{one['tokens']:.0f}"
        rows.append([tagger, *cells])
    return [
        "",
        f"Measured in {found['runs']} recorded runs (medians; a summary takes "
        f"{found['summary_seconds']:.1f} s):",
        columns(rows),
    ]
