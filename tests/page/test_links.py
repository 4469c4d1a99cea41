"""Links that open the page with settings."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.page.links import from_query, to_query
from sidecar_core.scenarios import EARLIER_KEYS
from sidecar_core.settings import RunSettings


def test_a_link_brings_the_settings_back() -> None:
    settings = RunSettings(
        draft_prompt="unrelated",
        draft_text="a & b = c?",
        suffix_masking=False,
        gamma=7,
        temperature=0.7,
        top_p=0.9,
    )
    assert from_query(dict(parse_qsl(to_query(settings))))[0] == settings


def test_the_defaults_need_no_query() -> None:
    assert to_query(RunSettings()) == ""
    assert from_query({}) == (RunSettings(), None)


def test_a_scenario_sets_its_toggles() -> None:
    settings, scenario = from_query({"scenario": "suffix-visible", "gamma": "6"})
    assert scenario is not None
    assert (settings.draft_prompt, settings.suffix_masking, settings.gamma) == (
        "compound",
        False,
        6,
    )


def test_names_stand_in_a_link_only_where_there_are_any() -> None:
    query = to_query(RunSettings(seed=5), example="night-train", scenario="", recording="")
    assert query == "example=night-train&seed=5"
    assert from_query(dict(parse_qsl(query)))[0] == RunSettings(seed=5)


def test_foreign_parameters_are_passed_over() -> None:
    assert from_query({"__theme": "dark", "article": "secret"})[0] == RunSettings()


@pytest.mark.parametrize(("earlier", "key"), EARLIER_KEYS.items())
def test_links_of_earlier_versions_still_open_their_scenario(earlier: str, key: str) -> None:
    assert from_query({"scenario": earlier}) == from_query({"scenario": key})


@pytest.mark.parametrize(
    "query",
    [
        {"gamma": "99"}, {"gamma": "two"}, {"temperature": "nan"}, {"suffix_masking": "perhaps"},
        {"scenario": "<script>"}, {"draft_prompt": "none"},
    ],
)  # fmt: skip
def test_a_link_that_does_not_fit_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(SidecarError):
        from_query(query)


def test_a_whole_number_is_asked_for_where_one_is_needed() -> None:
    with pytest.raises(SidecarError, match="not a whole number"):
        from_query({"gamma": "2.5"})


@pytest.mark.parametrize("task", ["nonsense", "<h1>Session ended</h1>"])
def test_a_link_with_an_unknown_task_is_refused(task: str) -> None:
    with pytest.raises(SidecarError, match="There is no task"):
        from_query({"task": task})
