"""The five scenarios as small bars beside the α of the run that is shown."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import SCENARIOS
from sidecar_core.settings import RunSettings
from sidecar_core.view.conclusion import comparable
from sidecar_core.view.render import attribute
from sidecar_core.view.runs_table import RunRecord


def scenario_bars(
    settings: RunSettings, report: RunReport, earlier: Sequence[RunRecord] = ()
) -> str:
    """One bar for each scenario, as high as the latest α that was measured under it on this article
    with otherwise the same settings; the run that is shown is the latest one. An empty place where
    there is no such run, and "" while there is no bar at all."""
    runs = [(run.settings, run.report) for run in earlier if comparable(run.settings, settings)]
    runs.append((settings, report))
    places = []
    for number, scenario in enumerate(SCENARIOS, 1):
        under = [(s, r) for s, r in runs if scenario.apply(s) == s and r.alpha is not None]
        words = f"{number} {scenario.title}: "
        if not under:
            places.append(f'<li class="" title="{attribute(words)}not run yet"></li>')
            continue
        used, found = under[-1]
        kind = "now" if used == settings and found is report else ""
        alpha = found.alpha or 0.0
        places.append(
            f'<li class="{kind}" title="{attribute(words)}α {shown(alpha)}">'
            f'<i style="height:{max(0.0, min(1.0, alpha)):.0%}"></i></li>'
        )
    if not any("<i" in place for place in places):
        return ""
    return f'<ul class="scenario-bars" aria-label="α by scenario">{"".join(places)}</ul>'
