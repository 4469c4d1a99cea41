"""Many clients at one server at a time: is every answer the right one, and every refusal clear?

Each client has an article of its own, of a length that no other has, and asks `/summarise` for a
short summary at temperature 0: first one client after the other, then all of them at once, again
and again. An answer is right when its prompt and its summary are those that this client got when it
was alone. Meanwhile somebody opens the page once a second. The server is a process of its own, as
it would run anywhere.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
from gradio_client import Client
from gradio_client.exceptions import AppError

from sidecar_core.errors import Busy, SidecarError, first_line
from sidecar_core.installed import environment

APP = ("-m", "sidecar_core", "app")
"""What Python is told to serve the page."""

TASK = "category"
"""What the draft writes on the side: the shortest there is."""

PAUSE = 2.0
"""Seconds that a client waits before it asks again, answered or refused: otherwise those who were
just answered would always be back in the line first."""

PATIENCE = 600.0
"""Seconds that an answer may take before it counts as lost; also those for the server's start."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: whose question it was, what proves it, and how long it waited for its turn."""

    client: int
    prompt_tokens: int
    summary: tuple[int, ...]
    waited: float


@dataclass(slots=True)
class LoadReport:
    """What came back. Safe to add to from any thread. `alone` is each client's first answer, before
    the others asked."""

    alone: dict[int, Answer] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    rss: dict[str, int | None] = field(default_factory=lambda: {"start": None, "end": None})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, outcome: Answer | Exception) -> None:
        """Take one answer, refusal or failure."""
        with self._lock:
            if isinstance(outcome, Answer):
                self.answers.append(outcome)
            elif isinstance(outcome, AppError) and outcome.title == Busy.title:
                self.refused += 1
            else:
                self.failures.append(f"{type(outcome).__name__}: {outcome}"[:300])

    def mixed(self) -> int:
        """Answers that are not this client's own: another prompt, or another summary. What two
        clients have in common is nobody's own."""
        lengths = Counter(answer.prompt_tokens for answer in self.alone.values())
        return sum(
            lengths[answer.prompt_tokens] > 1
            or (answer.prompt_tokens, answer.summary) != (own.prompt_tokens, own.summary)
            for answer in self.answers
            for own in [self.alone[answer.client]]
        )

    def as_dict(self) -> dict[str, Any]:
        """The result object of `bench --clients`."""
        waited = [answer.waited for answer in self.answers]
        pages = self.page_seconds
        return {
            "answered": len(self.answers),
            "refused": self.refused,
            "failed": len(self.failures),
            "mixed": self.mixed(),
            "waiting": {"median": _median(waited), "p95": percentile(waited, 0.95)},
            "rss_bytes": dict(self.rss),
            "page_seconds": {"median": _median(pages), "max": max(pages, default=None)},
            "clients_answered": len({answer.client for answer in self.answers}),
            "failures": dict(Counter(self.failures).most_common(10)),
        }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def article(client: int) -> str:
    """A client's own article: its marker word, and a sentence of a length that nobody else has."""
    marker = f"Marker{client}"
    return (
        f"The town of {marker} will open its old harbour again, the mayor of {marker} said on "
        f"Monday. Ferries will leave {marker} every hour." + f" {marker} waits." * client
    )


def load_test(
    url: str, clients: int, seconds: float, max_tokens: int, process: psutil.Process | None = None
) -> LoadReport:
    """Drive the server at `url`; `process` is the server's, where its memory can be seen.

    The time, and the look at the memory, begin when every client has had its answer alone: its
    article is then in the prefix store. What was asked before the end is waited for.
    """
    report, end = LoadReport(), threading.Event()
    connected = _connect(url, clients, max_tokens, report)
    report.rss["start"] = _rss(process)
    began = time.monotonic()
    workers = [
        threading.Thread(
            target=_ask, args=(client, n, began + seconds, max_tokens, report), daemon=True
        )
        for n, client in connected
    ]
    visitor = threading.Thread(target=_open_page, args=(url, end, report), daemon=True)
    for thread in (*workers, visitor):
        thread.start()
    for thread in workers:
        thread.join(max(0.0, began + seconds - time.monotonic()) + PATIENCE + 30)
    end.set()
    visitor.join(PATIENCE)
    report.rss["end"] = _rss(process)
    return report


def _rss(process: psutil.Process | None) -> int | None:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss) if process else None
    return None


