"""A recorded run: where, when and on what it was made, its events, and the article if wished.

JSON Lines: first a `Header`, then the events as `events.py` writes them; a log of events alone (of
`run --events`) is one without a header. What comes from a file is data, never trusted: it is held
to the bounds below, every value to its type, the events to the order of a run. One bad line refuses
the file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, Literal, NoReturn

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    BlockEnded,
    Candidates,
    Event,
    PlainPass,
    PrefillProgress,
    RoundStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagText,
    TokenDrafted,
    TokenEvent,
    from_fields,
    to_json,
)
from sidecar_core.schema import FieldError, build
from sidecar_core.settings import RANGES, RunSettings, renewed
from sidecar_core.text import whole_characters

MAX_BYTES = 4_000_000
MAX_EVENTS = 20_000
MAX_LINE = 60_000
"""Characters of an event. A header may be as long as the file: it may hold an article."""

MAX_WORDS = 200
"""Characters of a header's title, machine and so on."""

MAX_COMPARED = 1_000
"""Characters of what a recording says about earlier runs."""

MAX_ARTICLE = 40_000
"""Characters. Every tag is looked for in it, again at every step: that is to take no minutes."""

MAX_TAGS = 16
"""Of one tagger, for the same reason."""

MAX_CANDIDATES = 16
"""Of one place."""

MAX_SECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Header:
    """What a recording says about itself; "" for what is not known. `scenario` is its key,
    `compared` a sentence about the earlier runs that it was compared with."""

    recording: Literal[1] = 1
    date: str = ""
    pair: str = ""
    precision: str = ""
    device: str = ""
    machine: str = ""
    title: str = ""
    scenario: str = ""
    software: dict[str, str] = field(default_factory=dict)
    article: str = ""
    compared: str = ""

    def describe(self) -> str:
        """Pair, precision, machine and date in a line."""
        words = f"pair {self.pair} in {self.precision} on {self.device}"
        words += f" ({self.machine})" if self.machine else ""
        return f"{words}, {self.date[:10] or 'date unknown'}"


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that was. Its events begin with a RunStarted whose settings are valid."""

    header: Header
    events: tuple[Event, ...]

    @property
    def started(self) -> RunStarted:
        first = self.events[0]
        assert isinstance(first, RunStarted)
        return first

    @property
    def settings(self) -> RunSettings:
        return RunSettings(**renewed(self.started.settings))

    @property
    def article(self) -> str | None:
        """The article, None where the recording does not hold it."""
        return self.header.article or None

    def comparing(self, words: str) -> Recording:
        """The same with a sentence about earlier runs."""
        return dataclasses.replace(self, header=dataclasses.replace(self.header, compared=words))

    def named(self, title: str, article: str = "") -> Recording:
        """The same with a title, and with the article in it unless that is ""."""
        header = dataclasses.replace(self.header, title=title[:MAX_WORDS], article=article)
        return dataclasses.replace(self, header=header)


def record(events: Sequence[Event], scenario: str = "", compared: str = "") -> Recording:
    """The recording of a run that has just ended on this machine. It names no folder: of models
    given by their paths the last part remains."""
    started = events[0]
    assert isinstance(started, RunStarted)
    started = dataclasses.replace(without_folders(started), note="")
    header = Header(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        pair=started.pair,
        precision=started.precision,
        device=started.device,
        machine=machine(started.device),
        scenario=scenario,
        software=dict(_software()),
        compared=compared,
    )
    return Recording(header, (started, *events[1:]))


def without_folders(started: RunStarted) -> RunStarted:
    """The same in words that a recording may hold: of models given by their paths the last part
    remains, and nothing that could not be read back."""
    halves = (half.strip().replace("\\", "/").rstrip("/") for half in started.pair.split(","))
    pair = whole_characters(",".join(half.rpartition("/")[2] for half in halves))[:MAX_WORDS]
    return dataclasses.replace(started, pair=pair, note=whole_characters(started.note))


def machine(device: str) -> str:
    """What kind of machine this is, without its name."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(device))
    return f"{platform.machine()}, {os.cpu_count()} cores"


