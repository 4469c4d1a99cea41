"""A recording plays like the run that it is of, at any speed, and always says what it is."""

from __future__ import annotations

import copy
import dataclasses
import math
import threading
from collections.abc import Callable

import gradio as gr
import pytest

from sidecar_core.events import (
    Event,
    PhaseChanged,
    PrefillProgress,
    RunFailed,
    TagsFinished,
    TokenDrafted,
)
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.page.recordings import AT_ONCE, Recordings
from sidecar_core.page.shelf import RecordingShelf
from sidecar_core.recording import Recording, compact, read_recording, record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY, EARLIER_KEYS
from sidecar_core.settings import RunSettings
from sidecar_core.view.player import (
    MAX_SILENCE,
    SPEEDS,
    Player,
    Timeline,
    banner,
    record_of,
    replay,
    step,
    steps,
)
from sidecar_core.view.run_view import RunView
from sidecar_core.view.runs_table import runs_table
from tests.runs import HOSTILE, ScriptedEngine, one_round, started, whole_run

ARTICLE = "The plant closed. The Broken Arrow line is gone."
SHOWN = ("tiles", "stream", "sidecar", "standalone", "note")


class Clock:
    """Time that passes only while somebody waits. `stop` says when to end a wait early."""

    def __init__(self, stop: Callable[[Clock], bool] = lambda clock: False) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.stop = stop

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return self.stop(self)

    def __call__(self) -> float:
        return self.now


def recorded(events: list[Event] | None = None, scenario: str = "identical") -> Recording:
    return record(whole_run() if events is None else events, scenario).named("Plant", ARTICLE)


def player_of(recording: Recording | None = None, speed: float = 1.0) -> Player:
    player = Player(speed=speed)
    player.load(recorded() if recording is None else recording)
    return player


def views(player: Player, clock: Clock | None = None) -> list[RunView]:
    clock = clock or Clock()
    return list(replay(player, clock.wait, clock))


def live_views(settings: RunSettings, scenario: str) -> tuple[list[RunView], Session]:
    host, session = ModelHost(lambda progress: (ScriptedEngine(), "scripted")), Session()
    run = live.run(host, session, ARTICLE, settings, BY_KEY[scenario])
    return list(run), session


@pytest.mark.parametrize("speed", SPEEDS.values(), ids=SPEEDS)
def test_the_last_view_is_that_of_the_run_itself(speed: float) -> None:
    settings = BY_KEY["identical"].apply(RunSettings())
    ran, session = live_views(settings, "identical")
    assert session.recording is not None
    saved = write_recording(session.recording.named("Plant", ARTICLE))
    last = views(player_of(read_recording(saved), speed))[-1]
    assert not last.running
    for part in SHOWN:
        assert getattr(last, part) == getattr(ran[-1], part), part
    assert last.chart.to_json() == ran[-1].chart.to_json()
    assert last.status["message"] == f"Recording: {ran[-1].status['message']}"


def test_a_compact_recording_ends_at_the_same_figures() -> None:
    whole, small = (views(player_of(r))[-1] for r in (recorded(), compact(recorded())))
    assert [getattr(small, part) for part in SHOWN] == [getattr(whole, part) for part in SHOWN]


def test_every_view_says_that_it_is_a_recording_of_what_and_when() -> None:
    recording = recorded()
    player = player_of(recording)
    shown = [*views(player), step(player, -1)]
    for view in shown:
        for words in ("This is a recording", "toy", "fp32", recording.header.machine):
            assert words in view.banner
        assert recording.header.date[:10] in view.banner
        assert "ecording" in view.status["message"]


def test_a_live_run_has_no_banner() -> None:
    assert {view.banner for view in live_views(RunSettings(), "identical")[0]} == {""}


def test_a_replay_is_no_run_of_this_tab() -> None:
    player = player_of()
    assert {view.runs for view in views(player)} == {runs_table([])}


@pytest.mark.parametrize("speed", [1.0, 2.0, 4.0, 10.0])
def test_it_takes_the_runs_own_time_divided_by_the_speed(speed: float) -> None:
    events = whole_run()
    clock = Clock()
    views(player_of(recorded(events), speed), clock)
    seconds = Timeline.of(events).at[-1] / speed
    assert seconds <= clock.now <= seconds + 0.1 * len(clock.waits)


def test_at_once_is_two_views_and_no_waiting_to_speak_of() -> None:
    clock = Clock()
    assert len(views(player_of(speed=math.inf), clock)) == 2
    assert clock.now <= 0.2


def test_views_come_at_most_ten_times_a_second_and_stop_is_soon_heard() -> None:
    flood = [started(), *(e for n in range(300) for e in one_round(n, [("a", 1.0)] * 4))]
    clock = Clock()
    seen = views(player_of(recorded(flood), 10.0), clock)
    assert all(0.1 <= seconds <= 0.5 for seconds in clock.waits)
    assert len(seen) <= 10 * clock.now + 3


