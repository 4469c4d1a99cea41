"""What the commands share: a parser that says one line, common options, and a pair loaded by them.

A module of commands has `register(commands)`, which adds them to the subparsers. Each command sets
`handler`, which takes the parsed arguments and returns the JSON object, or None where another
process of the same launch returns it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from sidecar_core.errors import SidecarError
from sidecar_core.settings import PRECISIONS

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.models.pair import Pair


class Parser(argparse.ArgumentParser):
    """Raises SidecarError for what does not fit, instead of printing all there is and ending."""

    def error(self, message: str) -> NoReturn:
        raise SidecarError(f"{message}; see {self.prog} --help.")


NO_MODEL = "No model is loaded, so --pair, --precision, --device and --seed change nothing."
"""For the help of commands that take the common options and need none of them."""


def how_to_load(command: argparse.ArgumentParser) -> None:
    """`--precision` and `--device`."""
    command.add_argument("--precision", choices=PRECISIONS, default="auto")
    command.add_argument("--device", help="cpu, cuda, cuda:1, mps, spread; default: the best")


def common(command: argparse.ArgumentParser) -> None:
    """The options that every command with a pair has."""
    command.add_argument("--pair", default="auto", help="small, big, coder, smol, TARGET,DRAFT")
    how_to_load(command)
    seed(command)
    as_json(command)


def seed(command: argparse.ArgumentParser) -> None:
    """`--seed`."""
    command.add_argument("--seed", type=int, default=0, help="matters above temperature 0")


def as_json(command: argparse.ArgumentParser) -> None:
    """`--json`."""
    command.add_argument("--json", action="store_true", help="print one JSON object")


def numbers(text: str) -> list[int]:
    """The type of an option that takes whole numbers, separated by commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as 1,16,64") from None


def load_pair(
    arguments: argparse.Namespace,
    name: str | None = None,
    device: str | None = None,
    *,
    quiet: bool = False,
) -> Pair:
    """The pair of the common options, or the one named, on their device or the one given; progress
    goes to standard error unless `quiet`."""
    from sidecar_core.models import loading
    from sidecar_core.terminal import load_progress

    return loading.load_pair(
        name or arguments.pair,
        precision=arguments.precision,
        device=device or arguments.device,
        progress=None if quiet else load_progress(),
    )


def load_engine(arguments: argparse.Namespace) -> Engine:
    """An Engine with that pair."""
    from sidecar_core.decoding.engine import Engine

    return Engine(load_pair(arguments))