def _connect(url: str, count: int, max_tokens: int, report: LoadReport) -> list[tuple[int, Client]]:
    """Clients with their numbers, each after one answer; those without are failures."""
    made = []
    for number in range(count):
        try:
            client = Client(
                url,
                verbose=False,
                analytics_enabled=False,
                max_workers=1,
                # No proxy, and a busy machine is no lost connection.
                httpx_kwargs={"timeout": PATIENCE, "trust_env": False},
            )
            report.alone[number] = _answer(client, number, max_tokens)
            made.append((number, client))
        except Exception as error:  # whatever it is, it is what this test looks for
            report.add(error)
    return made


def _ask(client: Client, number: int, until: float, max_tokens: int, report: LoadReport) -> None:
    """One client, from its first question to its last answer."""
    while time.monotonic() < until:
        try:
            report.add(_answer(client, number, max_tokens))
        except Exception as error:  # likewise
            report.add(error)
        time.sleep(PAUSE)
    client.close()


def _answer(client: Client, number: int, max_tokens: int) -> Answer:
    """Ask once. Raises what the client raises, and SidecarError for a run that did not end."""
    asked = time.monotonic()
    job = client.submit(article(number), task=TASK, max_tokens=max_tokens, api_name="/summarise")
    result = job.result(timeout=PATIENCE)
    if "stopped" in result:
        raise SidecarError(result["stopped"])
    waited = time.monotonic() - asked - result["timings"]["total"]
    summary = tuple(result["summary_ids"])
    return Answer(number, result["prompt_tokens"]["target"], summary, waited)


def _open_page(url: str, end: threading.Event, report: LoadReport) -> None:
    with httpx.Client(timeout=PATIENCE, trust_env=False) as browser:
        while not end.wait(1):
            asked = time.monotonic()
            try:
                browser.get(url).raise_for_status()
            except httpx.HTTPError as error:
                report.add(error)
            else:
                report.page_seconds.append(time.monotonic() - asked)


@contextlib.contextmanager
def served(pair: str, precision: str, device: str | None) -> Iterator[tuple[str, psutil.Process]]:
    """The app as a process of its own, once it has answered a first question.

    Raises SidecarError when it does not come up.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, *APP, "--pair", pair, "--precision", precision]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--device", device] if device else []
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryFile() as log:
        app = subprocess.Popen(  # noqa: S603  (a fixed command, no shell)
            command,
            env={**environment(), "GRADIO_ANALYTICS_ENABLED": "False"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            try:
                _first_answer(url, app)
            except (OSError, AppError, httpx.HTTPError, ValueError) as error:
                log.seek(0)
                said = log.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
                raise SidecarError(
                    f"The server did not come up ({first_line(error)}). It said: {said}"
                ) from error
            yield url, psutil.Process(app.pid)
        finally:
            app.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                app.wait(30)
            app.kill()


def _first_answer(url: str, app: subprocess.Popen[bytes]) -> None:
    _wait_for(url, app)
    direct = {"trust_env": False}
    made = Client(url, verbose=False, analytics_enabled=False, httpx_kwargs=direct)
    with contextlib.closing(made) as client:
        job = client.submit(article(0), max_tokens=1, api_name="/summarise")
        job.result(timeout=PATIENCE)


def _wait_for(url: str, app: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if app.poll() is not None:
            raise OSError(f"it ended with exit code {app.returncode}")
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(url, timeout=10, trust_env=False).raise_for_status()
            return
        time.sleep(0.25)
    raise TimeoutError("no answer from its page")


def table(result: dict[str, Any]) -> str:
    """The figures in words, a line each."""
    waiting, pages, rss = result["waiting"], result["page_seconds"], result["rss_bytes"]

    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f} s"

    def size(value: int | None) -> str:
        return "–" if value is None else f"{value / 1e9:.2f} GB"

    return "\n".join(
        [
            f"answered {result['answered']}, refused {result['refused']}, "
            f"failed {result['failed']}, mixed {result['mixed']}",
            f"waiting: median {seconds(waiting['median'])}, p95 {seconds(waiting['p95'])}",
            f"page: median {seconds(pages['median'])}, longest {seconds(pages['max'])}",
            f"server's memory: {size(rss['start'])}, at the end {size(rss['end'])}",
            *(f"{count} × {words}" for words, count in result["failures"].items()),
        ]
    )
