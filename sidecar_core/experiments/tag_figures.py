"""Figures of the tag experiments, as files that open in any browser without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from sidecar_core.errors import SidecarError

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#6b7280"
TEMPLATE = "simple_white"


def leak_figure(result: dict[str, Any]) -> go.Figure:
    """Leak rate with its interval for every condition, of one article or a corpus: per sample, and
    for a corpus per tag."""
    conditions = result["conditions"]
    figure = go.Figure()
    for name, rate, interval, colour in (
        ("samples with a tag only from the document", "rate", "ci95", BLUE),
        ("tags only from the document", "tag_rate", "tag_ci95", VERMILION),
    ):
        shown = {c: f for c, f in conditions.items() if f.get(rate) is not None}
        if shown:
            figure.add_trace(_points(name, shown, rate, interval, colour))
    return _titled(figure, "Facts of the document that the summary does not hold", "share", "")


def _points(
    name: str, shown: dict[str, dict[str, Any]], rate: str, interval: str, colour: str
) -> go.Scatter:
    values = [found[rate] for found in shown.values()]
    bounds = [found[interval] or [found[rate]] * 2 for found in shown.values()]
    return go.Scatter(
        name=name,
        x=values,
        y=list(shown),
        mode="markers",
        marker={"color": colour, "size": 10},
        error_x={
            "type": "data",
            "array": [high - value for value, (_, high) in zip(values, bounds, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(values, bounds, strict=True)],
        },
    )


def cost_figure(
    rows: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]] = ()
) -> go.Figure:
    """Speed-up of a decode step by document masking against the batch size; what was measured on
    this machine, and the model of this machine, beside the model of the device."""
    figure = go.Figure()
    lines = [("model", rows, "speedup", BLUE, "solid")]
    if measured:
        lines = [
            ("model of this machine", measured, "modelled_speedup", GREY, "dash"),
            ("measured on this machine", measured, "speedup", VERMILION, "solid"),
        ]
    for name, points, key, colour, dash in lines:
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[point["batch"] for point in points],
                y=[point[key] for point in points],
                mode="lines+markers",
                line={"color": colour, "dash": dash},
            )
        )
    figure.update_xaxes(type="log", dtick="D1")
    return _titled(figure, "What leaving the document out saves", "batch", "speed-up of a step")


def _titled(figure: go.Figure, title: str, x: str, y: str) -> go.Figure:
    figure.update_layout(
        title=title, xaxis_title=x, yaxis_title=y, template=TEMPLATE, showlegend=True
    )
    axis = figure.update_xaxes if x == "share" else figure.update_yaxes
    axis(tickformat=".0%", rangemode="tozero")
    return figure


def save_figure(figure: go.Figure, path: Path) -> None:
    """Write an .html file that needs nothing else, or the figure as .json. Raises SidecarError for
    another kind, and where it cannot be written."""
    check_figure_path(path)
    try:
        if path.suffix.lower() == ".json":
            path.write_text(figure.to_json(), encoding="utf-8")
        else:
            figure.write_html(path, include_plotlyjs=True)
    except OSError as error:
        raise SidecarError(f"Cannot write {path}: {error.strerror or error}.") from error


def check_figure_path(path: Path) -> None:
    """SidecarError for a kind of file that figures are not written as."""
    if path.suffix.lower() not in (".html", ".json"):
        raise SidecarError(f"{path} is neither .html nor .json; figures are written as these.")
