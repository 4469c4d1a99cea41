"""Results of `alpha`, `sweep` and `placement` as text for a terminal, and as CSV."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.tables import as_csv, bounds, columns, percent, signed, skipped
from sidecar_core.report import shown


def alpha_text(result: dict[str, Any]) -> str:
    """Conditions, what the differences mean, depth, and the posts' figures."""
    differences = result["differences"]
    rows = [["condition", "α", "95 %", "- identical", "relative", "argmax", "tokens/pass"]]
    for name, found in result["conditions"].items():
        d = differences.get(name)
        rows.append(
            [
                name,
                shown(found["alpha"], 4),
                bounds(found["ci95"]),
                signed(d["difference"]) + " " + bounds(d["ci95"], "+.4f") if d else "",
                percent(d["relative"]) if d else "",
                shown(found["agreement"]),
                shown(found["expected_tokens_per_pass"], 2),
            ]
        )
    lines = [
        f"{result['models']['target']} with {result['models']['draft']}, {result['precision']}; "
        f"{result['documents']} articles, suffix of {result['suffix_tokens']} tokens, "
        f"γ = {result['gamma']}",
        "",
        columns(rows),
        "",
    ]
    for part, d in result["decomposition"].items():
        words = part.replace("_", " ")
        lines.append(f"{words}: {signed(d['difference'])} {bounds(d['ci95'], '+.4f')}")
    live = result["live"]
    lines += [
        f"live at temperature 0, draft prompt identical: {shown(live['tokens_per_pass'], 2)} "
        f"tokens/pass, acceptance {shown(live['acceptance_rate'])}",
        "",
        columns(_depth(result)),
        "",
        *_published(result),
        *skipped(result),
    ]
    return "\n".join(lines)


def sweep_text(result: dict[str, Any]) -> str:
    """Position cost by length of the suffix, with the posts' lines beside it."""
    pairs = result["published"]
    heads = ["suffix", "identical", "masked", "cost", "95 %", "relative"]
    rows = [[*heads, *(f"{p} (the posts)" for p in pairs)]]
    for length, point in result["lengths"].items():
        rows.append(
            [
                length,
                shown(point["identical"], 4),
                shown(point["masked"], 4),
                signed(point["cost"]),
                bounds(point["ci95"], "+.4f"),
                percent(point["relative"]),
                *(signed(pairs[p]["cost"].get(length)) for p in pairs),
            ]
        )
    return "\n".join([f"{result['documents']} articles", "", columns(rows), *skipped(result)])


def placement_text(result: dict[str, Any]) -> str:
    """The placements side by side."""
    rows = [
        ["placement", "α", "cost", "95 %", "tags", "in summary", "document only", "neither", "same"]
    ]
    for name, found in result["placements"].items():
        rows.append(
            [
                name,
                shown(found["alpha"], 4),
                signed(found["cost"]),
                bounds(found["cost_ci95"], "+.4f"),
                shown(found["tags_per_summary"], 1),
                *(
                    percent(found[key], "")
                    for key in ("in_summary", "only_in_document", "in_neither", "same_as_natural")
                ),
            ]
        )
    return "\n".join([f"{result['documents']} articles", "", columns(rows), *skipped(result)])


def alpha_csv(result: dict[str, Any]) -> str:
    """One line for each article and one for all: α and argmax agreement by condition."""
    names = list(result["conditions"])
    heads = ["article", "positions", "prompt_tokens"]
    heads += [f"alpha {name}" for name in names] + [f"argmax {name}" for name in names]
    rows: list[list[Any]] = [heads]
    for found in result["per_document"]:
        rows.append(
            [found["id"], found["positions"], found["prompt_tokens"]]
            + [found["alpha"][name] for name in names]
            + [found["agreement"][name] for name in names]
        )
    pooled = [result["conditions"][name] for name in names]
    positions = sum(found["positions"] for found in result["per_document"])
    rows.append(
        ["pooled", positions, ""]
        + [found["alpha"] for found in pooled]
        + [found["agreement"] for found in pooled]
    )
    return as_csv(rows)


def sweep_csv(result: dict[str, Any]) -> str:
    """One line for each length of the suffix."""
    rows: list[list[Any]] = [
        ["suffix_tokens", "identical", "masked", "cost", "low", "high", "relative"]
    ]
    for length, point in result["lengths"].items():
        low, high = point["ci95"] or ("", "")
        values = (point[key] for key in ("identical", "masked", "cost"))
        rows.append([length, *values, low, high, point["relative"]])
    return as_csv(rows)


def _depth(result: dict[str, Any]) -> list[list[str]]:
    names = list(result["conditions"])
    rows = [["position", "tokens", *names]]
    for band in result["depth"]:
        alphas = [shown(band["alpha"][name], 4) for name in names]
        rows.append([f"{band['from']}–{band['to']}", str(band["positions"]), *alphas])
    return rows


def _published(result: dict[str, Any]) -> list[str]:
    return [
        f"the posts, {found['models']}, {found['articles']} articles: "
        + ", ".join(f"{name} {value:.4g}" for name, value in found["alpha"].items())
        for found in result["published"].values()
    ]
