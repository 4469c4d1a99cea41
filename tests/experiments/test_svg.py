"""Figures: that they are well-formed, show every value and put points where they belong."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.cost.figure import cost_figure
from sidecar_core.experiments.cost.model import PART3, as_dict, rows
from sidecar_core.experiments.leak.figure import leak_figure
from sidecar_core.experiments.svg import intervals, save_figure

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def dots(svg: str) -> list[tuple[float, float]]:
    nodes = ElementTree.fromstring(svg).iter(f"{SVG}circle")
    return [(float(n.attrib["cx"]), float(n.attrib["cy"])) for n in nodes]


def test_every_condition_has_its_name_and_its_rate():
    svg = intervals("Leaks", [("attended", 0.25, [0.16, 0.37]), ("masked", 0.0, [0.0, 0.06])])
    assert {"attended", "25.0%", "masked", "0.0%"} <= set(texts(svg))
    (attended, upper), (masked, lower) = dots(svg)
    assert attended > masked
    assert lower > upper


def test_names_are_text_whatever_they_hold():
    svg = intervals("<b>", [('"&<script>', 0.5, None)])
    assert '"&<script>' in texts(svg)
    assert "<script>" not in svg


def test_a_corpus_shows_tags_and_one_article_samples():
    one = {"rate": 0.5, "ci95": [0.4, 0.6]}
    both = {**one, "tag_rate": 0.125, "tag_ci95": None}
    assert "50.0%" in texts(leak_figure({"conditions": {"masked": one}}))
    assert "12.5%" in texts(leak_figure({"conditions": {"masked": both}}))


def test_a_condition_without_any_tag_is_left_out():
    nothing = {"rate": None, "ci95": None}
    assert "masked" not in texts(leak_figure({"conditions": {"masked": nothing}}))


def test_the_cost_rises_with_the_batch_and_stands_over_it():
    table = as_dict(PART3, rows(PART3))["rows"]
    svg = cost_figure(table)
    assert {"1", "16", "32", "64", "128", "modelled"} <= set(texts(svg))
    found = dots(svg)
    assert found == sorted(found, key=lambda dot: (dot[0], -dot[1]))


def test_what_was_measured_stands_beside_the_model_of_the_same_machine():
    measured = [{"batch": 1, "speedup": -0.01, "modelled_speedup": 0.0}]
    svg = cost_figure([], measured)
    assert {"modelled", "measured here", "-1%"} <= set(texts(svg))
    assert len(dots(svg)) == 2


def test_figures_are_svg_files_only(tmp_path):
    with pytest.raises(SidecarError, match=r"figures are saved as \.svg"):
        save_figure("<svg/>", tmp_path / "a.png")
    with pytest.raises(SidecarError, match="Cannot write"):
        save_figure("<svg/>", tmp_path / "missing" / "a.svg")
    save_figure("<svg/>", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == "<svg/>"
