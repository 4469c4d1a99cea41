from __future__ import annotations

import dataclasses
import json
import math

import pytest

from sidecar_core import events
from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    EVENTS,
    BlockEnded,
    Candidates,
    DraftLost,
    Event,
    LoadProgress,
    PhaseChanged,
    PlainPass,
    PrefillProgress,
    RoundStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagsSkipped,
    TagText,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
    from_json,
    to_json,
)
from sidecar_core.settings import RunSettings

SAMPLES: list[Event] = [
    LoadProgress("Downloading", 5, 10, "MB"),
    LoadProgress("Converting"),
    RunStarted(
        pair="smol",
        precision="fp32",
        device="cpu",
        settings=RunSettings().as_dict(),
        segments=(("head", 17), ("document", 200), ("suffix", 25)),
        target_tokens=217,
        draft_tokens=242,
        suffix_tokens=25,
        reused_tokens=(0, 217),
        note="α = 0.7",
    ),
    PrefillProgress("draft", 64, 217, 0.5),
    PhaseChanged("summary", 1.25),
    RoundStarted(0, 4, 1.5),
    BlockEnded(0, 4, "gamma", 0.5),
    PlainPass(0, 0.05, True, 0.6),
    Candidates(0, 0, ((" the", 0.5, 0.4), ('"<b>\u2028', 0.2, 0.0)), 1.65),
    TokenDrafted(0, 0, 11, " the", None, None, None, None, 1.6),
    TokenAccepted(0, 0, 11, " the", 0.5, 0.4, 0.9, 0.1, 1.7),
    TokenRejected(0, 1, 12, "\u2028👩‍👩‍👧\n", 0.01, 0.7, 0.3, None, 1.8),
    TokenCorrected(0, 1, 13, "", 0.6, 0.1, 0.3, 0.2, 1.8),
    TokenBonus(1, 4, 14, '"quoted" \\ <b>', 0.6, None, None, None, 1.9),
    TagText("sidecar", 15, "wind", 2.0),
    TagsFinished("standalone", 'wind"]', ("wind", "sea-level"), '\n\n["', 68, 1024, 30, 0.7),
    TagsSkipped("sidecar", "unrelated prompt"),
    SummaryFinished("- Wind", (11, 13, 14), "length", 7, 28, 2.1),
    RunFinished("stop", {"total": 3.0, "engine": 0.1}, 3.0),
    RunFailed("The article is empty.", 0.0),
    DraftLost("toy failed in its forward pass.", 1.5),
]


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_every_event_survives_json_unchanged(event: Event) -> None:
    line = to_json(event)
    assert line.splitlines() == [line]
    again = from_json(line)
    assert type(again) is type(event)
    assert again == event


def test_every_kind_of_event_is_registered_and_sampled() -> None:
    bases = {"Event", "TokenEvent"}
    kinds = {
        name
        for name, value in vars(events).items()
        if isinstance(value, type) and issubclass(value, Event)
    }
    assert set(EVENTS) == kinds - bases == {type(event).__name__ for event in SAMPLES}
    assert all(name == cls.__name__ for name, cls in EVENTS.items())


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_events_cannot_be_changed(event: Event) -> None:
    name = dataclasses.fields(event)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, name, None)


def test_a_log_can_be_written_and_read_back() -> None:
    lines = [to_json(event) for event in SAMPLES]
    assert not any("\n" in line for line in lines)
    assert [from_json(line) for line in lines] == SAMPLES


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "",
        "null",
        "3",
        '"text"',
        "[1, 2]",
        "{}",
        '{"event": "Unknown"}',
        '{"event": ["PhaseChanged"]}',
        '{"event": "Event", "extra": 1}',
        '{"event": "PhaseChanged"}',
        '{"event": "PhaseChanged", "phase": "summary", "seconds": 1, "more": 2}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_event_is_one_clear_error(line: str) -> None:
    with pytest.raises(SidecarError, match="not an event of a run") as error:
        from_json(line)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


def test_text_that_no_encoding_takes_can_be_written_and_read_back() -> None:
    event = TokenBonus(0, 0, 1, "\ud800 \x85 \u2028", None, None, None, None, 1.0)
    assert from_json(to_json(event).encode("utf-8").decode("utf-8")) == event


def test_json_holds_the_kind_and_plain_values_only() -> None:
    fields = json.loads(to_json(SAMPLES[10]))
    assert fields["event"] == "TokenAccepted"
    assert fields["p"] == 0.5
    assert all(not isinstance(v, float) or math.isfinite(v) for v in fields.values())
