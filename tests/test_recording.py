"""Recordings: written and read back whole, and refused in one line where they are not as they
should be."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import gradio as gr
import pytest

from sidecar_core import recording as module
from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    PrefillProgress,
    RunFailed,
    RunStarted,
    SummaryFinished,
    TagText,
    TokenDrafted,
    TokenEvent,
    to_json,
)
from sidecar_core.page.edge import as_gradio_errors
from sidecar_core.recording import (
    MAX_ARTICLE,
    MAX_BYTES,
    MAX_EVENTS,
    MAX_LINE,
    MAX_WORDS,
    Recording,
    compact,
    machine,
    read_recording,
    record,
    without_folders,
    write_recording,
)
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.runs import HOSTILE, one_round, started, whole_run

ARTICLE = "The plant closed. <b>The</b> line is gone. 🍦 \u2028 שלום"


def log(events: list[Any]) -> list[str]:
    """The lines of a log without a header."""
    return [to_json(event) + "\n" for event in events]


def made(**changes: Any) -> Recording:
    return record(whole_run(**changes), "identical").named("The plant", ARTICLE)


def lines(**changes: Any) -> list[str]:
    return write_recording(made()).splitlines()


def test_a_recording_of_models_in_oddly_named_folders_can_be_read_back() -> None:
    first, *rest = whole_run()
    odd = dataclasses.replace(
        first, pair="/a\udcff/" + "b" * 300 + "\ud800,/c/d", note="in /\udcff"
    )
    events = [without_folders(odd), *rest]
    found = read_recording("".join(log(events)))
    assert found.events == tuple(events)
    assert found.started.pair == ("b" * 300)[:MAX_WORDS]
    assert found.started.note == "in /\ufffd"
    assert without_folders(first) == first


def refusal(data: bytes | str) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(SidecarError) as error:
        read_recording(data)
    said = str(error.value)
    assert "\n" not in said
    assert len(said) < 300
    said.encode("utf-8")
    return said


def with_line(number: int, **changes: Any) -> str:
    """A recording with some fields of one line (counted from 1) changed."""
    changed = lines()
    changed[number - 1] = json.dumps(json.loads(changed[number - 1]) | changes)
    return "\n".join(changed)


def line_of(kind: str) -> int:
    return next(n for n, line in enumerate(lines(), 1) if f'"event": "{kind}"' in line)


def test_a_recording_comes_back_as_it_was() -> None:
    recording = made()
    text = write_recording(recording)
    assert read_recording(text) == read_recording(text.encode()) == recording
    assert recording.article == ARTICLE
    assert recording.settings == RunSettings()


def test_the_header_comes_first_and_says_what_it_is() -> None:
    header = json.loads(lines()[0])
    assert header["recording"] == 1
    assert header["pair"] == "toy"
    assert header["precision"] == "fp32"
    assert header["scenario"] == "identical"
    assert {"python", "torch", "transformers"} <= set(header["software"])
    assert made().header.describe().startswith("pair toy in fp32 on cpu (")
    assert made().header.describe().endswith(header["date"][:10])


def test_the_article_is_in_it_only_if_asked_for() -> None:
    without = record(whole_run()).named("The plant")
    assert without.article is None
    assert "line is gone" not in write_recording(without)


def test_a_log_of_events_alone_is_a_recording_without_a_header() -> None:
    recording = read_recording("".join(log(whole_run())))
    assert list(recording.events) == whole_run()
    assert recording.header.pair == "toy"
    assert "date unknown" in recording.header.describe()


def test_a_log_that_breaks_off_shows_what_there_was() -> None:
    whole = log(whole_run())
    assert len(read_recording("".join(whole[:9])).events) == 9


def test_it_names_neither_this_machine_nor_any_folder() -> None:
    import getpass
    import socket

    begun = dataclasses.replace(
        started(), pair="/data/me/target,C:\\models\\draft", note="at /data"
    )
    text = write_recording(record([begun, *whole_run()[1:]]))
    assert read_recording(text).header.pair == "target,draft"
    assert "/data" not in text
    assert "models" not in text
    for name in (socket.gethostname(), getpass.getuser()):
        assert name not in machine("cpu")


def test_a_compact_recording_has_the_same_figures_in_less_space() -> None:
    events = whole_run()
    noisy = [
        *events[:2],
        *(PrefillProgress("target", n, 143, n / 1000) for n in range(1, 143)),
        *(
            dataclasses.replace(e, p=1 / 3, q=2 / 3, seconds=e.seconds + 1 / 3)
            if isinstance(e, TokenEvent)
            else e
            for e in events[2:]
        ),
    ]
    whole = record(noisy)
    small = compact(whole)
    assert len(write_recording(small)) < 0.7 * len(write_recording(whole))
    before, after = RunReport.of(whole.events), RunReport.of(small.events)
    assert after.alpha == before.alpha
    assert after.text == before.text
    assert after.tokens_per_second == pytest.approx(before.tokens_per_second, rel=1e-3)
    assert sum(isinstance(e, PrefillProgress) for e in small.events) == 1
    assert read_recording(write_recording(small)) == small


# What is refused


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\n \n", b"null", b"[]", b"3", b'"x"', b"{}", b"{", b"\xff\xfe\x00", b"PK\x03\x04"),
        *(b"[" * 90_000, b'{"recording": ' + b"[" * 90_000, b'{"a":' * 20_000),
        *(b'{"recording": 1e400}', b'{"recording": NaN}', b'{"recording": ' + b"9" * 5000 + b"}"),
        *(b'{"recording": 1}', b'{"recording": 2}', b'{"recording": true}', b'{"recording": "1"}'),
        *("\ud800", '{"recording": 1, "title": "\ud800"}', '{"recording": 1, "title": "\\ud800"}'),
    ],
)
def test_what_is_no_recording_is_refused_in_one_line(data: bytes | str) -> None:
    refusal(data)


@pytest.mark.parametrize(
    "changes",
    [
        *({"date": date} for date in ("yesterday", 5, "<b>", None)),
        *({"title": title} for title in ("x" * 201, None, ["x"], "\ud800")),
        *({"software": found} for found in ({"a": 1}, [], {"a": "b" * 201}, {"a" * 201: "b"})),
        {"software": {str(n): "" for n in range(30)}},
        *({"article": words} for words in ("x" * (MAX_ARTICLE + 1), None, {"text": "x"})),
        *({"pair": "other"}, {"precision": "bf16"}, {"device": "cuda"}, {"hostname": "x"}),
    ],
)
def test_a_header_that_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    refusal(with_line(1, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        *({"gamma": v} for v in (99, -1, 2.5, "4", True, None)),
        *(
            {"task": 3},
            {"draft_text": "x" * 4_001},
            {"unheard_of": 1},
            {"positions": "upside down"},
        ),
    ],
)
def test_settings_that_no_run_can_have_are_refused(changes: dict[str, Any]) -> None:
    number = line_of("RunStarted")
    settings = RunSettings().as_dict() | changes
    assert f"Line {number} " in refusal(with_line(number, settings=settings))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *(("RoundStarted", {"round": v}) for v in (1, 7, 10**12)),
        *(("TokenAccepted", {"place": v}) for v in (-1, 17, 10**12, 2**63)),
        *(("TokenAccepted", {"round": v}) for v in (1, 10**12)),
        *(("TokenAccepted", {name: 1.5}) for name in ("p", "q", "overlap", "u")),
        *(("TokenAccepted", {name: -0.5}) for name in ("p", "q", "overlap", "u", "seconds")),
        *(("TokenDrafted", {"seconds": v}) for v in (1e7, "1", math.inf)),
        *(("TokenAccepted", {"text": v}) for v in ("x" * MAX_LINE, "\ud800", None)),
        *(("RunStarted", {name: "x" * 201}) for name in ("pair", "precision", "device")),
        ("SummaryFinished", {"extra": 1}),
        ("TagsFinished", {"tags": ["x"] * 17}),
    ],
)
def test_an_event_that_no_run_can_bring_is_refused_by_its_line(
    kind: str, changes: dict[str, Any]
) -> None:
    number = line_of(kind)
    assert f"Line {number} " in refusal(with_line(number, **changes))


def test_events_out_of_order_are_refused() -> None:
    whole = log(whole_run())
    again = to_json(started()) + "\n"
    summary = next(to_json(e) for e in whole_run() if isinstance(e, SummaryFinished)) + "\n"
    rounds = log(one_round(0, [("a", 0.5)]))
    for events in (
        whole[1:],
        [*whole, again],
        [whole[0], again],
        [*whole[:-1], to_json(RunFailed("x", 1.0)) + "\n", whole[-1]],
        [*whole[:-1], summary, whole[-1]],
        [*whole[:-1], rounds[0]],
        [*whole[:-1], next(line for line in whole if "TagsFinished" in line)],
        [again, rounds[1]],
        [again, rounds[1].replace('"round": 0', '"round": -1')],
        [whole[0], lines()[0] + "\n"],
    ):
        assert "Line " in refusal("".join(events))


def test_a_file_of_too_many_bytes_or_events_is_refused() -> None:
    assert f"{MAX_BYTES:,}" in refusal(b" " * (MAX_BYTES + 1))
    shortest = '{"event":"PhaseChanged","phase":"prefill","seconds":0}\n'
    flood = to_json(started()) + "\n" + shortest * MAX_EVENTS
    assert f"{MAX_EVENTS:,}" in refusal(flood)


def test_a_line_of_an_event_is_bounded_and_a_header_may_hold_the_longest_article() -> None:
    recording = record(whole_run()).named("", "é" * MAX_ARTICLE)
    assert read_recording(write_recording(recording)) == recording
    assert f"{MAX_LINE:,}" in refusal(to_json(RunFailed("x" * MAX_LINE, 0.0)))


def test_markup_in_texts_is_kept_as_text() -> None:
    recording = record(whole_run(tag=HOSTILE)).named(HOSTILE, HOSTILE)
    again = read_recording(write_recording(recording))
    assert again.header.title == again.article == HOSTILE
    assert any(HOSTILE in getattr(e, "tags", ()) for e in again.events)


def test_the_longest_run_that_can_be_fits_into_a_recording() -> None:
    """Every round drafts 16 tokens and keeps none but the target's own."""
    worst = [started()]
    for number in range(512):
        worst += one_round(number, [], (" incomprehensibilities", 1 / 3), " word", gamma=16)
    recording = record(worst)
    assert read_recording(write_recording(recording)) == recording


def test_bounds_leave_room_for_what_the_settings_allow() -> None:
    assert isinstance(made().started, RunStarted)
    assert module.MAX_EVENTS > 512 * (16 + 3) + 3 * 70 + 2 * 512


def test_what_no_run_could_say_in_that_order_is_refused() -> None:
    drafted = next(e for e in whole_run() if isinstance(e, TokenDrafted))
    doubled = [*whole_run()[:5], drafted, drafted, drafted]
    with pytest.raises(SidecarError, match="a draft is missing"):
        read_recording("\n".join(map(to_json, doubled)))
    early = [*whole_run()[:4], TagText("sidecar", 1, "early", 0.3)]
    with pytest.raises(SidecarError, match="the summary is not done"):
        read_recording("\n".join(map(to_json, early)))


def test_a_recording_of_an_unknown_kind_of_setting_is_text_everywhere() -> None:
    bad = [json.loads(line) for line in map(to_json, whole_run())]
    bad[0]["<h1>markup</h1>"] = 1
    with pytest.raises(SidecarError) as error:
        read_recording("\n".join(map(json.dumps, bad)))
    with pytest.raises(gr.Error) as shown, as_gradio_errors():
        raise error.value
    assert "<h1>" not in shown.value.message
