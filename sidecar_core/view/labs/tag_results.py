"""The tag lab's results as HTML: leak rates by condition, tags by where they are found, costs.

Pure functions of a `LeakReport` and of a cost `CostSetup`. Everything that comes from a visitor or
a model passes through `text` or `attribute`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.experiments.cost.figure import cost_figure
from sidecar_core.experiments.cost.model import LEAVES_OUT, CostRow, CostSetup, as_dict, pays_from
from sidecar_core.experiments.leak.report import LeakReport, LeakSettings
from sidecar_core.experiments.stats import Count, difference
from sidecar_core.experiments.tables import bounds
from sidecar_core.view.labs.lab_parts import fill, folded, progress, table, whisker
from sidecar_core.view.render import attribute, text
from sidecar_core.view.tag_column import bytes_text, place_words

ABOUT = {
    "attended": "the sidecar attends to the document",
    "masked": "the document's cache columns are left out",
    "recomputed": "masked, and the summary's columns recomputed without the document",
    "standalone": "the same model, given only the summary",
}

MOST_TAGS = 30

LIMITS = (
    "Masking removes the document's keys and values while tags are written. The summary's keys and "
    "values were computed with the document attended and may carry some of it. Under “recomputed” "
    "they were not; what still seems to leak there is what the model knew or guessed. Tags are "
    "matched by their words: a tag in words that the document does not use counts as “in neither”."
)
"""What masking can and cannot do; shown below the result."""


# --- the leak test ------------------------------------------------------------------------------


def leak_view(report: LeakReport, settings: LeakSettings) -> str:
    """Rates so far, what their difference means, the summary and the tags."""
    if report.forced is None:
        return '<p class="quiet">Getting the summary that all taggers will tag.</p>'
    rows = "".join(_rate_row(report, name, settings.samples) for name in settings.conditions)
    spoken = "; ".join(
        f"{name} {found.hits} of {found.trials}"
        for name in settings.conditions
        if (found := report.leaks(name)).trials
    )
    return (
        f"{_verdict(report)}"
        f'<div class="leak-rates" role="img" aria-label="{attribute(f"leaks: {spoken}")}">'
        f"{rows}</div>"
        f"{_tag_table(report, settings.conditions)}"
        + folded("The summary that was tagged", f'<p class="forced">{text(report.forced.text)}</p>')
        + f'<p class="sub">{LIMITS}</p>'
    )


def _rate_row(report: LeakReport, name: str, wanted: int) -> str:
    found = report.leaks(name)
    bar = interval = number = ""
    if found.rate is not None and found.ci95 is not None:
        low, high = found.ci95
        bar = fill(100 * found.rate)
        interval = whisker(100 * low, 100 * high, f"95 % interval: {bounds(found.ci95, '.3f')}")
        number = f"<b>{found.rate:.0%}<small>{found.hits} of {found.trials}</small></b>"
    return (
        f'<div class="leak-row"><div class="lab-name">{name}<small>{ABOUT[name]}</small></div>'
        f'<div class="lab-track">{progress(found.trials / wanted)}{bar}{interval}</div>{number}'
        f"{_watched(report, name)}</div>"
    )


def _watched(report: LeakReport, name: str) -> str:
    if not report.watch:
        return ""
    found = report.watched(name)
    shown = f"{found.hits} of {found.trials}" if found.trials else "–"
    return f'<div class="watched">“{text(report.watch)}” in {shown}</div>'


def _verdict(report: LeakReport) -> str:
    """Attended against masked in one sentence; "" until both are complete."""
    attended, masked = report.leaks("attended"), report.leaks("masked")
    found = difference(attended, masked)
    if found is None or attended.trials != masked.trials:
        return ""
    return (
        f"<p>With the document attended, {_of(attended)} tag lists contain a tag that is found "
        f"only in the document; with the document masked, {_of(masked)}. The difference is "
        f"<b>{100 * found.difference:+.0f} points</b> {bounds(_points(found.ci95), '+.0f')}, "
        f"p = {found.p_value:.2g} (Fisher's exact test).</p>"
    )


def _of(count: Count) -> str:
    return f"{count.hits} of {count.trials}"


def _points(interval: Sequence[float]) -> list[float]:
    return [100 * value for value in interval]


def _tag_table(report: LeakReport, conditions: Sequence[str]) -> str:
    entries = report.as_dict()["tags"]
    if not entries:
        return ""
    rows = "".join(
        f'<tr class="{entry["place"]}{" watched" if entry["watched"] else ""}">'
        f'<th scope="row" title="{attribute(entry["passage"])}">'
        f'<span class="mark" aria-hidden="true">{place_words(entry["place"], ())[0]}</span>'
        f"#{text(entry['tag'])}</th><td>{text(place_words(entry['place'], entry['words'])[1])}</td>"
        + "".join(f"<td>{entry['samples'].get(name) or '·'}</td>" for name in conditions)
        + "</tr>"
        for entry in entries[:MOST_TAGS]
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in conditions)
    more = len(entries) - MOST_TAGS
    return (
        '<div class="lab-scroll"><table class="lab-table leak-tags"><thead><tr>'
        f'<th scope="col">tag</th><th scope="col">found</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        + (f'<p class="sub">and {more} less frequent tags</p>' if more > 0 else "")
    )


# --- the cost model -----------------------------------------------------------------------------


def cost_view(scenario: CostSetup, rows: Sequence[CostRow]) -> str:
    """The result in words, the curve, the table, and what the model leaves out."""
    footprint, device, lengths = scenario.footprint, scenario.device, scenario.lengths
    apart = scenario.standalone_device or device
    from_batch = pays_from(scenario)
    pays = f"from a batch of <b>{from_batch}</b> on" if from_batch else "<b>at no batch size</b>"
    heads = [
        ("batch", "requests tagged together"),
        ("read per step", "bytes of weights and caches"),
        ("masked", "the same with the document masked"),
        ("time per step", f"at {device.bandwidth / 1e9:,.0f} GB/s"),
        ("masked", "the same with the document masked"),
        ("speed-up", "of a step with the document masked"),
        ("sidecar, $", "per million tag lists, document masked"),
        ("attended, $", "per million tag lists, document attended"),
        ("standalone, $", f"per million tag lists, on {apart.name}"),
    ]
    cells = [
        [
            str(row.batch),
            bytes_text(round(row.full_bytes)),
            bytes_text(round(row.masked_bytes)),
            _time(row.full_seconds),
            _time(row.masked_seconds),
            f"{row.speedup:.0%}",
            *(
                f"{price:,.2f}"
                for price in (row.sidecar_price, row.attended_price, row.standalone_price)
            ),
        ]
        for row in rows
    ]
    curve = cost_figure(as_dict(scenario, rows)["rows"])
    sources = {d.name: d.source for d in (device, apart)}
    notes = "".join(f"<li>{text(name)}: {text(source)}</li>" for name, source in sources.items())
    notes += "".join(f"<li>left out: {text(line)}</li>" for line in LEAVES_OUT)
    return (
        f"<p>A decode step of {text(footprint.name)} in {footprint.precision} reads "
        f"{bytes_text(round(footprint.weights))} of weights and, for every request, "
        f"{footprint.column:,.0f} bytes for each of {lengths.full:,} cached tokens "
        f"({lengths.masked:,} with the document masked). Masking makes a step at least "
        f"{scenario.worth:.0%} faster {pays}.</p>"
        f'<div class="cost-curve">{curve}</div>{table(heads, cells)}'
        + folded("Where the figures come from, and what is left out", f"<ul>{notes}</ul>")
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms" if seconds < 0.1 else f"{seconds:,.2f} s"