def test_a_new_speed_is_taken_up_while_it_plays() -> None:
    player = player_of()
    clock = Clock()
    playing = replay(player, clock.wait, clock)
    next(playing)
    player.speed = math.inf
    assert len(list(playing)) == 1


def test_it_can_be_held_and_goes_on_from_there() -> None:
    player = player_of()
    held = views(player, Clock(stop=lambda clock: player.at > 9))
    assert not held[-1].running
    assert "paused at round 1 of 2" in held[-1].status["message"]
    assert 9 < player.at < len(whole_run())
    assert _report_at(player.at).items() <= held[-1].tiles.items()
    rest = views(player)
    assert rest[0].stream == held[-1].stream
    assert rest[-1].tiles == views(player_of())[-1].tiles


def _report_at(at: int) -> dict[str, str]:
    from sidecar_core.view.render import tiles

    return tiles(RunReport.of(whole_run()[:at]))


def test_single_steps_go_through_the_rounds_and_back_again() -> None:
    player = player_of()
    stops = steps(whole_run())
    forward = []
    for _ in stops:
        forward.append(step(player, 1))
        assert _report_at(player.at).items() <= forward[-1].tiles.items()
        assert not forward[-1].running
    assert "plant<" in forward[0].stream["done"]
    assert "closed<" not in forward[0].stream["done"]
    assert player.at == len(whole_run())
    assert forward[-1].tiles == views(player_of())[-1].tiles
    back = [step(player, -1) for _ in stops]
    assert [v.stream for v in back[:-1]] == [v.stream for v in reversed(forward[:-1])]
    assert player.at == 0
    assert back[-1].stream == {"done": "", "pending": ""}
    assert step(player, -1).tiles == back[-1].tiles


def test_a_scenario_says_what_came_out_only_at_the_end() -> None:
    player = player_of()
    outcome = views(player)[-1].note
    assert "α is" in outcome
    assert BY_KEY["identical"].look in step(player, -1).note


# Time


def test_silence_is_shortened_and_the_banner_says_so() -> None:
    events = [
        started(),
        PhaseChanged("prefill", 0.0),
        PrefillProgress("target", 143, 143, 61.0),
        PhaseChanged("summary", 62.0),
        *(dataclasses.replace(e, seconds=62.5) for e in one_round(0, [("a", 0.5)])),
    ]
    line = Timeline.of(events)
    assert line.at[-1] == pytest.approx(MAX_SILENCE + 0.5)
    assert line.shortened == pytest.approx(60)
    assert "60 silent seconds are left out" in banner(recorded(events))
    assert "silent" not in banner(recorded())


def test_a_long_prefill_is_one_silence_however_often_it_reports() -> None:
    reports = [PrefillProgress("target", n, 60, float(n)) for n in range(1, 61)]
    line = Timeline.of([started(), *reports, PhaseChanged("summary", 60.0)])
    assert line.at[-1] == pytest.approx(MAX_SILENCE)
    assert list(line.at) == sorted(line.at)


def test_a_taggers_own_seconds_are_no_moment_of_the_run() -> None:
    late = TagsFinished("sidecar", "", (), "[", 1, 1, 1, 500.0)
    events = [started(), PhaseChanged("tagging", 1.0), late, PhaseChanged("done", 1.5)]
    assert Timeline.of(events) == Timeline((0.0, 1.0, 1.0, 1.5))


def test_time_never_runs_backwards() -> None:
    events = [started(), PhaseChanged("summary", 5.0), PhaseChanged("tagging", 1.0)]
    assert list(Timeline.of(events).at) == [0.0, 2.0, 2.0]


@pytest.mark.parametrize(("earlier", "key"), EARLIER_KEYS.items())
def test_recordings_of_earlier_versions_still_show_their_scenario(earlier: str, key: str) -> None:
    last = views(player_of(recorded(scenario=earlier)))[-1]
    assert last.note == views(player_of(recorded(scenario=key)))[-1].note
    assert BY_KEY[key].title in last.note


# What else may be in a file


def test_without_the_document_no_tag_is_said_to_leak_or_not() -> None:
    recording = record(whole_run(tag="arrow"), "document-attended").named("")
    last = views(player_of(recording))[-1]
    assert "not in the summary" in last.sidecar["list"]
    assert "in neither" not in last.sidecar["list"]
    assert "0 of 2 tags are in the summary" in last.note
    assert "leak" not in last.note
    with_it = views(player_of(recorded(whole_run(tag="arrow"), "document-attended")))[-1]
    assert "only in the document" in with_it.sidecar["list"]


def test_a_recording_that_breaks_off_or_failed_says_so() -> None:
    cut = views(player_of(recorded(whole_run()[:9])))[-1]
    assert "ends here" in cut.status["message"]
    assert not cut.running
    failed = views(player_of(recorded([*whole_run()[:9], RunFailed("No <room>.", 3.0)])))[-1]
    assert failed.status["kind"] == "error"
    assert "No &lt;room&gt;." in failed.status["message"]


