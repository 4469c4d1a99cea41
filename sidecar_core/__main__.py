"""The command line: `sidecar COMMAND`, or `python -m sidecar_core COMMAND`.

Standard output holds the result alone (one JSON object with `--json`); progress goes to standard
error. Exit code 0, or 2 for bad input with one clear line.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

from sidecar_core import cli
from sidecar_core import record_command as commands_record
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha import command as commands_alpha
from sidecar_core.experiments.bench import command as commands_bench
from sidecar_core.experiments.cost import command as commands_cost
from sidecar_core.experiments.judge import command as commands_judge
from sidecar_core.experiments.leak import command as commands_leak
from sidecar_core.files import log_file, read_text, save_text
from sidecar_core.main_tasks import MAIN_TASKS, main_task_of
from sidecar_core.server import options
from sidecar_core.settings import AUTO, OWN, RunSettings
from sidecar_core.tasks import TASKS, task_of

EXPERIMENTS = (
    *(commands_alpha, commands_leak, commands_judge, commands_cost, commands_bench),
    commands_record,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal or a pipe may know no α
        sys.stdout.reconfigure(errors="replace")
    try:
        arguments = parser().parse_args(argv)
        result = arguments.handler(arguments)
        if result is not None and arguments.json:
            print(json.dumps(_finite(result), allow_nan=False))
    except SidecarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return 0


def _finite(value: Any) -> Any:
    """`value` with None for every number that JSON does not know (NaN, infinity)."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parser() -> cli.Parser:
    """The parser of all commands."""
    top = cli.Parser(prog=_program(), description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="summarise one article and tag the summary")
    cli.common(run)
    run.add_argument("file", metavar="FILE", help="a text file, or - for standard input")
    defaults = RunSettings()
    run.add_argument(
        "--draft-prompt",
        choices=["compound", "identical", "unrelated"],
        default=defaults.draft_prompt,
        help="what the draft reads; default: %(default)s",
    )
    run.add_argument(
        "--draft-text",
        default=defaults.draft_text,
        metavar="TEXT",
        help="text of the unrelated prompt",
    )
    for name, masked in (
        ("suffix-masking", "the suffix until the summary is finished"),
        ("document-masking", "the article while the sidecar writes"),
    ):
        run.add_argument(
            f"--{name}",
            action=argparse.BooleanOptionalAction,
            default=True,
            help=f"mask {masked}; default: on",
        )
    run.add_argument(
        "--positions",
        choices=["natural", "rebased"],
        default=defaults.positions,
        help="positions after a masked suffix; default: %(default)s",
    )
    for flag, kind, sign, words in (
        ("temperature", float, "T", "0 is greedy"),
        ("top-k", int, "K", "0 is off"),
        ("top-p", float, "P", "1 is off"),
        ("max-tokens", int, "N", "longest summary"),
    ):
        value = getattr(defaults, flag.replace("-", "_"))
        words += "; default: %(default)s"
        run.add_argument(f"--{flag}", type=kind, default=value, metavar=sign, help=words)
    run.add_argument(
        "--gamma",
        type=gamma,
        default=defaults.gamma,
        metavar="N|auto",
        help="drafts per round; auto: as many as pay; default: %(default)s",
    )
    run.add_argument(
        "--main-task", default=defaults.main_task, help=f"{', '.join(MAIN_TASKS)}, or {OWN}"
    )
    run.add_argument(
        "--instruction", default="", metavar="TEXT", help="what a main task of your own asks for"
    )
    run.add_argument("--task", default=defaults.task, help=f"{', '.join(TASKS)}, or free")
    run.add_argument("--task-suffix", default="", metavar="TEXT", help="a free task's instruction")
    run.add_argument("--task-cue", default="", metavar="TEXT", help="what its answer opens with")
    run.add_argument("--first-tokens", type=int, metavar="N", help="use the first N tokens only")
    run.add_argument("--events", type=Path, metavar="FILE", help="write the events, JSON Lines")
    run.set_defaults(handler=run_command)

    replay = commands.add_parser(
        "replay",
        help="show a recorded run, without any model",
        description=f"Shows a recorded run. {cli.NO_MODEL}",
    )
    replay.add_argument(
        "file", type=Path, metavar="FILE", help="saved on the page, or by run --events"
    )
    replay.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a self-contained page"
    )
    cli.common(replay)
    replay.set_defaults(handler=replay_command)

    fetch = commands.add_parser(
        "fetch",
        help="download and convert a pair's weights",
        description="Downloads and converts a pair's weights. The pair is the argument PAIR, not "
        "--pair; nothing is drawn, so --seed changes nothing.",
    )
    fetch.add_argument("pair", metavar="PAIR")
    cli.how_to_load(fetch)
    cli.seed(fetch)
    cli.as_json(fetch)
    fetch.set_defaults(handler=fetch_command)
    for experiments in EXPERIMENTS:
        experiments.register(commands)

    app = commands.add_parser("app", help="serve the page")
    options.add_options(app)
    app.set_defaults(handler=app_command)
    return top


