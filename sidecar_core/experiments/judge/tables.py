"""Results of `judge` as text for a terminal."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.tables import bounds, columns, models, percent, signed, skipped
from sidecar_core.report import shown


def judge_text(result: dict[str, Any]) -> str:
    """The verdicts' sum, the judge's bias, and what rules say."""
    bias, published = result["position_bias"], result["published"]
    corrected = result["corrected"]
    rows = [["mean of a list", "sidecar", "standalone"]]
    for name, value in result["rules"]["sidecar"].items():
        other = result["rules"]["standalone"][name]
        rows.append([name.replace("_", " "), shown(value, 2), shown(other, 2)])
    return "\n".join(
        [
            f"{models(result)}; judge: {result['judge']}",
            "",
            f"{result['comparisons']} comparisons: {result['ties']} ties "
            f"({result['identical_lists']} of identical lists), the sidecar wins "
            f"{result['sidecar_wins']}, the standalone {result['standalone_wins']}; "
            f"sign test p = {result['p_value']:.3g}",
            f"the posts: {published['ties']} ties of {published['comparisons']}, the rest "
            f"{published['decided'][0]} to {published['decided'][1]}",
            f"the judge's answers: {bias['first']} for the first list, {bias['second']} for the "
            f"second, {bias['tie']} ties (p of no bias {bias['p_value']:.3g}); both orders agreed "
            f"in {percent(bias['agreed'], '')}",
            f"order-corrected (log-odds over {corrected['margin']:g} decide): {corrected['ties']} "
            f"ties, the sidecar wins {corrected['sidecar_wins']}, the standalone "
            f"{corrected['standalone_wins']}; mean log-odds for the sidecar's list "
            f"{signed(corrected['quality'])} {bounds(corrected['ci95'], '+.3f')}, for the first "
            f"place {signed(bias['log_odds'])}",
            f"mean overlap of the lists: {percent(result['overlap'], '')}",
            "",
            columns(rows),
            *_planted(result["planted"]),
            *skipped(result),
            "",
            f"Every verdict is in {result['verdicts']}.",
        ]
    )


def _planted(found: dict[str, Any] | None) -> list[str]:
    if not found:
        return []
    rows = [["known answers: the worse list is", "cases", "strict", "order-corrected"]]
    rows += [[k, *(str(f[n]) for n in ("cases", "strict", "corrected"))] for k, f in found.items()]
    return ["", columns(rows)]