def test_markup_in_a_recording_is_inert() -> None:
    whole = recorded(whole_run(tag=HOSTILE))
    header = dataclasses.replace(whole.header, machine=HOSTILE, title=HOSTILE, pair=HOSTILE)
    begun = dataclasses.replace(whole.started, pair=HOSTILE)
    recording = Recording(header, (begun, *whole.events[1:]))
    for view in views(player_of(read_recording(write_recording(recording)))):
        pieces = [view.banner, view.note, view.runs, *view.status.values(), *view.tiles.values()]
        pieces += [*view.stream.values(), *view.sidecar.values(), *view.standalone.values()]
        assert not any("<img" in piece for piece in pieces)


# The shelf


def write(folder, name: str, recording: Recording) -> None:
    (folder / name).write_text(write_recording(recording))


def test_the_shelf_offers_what_fits_in_the_scenarios_order(tmp_path, caplog) -> None:
    for key in ("suffix-masked", "identical", "suffix-visible"):
        settings = BY_KEY[key].apply(RunSettings())
        write(tmp_path, f"plant-{key}.jsonl", recorded(whole_run(settings), key))
    (tmp_path / "bad.jsonl").write_text("nonsense")
    shelf = RecordingShelf.of(tmp_path)
    assert list(shelf.found) == [
        "Plant – Identical prompts",
        "Plant – Suffix visible",
        "Plant – Suffix masked",
    ]
    assert "bad.jsonl" in caplog.text
    assert RecordingShelf.of(tmp_path / "nothing").found == {}


def test_earlier_scenarios_are_thin_lines_and_numbers_to_compare_with(tmp_path) -> None:
    for key in ("identical", "suffix-visible"):
        settings = BY_KEY[key].apply(RunSettings())
        write(tmp_path, f"plant-{key}.jsonl", recorded(whole_run(settings), key))
    shelf = RecordingShelf.of(tmp_path)
    recording = shelf.found["Plant – Suffix visible"]
    earlier = shelf.earlier(recording)
    assert [record.label for record in earlier] == ["identical"]
    player = Player()
    player.load(recording, earlier)
    last = views(player)[-1]
    assert "identical #1" in last.chart.to_json()
    assert "α stayed at 0.800" in last.note
    assert last.runs == runs_table([])


def test_a_recording_as_an_earlier_run_has_its_figures() -> None:
    assert record_of(recorded(), 1).report.alpha == RunReport.of(whole_run()).alpha


def test_drafts_being_judged_are_shown_while_it_plays() -> None:
    seen = views(player_of())
    assert any(isinstance(e, TokenDrafted) for e in whole_run())
    assert all(view.stream["pending"] == "" for view in (seen[0], seen[-1]))


# Whoever watches, and whoever leaves


@pytest.fixture
def page(tmp_path) -> Recordings:
    """The recordings' part of a page; what it shows is the view alone."""
    made = Recordings(tmp_path, ())
    made.shown = lambda view: (view,)
    return made


def test_a_replay_that_is_left_frees_its_tab_and_its_place(page) -> None:
    session, data = Session(), write_recording(recorded()).encode()
    playing = page.on_upload(session, Player(), "", data)
    next(playing)
    assert session.busy.locked()
    playing.close()
    assert not session.busy.locked()
    assert not session.replaying
    assert all(page.places.acquire(blocking=False) for _ in range(AT_ONCE))


def test_no_more_recordings_are_watched_at_a_time_than_threads_allow(page) -> None:
    data = write_recording(recorded()).encode()
    playing = [page.on_upload(Session(), Player(), "", data) for _ in range(AT_ONCE)]
    for one in playing:
        next(one)
    session = Session()
    with pytest.raises(gr.Error, match="Try again"):
        next(page.on_upload(session, Player(), "", data))
    assert not session.busy.locked()
    playing[0].close()
    next(page.on_upload(session, Player(), "", data))


def test_a_replay_gives_way_to_a_run(page) -> None:
    session = Session()
    long = [started(), *(e for n in range(40) for e in one_round(n, [("a", 1.0)]))]
    playing = page.on_upload(session, Player(), "", write_recording(recorded(long)).encode())
    next(playing)
    watching = threading.Thread(target=lambda: list(playing))
    watching.start()
    host = ModelHost(lambda progress: (ScriptedEngine(), "scripted"))
    assert list(live.run(host, session, ARTICLE, RunSettings()))[-1].status["kind"] == "done"
    watching.join()


def test_two_tabs_share_no_player() -> None:
    assert copy.deepcopy(player_of()).recording is None


def test_an_article_gets_into_a_saved_run_only_if_asked_for(page) -> None:
    _, session = live_views(RunSettings(), "identical")
    for save in (page.on_save, page.on_save_page):
        assert "Broken Arrow" not in save(session, ARTICLE, False)
    assert "Broken Arrow" in page.on_save(session, ARTICLE, True)