def gamma(words: str) -> int | str:
    """The value of --gamma: "auto" or a whole number (argparse names what is neither)."""
    return AUTO if words == AUTO else int(words)


def _program() -> str:
    """How this program was called."""
    return "sidecar" if Path(sys.argv[0]).stem == "sidecar" else "python -m sidecar_core"


def run_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`run`: one whole run, shown as it goes unless `--json`."""
    from sidecar_core import events
    from sidecar_core.prompts import check_text
    from sidecar_core.recording import without_folders
    from sidecar_core.terminal import TerminalView

    names = [field.name for field in dataclasses.fields(RunSettings)]
    settings = RunSettings(**{name: getattr(arguments, name) for name in names}).validate()
    task_of(settings)  # an unknown one is refused before anything is loaded
    main_task_of(settings)
    first = arguments.first_tokens
    if first is not None and first < 1:
        raise SidecarError(f"--first-tokens is {first}; it must be 1 or more.")
    article = read_text(arguments.file)
    if first is None:
        check_text(article)  # before the models are loaded
    engine = cli.load_engine(arguments)
    if first:
        article = engine.prompts.first_tokens(article, first)
    stream = engine.stream(article, settings)
    view = TerminalView(sys.stderr if arguments.json else sys.stdout, sys.stderr)
    with log_file(arguments.events) if arguments.events else nullcontext() as log:
        for event in stream:
            if log:
                if isinstance(event, events.RunStarted):
                    event = without_folders(event)
                log(events.to_json(event))
            if not isinstance(event, events.RunFailed):  # the error that follows says the same
                view.show(event)
    return view.report.as_dict()


def replay_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`replay`: a recorded run, shown as if it came now, and said to be a recording."""
    from sidecar_core.recording import read_recording
    from sidecar_core.terminal import TerminalView, harmless

    recording = read_recording(read_text(arguments.file))
    print(harmless(f"This is a recording: {recording.header.describe()}."), file=sys.stderr)
    if arguments.html:
        from sidecar_core.view.recording_page import recording_page

        save_text(arguments.html, recording_page(recording))
        print(f"{arguments.html} is written; open it in a browser.", file=sys.stderr)
    view = TerminalView(sys.stderr if arguments.json else sys.stdout, sys.stderr)
    for event in recording.events:
        view.show(event)
    return {
        "recording": True,
        "header": {k: v for k, v in dataclasses.asdict(recording.header).items() if k != "article"},
        **view.report.as_dict(),
    }


def fetch_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`fetch`: everything that a pair needs, on this disk."""
    from sidecar_core.models.loading import fetch
    from sidecar_core.terminal import load_progress

    name, _ = fetch(arguments.pair, load_progress(), arguments.precision, arguments.device)
    print(f"{name} is ready.", file=sys.stderr)
    return {"pair": name, "ready": True}


def app_command(arguments: argparse.Namespace) -> NoReturn:
    """`app`: the page, until a signal ends the process."""
    from sidecar_core.page.serve import serve

    serve(options.options_of(vars(arguments)))


if __name__ == "__main__":
    sys.exit(main())
