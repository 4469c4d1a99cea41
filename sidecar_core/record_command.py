"""The command `record`: the example articles under the page's scenarios, as files to watch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.examples import Example, load_examples
from sidecar_core.files import file_errors
from sidecar_core.scenarios import BY_KEY, SCENARIOS, Scenario
from sidecar_core.settings import RunSettings

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine

Job = tuple[Path, Example, Scenario]


def register(commands: Any) -> None:
    """Add `record` to the subparsers."""
    record = commands.add_parser("record", help="record the examples under the page's scenarios")
    cli.common(record)
    record.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    record.add_argument("--examples", metavar="NAMES", help="default: all, comma-separated")
    record.add_argument("--scenarios", metavar="NAMES", help=f"of {', '.join(BY_KEY)}")
    record.add_argument("--force", action="store_true", help="replace existing recordings")
    record.set_defaults(handler=record_command)


def record_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """Record what is not there yet; an interrupted recording goes on where it was."""
    jobs = list(_jobs(arguments.out, arguments.examples, arguments.scenarios))
    missing = [job for job in jobs if arguments.force or not job[0].exists()]
    written = []
    if missing:
        settings = RunSettings(seed=arguments.seed).validate()
        written = list(_record(cli.load_engine(arguments), missing, settings))
    there = [path.name for path, _, _ in jobs if path.name not in written]
    print(f"{len(written)} recorded, {len(there)} there already.", file=sys.stderr)
    return {"folder": str(arguments.out), "written": written, "there": there}


def _jobs(folder: Path, examples: str | None, scenarios: str | None) -> Iterator[Job]:
    articles = {example.key: example for example in load_examples()}
    chosen = _named("example", examples, list(articles))
    keys = _named("scenario", scenarios, [scenario.key for scenario in SCENARIOS])
    for name in chosen:
        for key in keys:
            yield folder / f"{name}-{key}.jsonl", articles[name], BY_KEY[key]


def _named(what: str, names: str | None, known: list[str]) -> list[str]:
    chosen = known if names is None else [n.strip() for n in names.split(",") if n.strip()]
    for name in chosen:
        if name not in known:
            raise SidecarError(f"There is no {what} {name!r}; choose from {', '.join(known)}.")
    return chosen


def _record(engine: Engine, jobs: Sequence[Job], base: RunSettings) -> Iterator[str]:
    from sidecar_core.models.cache import write_text
    from sidecar_core.recording import compact, read_recording, record, write_recording
    from sidecar_core.report import RunReport, shown

    for path, example, scenario in jobs:
        events = list(engine.stream(example.text, scenario.apply(base)))
        recording = compact(record(events, scenario.key)).named(example.title, example.text)
        text = write_recording(recording)
        read_recording(text)  # what cannot be read back is not written
        with file_errors("write", path):
            write_text(path, text)
        report = RunReport.of(events)
        print(
            f"{path.name}: α {shown(report.alpha)}, {report.emitted} tokens, "
            f"{len(text) / 1000:.0f} kB",
            file=sys.stderr,
        )
        yield path.name
