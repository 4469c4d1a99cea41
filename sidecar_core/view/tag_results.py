"""The tag lab's results as HTML: leak rates by condition, tags by where they stand, costs.

Pure functions of a `LeakReport` and of a cost `CostSetup`. Whatever comes from a visitor or a model
passes through `text` or `attribute`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.experiments.cost.figure import cost_figure
from sidecar_core.experiments.cost.model import LEAVES_OUT, CostRow, CostSetup, as_dict, pays_from
from sidecar_core.experiments.leak.report import LeakReport, LeakSettings
from sidecar_core.experiments.stats import Count, difference
from sidecar_core.experiments.tables import bounds
from sidecar_core.view.alpha_results import table
from sidecar_core.view.render import attribute, text
from sidecar_core.view.tag_column import bytes_text, place_words

ABOUT = {
    "attended": "the sidecar sees the document",
    "masked": "the document's columns are left out",
    "recomputed": "and the summary was read again without it",
    "standalone": "the same model, given the summary afresh",
}

MOST_TAGS = 30

LIMITS = (
    "Masking hides the document's own keys and values while tags are written. The summary's were "
    "computed with the document in sight and may carry some of it; under “recomputed” they were "
    "not, so that what still seems to leak there is what the model knew or guessed. Tags are "
    "found by their words: a tag of other words than the document's counts as “in neither”."
)
"""What masking can and cannot do, for the foot of the result."""


# --- the leak test ------------------------------------------------------------------------------


def leak_view(report: LeakReport, settings: LeakSettings) -> str:
    """Rates so far, what their difference means, the forced summary and the tags."""
    if report.forced is None:
        return '<p class="quiet">First the summary, which all taggers then get.</p>'
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
        f'<details><summary>The summary that all taggers got</summary><p class="forced">'
        f"{text(report.forced.text)}</p></details>"
        f'<p class="sub">{LIMITS}</p>'
    )


def _rate_row(report: LeakReport, name: str, wanted: int) -> str:
    found = report.leaks(name)
    fill = whisker = number = ""
    if found.rate is not None and found.ci95 is not None:
        low, high = found.ci95
        fill = f'<i class="fill" style="width:{100 * found.rate:.2f}%"></i>'
        whisker = (
            f'<i class="whisker" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%" '
            f'title="95 %: {bounds(found.ci95, ".3f")}"></i>'
        )
        number = f"<b>{found.rate:.0%}<small>{found.hits} of {found.trials}</small></b>"
    read = ""
    if found.trials < wanted:
        read = f'<i class="read" style="width:{100 * found.trials / wanted:.0f}%"></i>'
    return (
        f'<div class="leak-row"><div class="lab-name">{name}<small>{ABOUT[name]}</small></div>'
        f'<div class="lab-track">{read}{fill}{whisker}</div>{number}'
        f"{_watched(report, name)}</div>"
    )


def _watched(report: LeakReport, name: str) -> str:
    if not report.watch:
        return ""
    found = report.watched(name)
    shown = f"{found.hits} of {found.trials}" if found.trials else "–"
    return f'<div class="watched">“{text(report.watch)}” in {shown}</div>'


def _verdict(report: LeakReport) -> str:
    """What attending against masking came to, in a sentence; "" before both are there."""
    attended, masked = report.leaks("attended"), report.leaks("masked")
    found = difference(attended, masked)
    if found is None or attended.trials != masked.trials:
        return ""
    return (
        f"<p>With the document in sight {_of(attended)} tag lists hold a fact that only the "
        f"document holds, with it masked {_of(masked)}: a difference of "
        f"<b>{100 * found.difference:+.0f} points</b> {bounds(_points(found.ci95), '+.0f')}, "
        f"p = {found.p_value:.2g} (Fisher).</p>"
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
        f'<th scope="col">in how many lists</th><th scope="col">stands</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        + (f'<p class="sub">and {more} rarer tags</p>' if more > 0 else "")
    )


# --- the cost model -----------------------------------------------------------------------------


def cost_view(scenario: CostSetup, rows: Sequence[CostRow]) -> str:
    """A sentence, the curve, the table, and what is left out."""
    footprint, device, lengths = scenario.footprint, scenario.device, scenario.lengths
    apart = scenario.standalone_device or device
    from_batch = pays_from(scenario)
    pays = f"from a batch of <b>{from_batch}</b> on" if from_batch else "<b>at no batch</b>"
    heads = [
        ("batch", "requests whose tags are written together"),
        ("reads, a step", "bytes: weights and caches"),
        ("masked", "the same without the document"),
        ("time, a step", f"at {device.bandwidth / 1e9:,.0f} GB/s"),
        ("masked", ""),
        ("speed-up", ""),
        ("sidecar, $", "for a million tag lists, the document masked"),
        ("not masked, $", "for a million tag lists, the document in the cache"),
        ("standalone, $", f"for a million tag lists, on {apart.name}"),
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
    return (
        f"<p>A step of {text(footprint.name)} in {footprint.precision} reads "
        f"{bytes_text(round(footprint.weights))} of weights and {footprint.column:,.0f} bytes for "
        f"each of {lengths.full:,} cached tokens of every request, {lengths.masked:,} without the "
        f"document. Masking saves {scenario.worth:.0%} or more {pays}.</p>"
        f'<div class="cost-curve">{curve}</div>{table(heads, cells)}'
        "<details><summary>Where the figures come from, and what is left out</summary><ul>"
        + "".join(f"<li>{text(name)}: {text(source)}</li>" for name, source in sources.items())
        + "".join(f"<li>left out: {text(line)}</li>" for line in LEAVES_OUT)
        + "</ul></details>"
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms" if seconds < 0.1 else f"{seconds:,.2f} s"
