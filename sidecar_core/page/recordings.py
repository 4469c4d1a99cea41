"""The recordings' part of the page: a bar to play one, a shelf to choose from, and saving a run.

The bar is visible as long as a recording is shown, and says so. A recording plays in the same
components as a live run, but never enters the table of this tab's runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from sidecar_core.errors import Busy
from sidecar_core.examples import Example
from sidecar_core.host.session import Session
from sidecar_core.page import controls
from sidecar_core.page.edge import QUIET, as_gradio_errors, html
from sidecar_core.page.links import RECORDING
from sidecar_core.page.shelf import RecordingShelf
from sidecar_core.prompts import Article
from sidecar_core.recording import MAX_ARTICLE, Recording, read_recording, write_recording
from sidecar_core.view.player import SPEEDS, Player, Tour, banner, end, replay, step
from sidecar_core.view.recording_page import recording_page
from sidecar_core.view.run_view import RunView
from sidecar_core.view.tour import SPEED, guided

ABOUT = (
    '<p class="sub">Recorded runs need no model, so they play while the models load. To see one of '
    "your own, save a run below and open the file here.</p>"
)
AT_ONCE = 16
"""Recordings that may play at the same time: each uses one of the server's threads."""

CONTENT = "The file contains the summary, the tags, the settings and the kind of machine."


