"""The options of `app.py`, each with an environment variable.

Hosts start the app without arguments, so every option can come from the environment; the command
line takes precedence. A value that is not valid raises BadInput, which names its source. Nothing
here imports Gradio: it reads the same variables and would fail on them with a traceback.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_core import __version__
from sidecar_core.cli import Parser
from sidecar_core.errors import BadInput
from sidecar_core.host.limits import MAX_SECONDS, MAX_WAITING
from sidecar_core.settings import PRECISIONS

MIN_PASSWORD = 8
SWITCH = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
"""The values of a switch, here and in a link."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve the page. Without a `password` anybody can open it."""

    pair: str
    precision: str
    device: str | None
    host: str
    port: int
    max_waiting: int
    max_seconds: int
    metrics: bool
    log: str
    frame_ancestors: str
    user: str
    password: str | None

    @property
    def login(self) -> tuple[str, str] | None:
        """User name and password, or None without a password."""
        return (self.user, self.password) if self.password else None


@dataclass(frozen=True, slots=True)
class _Setting:
    """One option. `read` parses its text and raises ValueError saying what the text must be."""

    name: str
    variable: str
    default: Any
    help: str
    read: Callable[[str], Any] = str
    on: bool = False
    """Whether it is a switch: it takes no value on the command line."""


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(words: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", words) or not low <= int(words) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(words)

    return read


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(words: str) -> str:
        if words not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return words

    return read


def _switch(words: str) -> bool:
    if words.lower() not in SWITCH:
        raise ValueError("1 or 0")
    return SWITCH[words.lower()]


def _sources(words: str) -> str:
    if not re.fullmatch(r"[\w'*:./ \[\]-]+", words, flags=re.ASCII):
        raise ValueError("origins such as https://example.org, separated by spaces")
    return words


SETTINGS = (
    _Setting(
        "pair", "SIDECAR_PAIR", "auto", "model pair: auto, small, big, coder, smol, TARGET,DRAFT"
    ),
    _Setting(
        "precision",
        "SIDECAR_PRECISION",
        "auto",
        f"one of {', '.join(PRECISIONS)}",
        _one_of(*PRECISIONS),
    ),
    _Setting("device", "SIDECAR_DEVICE", None, "device of the models, for example cpu or cuda"),
    _Setting("host", "GRADIO_SERVER_NAME", "127.0.0.1", "address to listen on"),
    _Setting("port", "GRADIO_SERVER_PORT", 7860, "port to listen on", _number(1, 65535)),
    _Setting(
        "max_waiting",
        "SIDECAR_MAX_WAITING",
        MAX_WAITING,
        "longest queue; further runs are refused",
        _number(1, 1000),
    ),
    _Setting(
        "max_seconds",
        "SIDECAR_MAX_SECONDS",
        MAX_SECONDS,
        "time limit of a run, in seconds",
        _number(1, 86_400),
    ),
    _Setting(
        "metrics", "SIDECAR_METRICS", False, "serve /metrics for Prometheus", _switch, on=True
    ),
    _Setting(
        "log",
        "SIDECAR_LOG",
        "text",
        "log one line for each run to standard error: json, text or off",
        _one_of("json", "text", "off"),
    ),
    _Setting(
        "frame_ancestors",
        "SIDECAR_FRAME_ANCESTORS",
        "'self' https://huggingface.co",
        "sites that may embed the page in a frame",
        _sources,
    ),
)
"""Every option but the login, which comes from the environment only: other users of the machine can
read a process's arguments."""


def parse(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> Options:
    """The options from `arguments`, then from the environment. Raises BadInput."""
    parser = Parser(description="Serves the page of Speculative Sidecar.")
    add_options(parser)
    return options_of(vars(parser.parse_args(arguments)), environment)


def options_of(given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Options:
    """The options from a parsed command line, then from the environment. Raises BadInput."""
    found = {setting.name: _value(setting, given, environment) for setting in SETTINGS}
    user = environment.get("SIDECAR_USER", "").strip() or "visitor"
    return Options(**found, user=user, password=_password(environment))


def _value(setting: _Setting, given: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    words, source = given[setting.name], "--" + setting.name.replace("_", "-")
    if words is None:
        words, source = environment.get(setting.variable, "").strip(), setting.variable
    if not words:
        return setting.default
    try:
        return setting.read(words)
    except ValueError as error:
        raise BadInput(f"{source} is {words!r}; it must be {error}.") from None


def _password(environment: Mapping[str, str]) -> str | None:
    password = environment.get("SIDECAR_PASSWORD")
    if password is None:
        return None
    if len(password.strip()) < MIN_PASSWORD:
        raise BadInput(
            f"SIDECAR_PASSWORD is empty or too short; it must have at least {MIN_PASSWORD} "
            "characters. Unset it to serve the page without a password."
        )
    return password


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every option to `parser`, and a note about the password."""
    parser.epilog = (
        "Set SIDECAR_PASSWORD to require a password; SIDECAR_USER is the user name for it "
        "(default: visitor)."
    )
    parser.add_argument("--version", action="version", version=__version__)
    for setting in SETTINGS:
        shown = setting.default if setting.default is not None else "automatic"
        words = f"{setting.help} ({setting.variable}, default: {shown})".replace("%", "%%")
        flag = "--" + setting.name.replace("_", "-")
        if setting.on:
            parser.add_argument(flag, action="store_const", const="1", help=words)
        else:
            parser.add_argument(flag, help=words, metavar=setting.name.upper())