def _software() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    for name in ("torch", "transformers"):
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def write_recording(recording: Recording) -> str:
    """The recording as JSON Lines, in ASCII; nothing of it is left out."""
    lines = [json.dumps(dataclasses.asdict(recording.header)), *map(to_json, recording.events)]
    return "\n".join(lines) + "\n"


def compact(recording: Recording) -> Recording:
    """The same run in less space: of the prefill its end, p, q and u in four digits (candidates
    in three), seconds in ten-thousandths. Overlaps stay whole, so that α does to the last digit."""
    last = {e.model: e for e in recording.events if isinstance(e, PrefillProgress)}
    kept = (e for e in recording.events if not isinstance(e, PrefillProgress) or last[e.model] is e)
    return dataclasses.replace(recording, events=tuple(map(_rounded, kept)))


def _rounded(event: Event) -> Event:
    changes: dict[str, Any] = {}
    if (seconds := getattr(event, "seconds", None)) is not None:
        changes["seconds"] = round(seconds, 4)
    if isinstance(event, TokenEvent):
        for name in ("p", "q", "u"):
            if (value := getattr(event, name)) is not None:
                changes[name] = float(f"{value:.4g}")
    if isinstance(event, Candidates):
        changes["tokens"] = tuple(
            (words, float(f"{p:.3g}"), float(f"{q:.3g}")) for words, p, q in event.tokens
        )
    if isinstance(event, RunFinished):
        changes["timings"] = {stage: round(value, 4) for stage, value in event.timings.items()}
    return dataclasses.replace(event, **changes)