class Recordings:
    """The components and their handlers. Call `bar`, `shelf` and `saving` where the parts belong on
    the page, then `wire`."""

    def __init__(self, folder: Path, examples: Sequence[Example]) -> None:
        self.known = RecordingShelf.of(folder)
        self.examples = examples
        self.story = tuple(self.known.story())
        self.places = threading.BoundedSemaphore(AT_ONCE)
        self.unasked = threading.BoundedSemaphore(AT_ONCE // 2)

    def bar(self) -> None:
        """Contains the banner, so it must come before everything that the banner is about."""
        self.player = gr.State(Player())
        self.tour = gr.Button("Watch the tour", visible="hidden", elem_id="tour")
        self.how = gr.Textbox(visible="hidden", elem_id="tour-how", label="How the tour begins")
        with gr.Row(elem_id="player"):
            self.banner = html("", elem_id="banner")
            self.before = _button("‹ scene", "tour-back", "scene")
            self.back = _button("‹ round", "back", "round-step")
            self.pause = _button("Pause", "pause")
            self.play = _button("Play", "play")
            self.forward = _button("round ›", "forward", "round-step")
            self.next = _button("scene ›", "tour-next", "scene")
            self.end = _button("End the tour", "tour-end", "scene")
            self.speed = gr.Dropdown(
                list(SPEEDS),
                value="1×",
                label="Speed",
                container=False,
                filterable=False,
                elem_id="speed",
                min_width=90,
            )

    def shelf(self) -> None:
        names = list(self.known.found)
        with gr.Accordion("Recordings", open=False, elem_id="recordings"):
            html(ABOUT)
            with gr.Row(elem_classes="pair"):
                self.choice = gr.Dropdown(
                    names,
                    value=names[0] if names else None,
                    label="Recording",
                    container=False,
                    visible=bool(names),
                    elem_id="recording",
                )
                self.watch = gr.Button(
                    "Watch", size="sm", visible=bool(names), elem_id="watch", min_width=80
                )
                self.upload = gr.UploadButton(
                    "Open a recording (.jsonl)",
                    file_types=[".jsonl"],
                    type="binary",
                    size="sm",
                    elem_id="open-recording",
                    min_width=160,
                )

    def saving(self) -> None:
        self.outbox = gr.Textbox(visible="hidden", elem_id="run-outbox", label="Run outbox")
        with gr.Row(elem_id="saving"):
            self.save = gr.Button("Save run (JSON Lines)", size="sm", elem_id="save")
            self.save_page = gr.Button("Save as page (HTML)", size="sm", elem_id="save-page")
        self.with_article = gr.Checkbox(
            False,
            label="include my article",
            info=f"{CONTENT} Tick this to include your article; otherwise the tags quote no "
            "passages from it. Example articles are always included.",
            elem_id="with-article",
        )

    def wire(
        self,
        session: Any,
        article: Any,
        settings: Sequence[Any],
        views: Sequence[Any],
        shown: Callable[[RunView], tuple[Any, ...]],
    ) -> None:
        """Connect everything. `shown` returns the values of the components `views` for a view."""
        self.shown = shown
        self.state = state = [session, self.player, article]
        buttons = [self.back, self.pause, self.play, self.forward]
        self.outputs = outputs = [*views, *buttons, article, *settings, self.speed]
        playing: dict[str, Any] = {"trigger_mode": "once", "concurrency_limit": None, **QUIET}
        self.watch.click(self.on_watch, [*state, self.choice], outputs, **playing)
        self.play.click(self.on_play, state, outputs, **playing)
        # A handler that yields nothing would clear all of them.
        self.unchanged = tuple([gr.skip()] * len(outputs))
        self.tour.click(
            self.on_tour,
            [*state, self.how],
            outputs,
            js="(s, p, a) => [s, p, a, sidecarTour.how()]",
            **playing,
        )
        for button, lead in ((self.before, -1), (self.next, 1)):
            leading = playing | {"trigger_mode": "multiple"}
            button.click(self._leading(lead), state, outputs, **leading)
        self.end.click(self.on_end, [session, self.player], self.banner, queue=False, **QUIET)
        self.upload.upload(self.on_upload, [*state, self.upload], outputs, **playing)
        self.pause.click(self.on_pause, session, None, queue=False, **QUIET)
        self.speed.input(self.on_speed, [self.player, self.speed], None, queue=False, **QUIET)
        for button, rounds in ((self.back, -1), (self.forward, 1)):
            button.click(self._stepping(rounds), state, [*views, *buttons], **QUIET)
        for button, handler, name in (
            (self.save, self.on_save, "run.jsonl"),
            (self.save_page, self.on_save_page, "run.html"),
        ):
            button.click(
                handler, [session, article, self.with_article], self.outbox, **QUIET
            ).success(None, self.outbox, self.outbox, js=f"(t) => sidecarPage.save('{name}', t)")

    def begun(self) -> list[Any]:
        """The events with which another recording takes the place of what is shown."""
        return [self.watch.click, self.tour.click, self.upload.upload]

    def opens(self, demo: Any) -> None:
        """Show the recording that the page's address names. Call it after `wire`."""
        demo.load(self.on_link, self.state, self.outputs, **QUIET)

    # Handlers

    def on_link(
        self, request: gr.Request, session: Session, player: Player, article: str
    ) -> tuple[Any, ...]:
        """A recording at its end, as whoever shared it saw it."""
        name = self.known.files.get(request.query_params.get(RECORDING, ""))
        if name is None:
            return self.unchanged
        recording = self.known.found[name]
        player.load(recording, self.known.earlier(recording))
        self._now_shows(session, player, article)
        around = self._around(recording, article)
        return (*self.shown(end(player)), *_buttons(False), *around)

    def on_watch(
        self, session: Session, player: Player, article: str, name: str
    ) -> Iterator[tuple[Any, ...]]:
        if name not in self.known.found:
            raise gr.Error("Choose a recording first.", print_exception=False)
        recording = self.known.found[name]
        begin = partial(player.load, recording, self.known.earlier(recording))
        yield from self._play(session, player, article, begin)

    def on_tour(
        self, session: Session, player: Player, article: str, how: str
    ) -> Iterator[tuple[Any, ...]]:
        """The tour from its beginning. `how` holds "still" if nothing is to move by itself, and
        "itself" if nobody asked for the tour: then it leaves half of the places to those who ask,
        and does not complain."""
        unasked = "itself" in how
        yield self.unchanged
        if unasked and (session.busy.locked() or not self.unasked.acquire(blocking=False)):
            return
        try:
            with contextlib.suppress(*[gr.Error] if unasked else []):
                player.speed = SPEEDS[SPEED]
                begin = partial(player.guide, Tour(self.story, still="still" in how))
                yield from self._play(session, player, article, begin)
        finally:
            if unasked:
                self.unasked.release()

    def _leading(self, lead: int) -> Callable[..., Iterator[tuple[Any, ...]]]:
        def on_lead(session: Session, player: Player, article: str) -> Iterator[tuple[Any, ...]]:
            yield self.unchanged
            if player.tour is None:
                return
            player.tour.lead = lead
            if not session.replaying:  # else the playing tour follows
                yield from self._play(session, player, article)

        return on_lead

    def on_end(self, session: Session, player: Player) -> Any:
        """The tour ends; what it shows stays, as a recording."""
        player.tour = None
        self.on_pause(session)
        return banner(player.recording) if player.recording else gr.skip()

    def on_upload(
        self, session: Session, player: Player, article: str, data: bytes
    ) -> Iterator[tuple[Any, ...]]:
        with as_gradio_errors():
            recording = read_recording(data)
        begin = partial(player.load, recording, self.known.earlier(recording))
        yield from self._play(session, player, article, begin)

    def on_play(self, session: Session, player: Player, article: str) -> Iterator[tuple[Any, ...]]:
        yield from self._play(session, player, article)

    def _play(
        self,
        session: Session,
        player: Player,
        article: str,
        begin: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """Play what `begin` makes the player show, or continue with what it shows."""
        if session.busy.locked() and not session.replaying:
            raise gr.Error("A run is in progress. Stop it first.", print_exception=False)
        if not self.places.acquire(blocking=False):
            raise gr.Error(
                f"{AT_ONCE} recordings are playing. Try again in a minute.",
                title=Busy.title,
                print_exception=False,
            )
        try:
            with as_gradio_errors():
                stop = session.take()
            yield from self._played(session, player, article, begin, stop)
        finally:
            self.places.release()

    def _played(
        self,
        session: Session,
        player: Player,
        article: str,
        begin: Callable[[], None] | None,
        stop: threading.Event,
    ) -> Iterator[tuple[Any, ...]]:
        session.replaying = True
        try:
            if begin is not None:
                begin()
            if player.recording is None:
                raise gr.Error("There is no recording to play. Choose one.", print_exception=False)
            if player.tour is not None:
                yield from self._guided(session, player, article, stop)
                return
            if player.at == len(player.recording.events):
                player.at = 0
            self._now_shows(session, player, article)
            around = self._around(player.recording, article)
            for view in replay(player, stop.wait):
                yield (*self.shown(view), *_buttons(view.running), *around)
                around = [gr.skip()] * len(around)
        finally:
            session.replaying = False
            session.busy.release()

    def _guided(
        self, session: Session, player: Player, article: str, stop: threading.Event
    ) -> Iterator[tuple[Any, ...]]:
        """The player's tour. Start stays enabled: a run takes the tour's place."""
        skipped = [gr.skip()] * (len(controls.SETTINGS) + 2)
        scene: Recording | None = None
        self._now_shows(session, player, article)
        for view in guided(player, stop.wait):
            around = skipped
            if scene is not player.recording:
                shown = self._now_shows(session, player, article)
                there, *values, _ = self._around(shown, article)
                around = [gr.skip(), *values, gr.skip()] if scene else [there, *values, SPEED]
                scene = shown
            view = dataclasses.replace(view, running=False)
            yield (*self.shown(view), *_buttons(True), *around)
        assert player.recording is not None
        view = dataclasses.replace(view, banner=banner(player.recording, player.tour))
        yield (*self.shown(view), *_buttons(False), *skipped)

    def _now_shows(self, session: Session, player: Player, article: str) -> Recording:
        """What the player shows is what the tab shows."""
        assert player.recording is not None
        session.recording, session.recorded = player.recording, ""
        article_shown = player.recording.article
        session.shown = Article.of(article_shown).key if article_shown else ""
        player.records = session.on(Article.of(player.recording.article or article).key)
        return player.recording

    def _stepping(self, rounds: int) -> Callable[..., tuple[Any, ...]]:
        def on_step(session: Session, player: Player, article: str) -> tuple[Any, ...]:
            if player.recording is None or session.busy.locked():
                raise gr.Error("Pause the recording or stop the run first.", print_exception=False)
            self._now_shows(session, player, article)
            view = step(player, rounds)
            return (*self.shown(view), *_buttons(False))

        return on_step

    def _around(self, recording: Recording, there: str) -> list[Any]:
        """Values for the article box and the settings: those of the recording. An article that the
        visitor brought stays, and so does the speed."""
        values = [*controls.values_of(recording.settings), gr.skip()]
        if there.strip() and all(e.text != there for e in self.examples):
            return [gr.skip(), *values]
        return [recording.article or gr.skip(), *values]

    def on_pause(self, session: Session) -> None:
        if session.replaying:
            session.stop.set()

    def on_speed(self, player: Player, speed: str) -> None:
        player.speed = SPEEDS.get(speed, 1.0)

    def on_save(self, session: Session, article: str, with_article: bool) -> str:
        return write_recording(self._recording(session, article, with_article))

    def on_save_page(self, session: Session, article: str, with_article: bool) -> str:
        return recording_page(self._recording(session, article, with_article))

    def _recording(self, session: Session, article: str, with_article: bool) -> Recording:
        """The recording that is shown, as it is to be saved. No tab stores an article, so a
        visitor's own must still be on the page to be included."""
        recording = session.recording
        if recording is None:
            raise gr.Error("There is no run to save. Press Start first.", print_exception=False)
        if not session.recorded:
            return recording
        on_page = Article.of(article)
        for example in self.examples:
            if Article.of(example.text).key == session.recorded:
                return recording.named(example.title, example.text)
        if with_article and on_page.key != session.recorded:
            raise gr.Error(
                "The run's article is no longer on the page. Put it back, or save without it.",
                print_exception=False,
            )
        if with_article and len(on_page.text) > MAX_ARTICLE:
            raise gr.Error(
                f"The article has {len(on_page.text):,} characters; the limit is {MAX_ARTICLE:,}. "
                "Save without it.",
                print_exception=False,
            )
        return recording.named("", on_page.text if with_article else "")


def _buttons(running: bool) -> tuple[Any, ...]:
    """The states of the buttons Back, Pause, Play, Forward."""
    return (
        gr.Button(interactive=not running),
        gr.Button(interactive=running),
        gr.Button(interactive=not running),
        gr.Button(interactive=not running),
    )


def _button(label: str, name: str, kind: str = "") -> Any:
    return gr.Button(label, size="sm", elem_id=name, elem_classes=kind, min_width=30)
