"""The small bars beside α: one for each scenario, as high as what was measured under it."""

from __future__ import annotations

import dataclasses
import re

from sidecar_core.settings import RunSettings
from sidecar_core.view.runs_table import RunRecord
from sidecar_core.view.scenario_bars import scenario_bars
from tests.view.test_conclusion import measured


def bars(now: RunRecord, *earlier: RunRecord) -> list[str]:
    return re.findall(r"<li.*?</li>", scenario_bars(now.settings, now.report, earlier))


def test_a_bar_is_as_high_as_the_latest_alpha_under_its_scenario() -> None:
    earlier = [measured("identical", 0.6), measured("identical", 0.75)]
    found = bars(measured("suffix-visible", 0.5), *earlier)
    assert len(found) == 5
    assert "1 Identical prompts: α 0.750" in found[0]
    assert "height:75%" in found[0]
    assert "height:50%" in found[1]
    assert 'class="now"' in found[1]
    assert 'class="now"' not in found[0]
    assert all("not run yet" in place and "<i" not in place for place in found[2:])


def test_runs_with_other_settings_have_no_bar() -> None:
    other = measured("identical", 0.9, base=RunSettings(temperature=0.7))
    assert "not run yet" in bars(measured("suffix-visible", 0.5), other)[0]


def test_a_run_under_no_scenario_is_none_of_the_bars() -> None:
    own = dataclasses.replace(RunSettings(), draft_prompt="unrelated")
    record = measured("identical", 0.4)
    assert scenario_bars(own, record.report) == ""