def read_recording(data: bytes | str) -> Recording:
    """The recording in a file's contents. Raises SidecarError naming the first bad line."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        raise SidecarError(
            f"The recording has {len(data):,} bytes; the limit is {MAX_BYTES:,}. Use a shorter one."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SidecarError("The recording is not UTF-8 text; save the run once more.") from error
    header, events = None, list[Event]()
    order = _Order()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = _fields(line)
            if header is None and not events and "recording" in fields:
                header = _checked_header(build(Header, fields))
                continue
            event = from_fields(fields)
            order.add(event)
            events.append(event)
        except FieldError as error:
            raise SidecarError(
                f"Line {number} of the recording is invalid: {str(error)[:120]}. "
                "Use a file saved by the page or `run --events`."
            ) from error
    if not events:
        raise SidecarError("The file contains no run; use one saved by the page or `run --events`.")
    return _agreed(header, events)


def _fields(line: str) -> dict[str, Any]:
    """One line's JSON object, all its text such that it can be sent on."""
    try:
        fields = json.loads(line, parse_constant=_no_number)
        json.dumps(fields, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise FieldError("it contains half a character") from error
    except (ValueError, RecursionError) as error:
        raise FieldError("it is not a JSON object") from error
    if not isinstance(fields, dict):
        raise FieldError("it is not a JSON object")
    if len(line) > MAX_LINE and "recording" not in fields:
        raise FieldError(f"it has {len(line):,} characters, the limit is {MAX_LINE:,}")
    return fields


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _checked_header(header: Header) -> Header:
    words = dataclasses.asdict(header) | {"article": "", "recording": "", "compared": ""}
    for name, value in words.items():
        parts = [*value, *value.values()] if isinstance(value, dict) else [value]
        if len(parts) > 20 or any(len(part) > MAX_WORDS for part in parts):
            raise FieldError(f"{name!r} is longer than {MAX_WORDS} characters")
    if len(header.article) > MAX_ARTICLE:
        raise FieldError(f"the article is longer than {MAX_ARTICLE:,} characters")
    if len(header.compared) > MAX_COMPARED:
        raise FieldError(f"its comparison is longer than {MAX_COMPARED:,} characters")
    if header.date:
        try:
            datetime.fromisoformat(header.date)
        except ValueError as error:
            raise FieldError("its date is invalid") from error
    return header


def _agreed(header: Header | None, events: Iterable[Event]) -> Recording:
    """Header and run as one; a header that names other models than the run is refused."""
    recording = Recording(header or Header(), tuple(events))
    started = recording.started
    said = {name: getattr(started, name) for name in ("pair", "precision", "device")}
    if header is None:
        return dataclasses.replace(recording, header=Header(**said))
    if any(getattr(header, name) != value for name, value in said.items()):
        raise SidecarError("The recording's header names other models than its run.")
    return recording


@dataclass(slots=True)
class _Order:
    """Holds events to the order of a run, and numbers to what a run can bring.

    A run may break off anywhere: what is refused is what no run could have said.
    """

    events: int = 0
    round: int = -1
    place: int = -1
    summarised: bool = False
    over: bool = False
    tagged: set[tuple[str, str]] = field(default_factory=set)

    def add(self, event: Event) -> None:
        self._require(self.events < MAX_EVENTS, f"there are more than {MAX_EVENTS:,} events")
        self._require(isinstance(event, RunStarted) == (self.events == 0), "a run starts once")
        self._require(not self.over, "the run is over")
        seconds = getattr(event, "seconds", 0.0)
        self._require(0 <= seconds <= MAX_SECONDS, "the time is impossible")
        self.events += 1
        match event:
            case RunStarted():
                _check_start(event)
            case RoundStarted():
                self._require(not self.summarised, "the summary is done")
                self._require(event.round == self.round + 1, "a round is missing")
                self.round, self.place = event.round, -1
            case TokenEvent():
                self._require(not self.summarised, "the summary is done")
                self._require(self.round >= 0, "no round has begun")
                self._require(event.round == self.round, "the token is of another round")
                self._require(0 <= event.place <= RANGES["gamma"].high, "there is no such place")
                chances = (event.p, event.q, event.overlap, event.u)
                fit = all(c is None or 0 <= c <= 1.001 for c in chances)
                self._require(fit, "a probability lies between 0 and 1")
                if isinstance(event, TokenDrafted):
                    self._require(event.place == self.place + 1, "a draft is missing")
                    self.place = event.place
            case BlockEnded():
                self._require(event.round == self.round, "the block is of another round")
                self._require(event.drafted == self.place + 1, "a draft is missing")
            case Candidates():
                self._require(not self.summarised, "the summary is done")
                self._require(event.round == self.round, "the candidates are of another round")
                self._require(len(event.tokens) <= MAX_CANDIDATES, "there are too many candidates")
                fit = all(0 <= c <= 1.001 for _, p, q in event.tokens for c in (p, q))
                self._require(fit, "a probability lies between 0 and 1")
            case PlainPass():
                self._require(not self.summarised, "the summary is done")
                self._require(event.round == self.round, "the pass is of another round")
                self._require(0 < event.pass_seconds <= MAX_SECONDS, "the time is impossible")
            case SummaryFinished():
                self._require(not self.summarised, "the summary is done")
                self.summarised = True
            case TagText():
                self._require(self.summarised, "the summary is not done")
            case TagsFinished():
                tagger = (event.task, event.tagger)
                self._require(tagger not in self.tagged, "this tagger is done")
                self._require(len(event.tags) <= MAX_TAGS, f"there are more than {MAX_TAGS} tags")
                self.tagged.add(tagger)
            case RunFinished() | RunFailed():
                self.over = True

    @staticmethod
    def _require(condition: bool, otherwise: str) -> None:
        if not condition:
            raise FieldError(otherwise)


def _check_start(event: RunStarted) -> None:
    if any(len(words) > MAX_WORDS for words in (event.pair, event.precision, event.device)):
        raise FieldError(f"a model's name is longer than {MAX_WORDS} characters")
    try:
        RunSettings(**renewed(event.settings)).validate()
    except TypeError as error:
        raise FieldError("a setting is unknown") from error
    except SidecarError as error:
        raise FieldError(str(error)) from error
