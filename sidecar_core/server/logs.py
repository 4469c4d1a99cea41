"""The server's log: one line for each run on standard error, and nothing of the run's content.

No line contains a word of an article, a summary, a tag or a prompt, or who asked. An exception's
message may quote its input, so only the classes and code locations of exceptions are logged.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import traceback
import warnings
from datetime import UTC, datetime
from typing import Any

from sidecar_core.host.monitor import Ended, Kind
from sidecar_core.report import shown

NAME = "sidecar_core"
"""The logger of everything in this package."""

log = logging.getLogger(f"{NAME}.runs")


def set_up(form: str) -> None:
    """Log to standard error as "json" or "text"; "off" logs nothing."""
    logger = logging.getLogger(NAME)
    handler: logging.Handler = logging.NullHandler()
    if form != "off":
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(AsJson() if form == "json" else AsText())
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    quiet_gradio()


class _WithoutMessages:
    """Replaces the module `traceback` in Gradio, which prints exceptions with their messages; these
    may quote a visitor's input."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self, *_: Any, **__: Any) -> None:
        logging.getLogger(NAME).error("A handler failed", exc_info=sys.exc_info())


def quiet_gradio() -> None:
    """Make Gradio log an exception's outline instead of its message, and no warnings."""
    warnings.filterwarnings("ignore", module="gradio")
    for name, module in list(sys.modules.items()):
        if name.startswith("gradio.") and getattr(module, "traceback", None) is traceback:
            module.traceback = _WithoutMessages()  # type: ignore[attr-defined]


class RunLines:
    """Logs one line for each run when it ends."""

    def began(self, kind: Kind) -> None:
        """Does nothing: a run is logged when it ends."""

    def ended(self, run: Ended) -> None:
        words = (
            f"{run.kind} {run.outcome}: {run.tokens} tokens in {run.seconds:.1f} s, "
            f"α {shown(run.alpha)}"
        )
        log.info(words + (f", {run.error}" if run.error else ""), extra={"run": run})


class AsText(logging.Formatter):
    """`2026-01-31T12:00:00.000+00:00 info run finished: …`"""

    def format(self, record: logging.LogRecord) -> str:
        places = "".join(f"\n  {line}" for line in _outline_of(record))
        return f"{_time(record)} {record.levelname.lower()} {record.getMessage()}{places}"


class AsJson(logging.Formatter):
    """One JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": _time(record), "level": record.levelname.lower()}
        run = getattr(record, "run", None)
        if isinstance(run, Ended):
            started = datetime.fromtimestamp(record.created - run.seconds, UTC)
            line |= {"event": "run", "started": started.isoformat(timespec="milliseconds")}
            line |= {name: _short(value) for name, value in dataclasses.asdict(run).items()}
        else:
            line |= {"event": "message", "message": record.getMessage()}
            if places := _outline_of(record):
                line["error"] = places
        return json.dumps(line, allow_nan=False)


def outline(error: BaseException) -> list[str]:
    """The classes and code locations of an exception and its causes, without messages."""
    lines: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        lines.append(type(error).__name__)
        lines += [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        if (earlier := error.__cause__ or error.__context__) is None:
            break
        error = earlier
    return lines


def _outline_of(record: logging.LogRecord) -> list[str]:
    error = record.exc_info[1] if record.exc_info else None
    return outline(error) if error else []


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
