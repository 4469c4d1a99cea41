"""What `app.py` can be told, and what it says to words that do not fit."""

from __future__ import annotations

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.host.model_host import MAX_WAITING
from sidecar_core.server.options import parse


def test_without_a_word_the_page_is_open_and_local() -> None:
    options = parse([], {})
    assert (options.host, options.port) == ("127.0.0.1", 7860)
    assert options.login is None
    assert not options.metrics
    assert options.max_waiting == MAX_WAITING


def test_the_command_line_goes_before_the_environment() -> None:
    environment = {"SIDECAR_PAIR": "small", "GRADIO_SERVER_PORT": "99", "SIDECAR_METRICS": "1"}
    options = parse(["--pair", "smol"], environment)
    assert (options.pair, options.port, options.metrics) == ("smol", 99, True)


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert parse([], {"GRADIO_SERVER_PORT": "", "SIDECAR_LOG": " "}) == parse([], {})


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("GRADIO_SERVER_PORT", "abc"),
        ("GRADIO_SERVER_PORT", "0"),
        ("GRADIO_SERVER_PORT", "70000"),
        ("SIDECAR_MAX_WAITING", "-3"),
        ("SIDECAR_PRECISION", "fp4"),
        ("SIDECAR_LOG", "xml"),
        ("SIDECAR_METRICS", "perhaps"),
        ("SIDECAR_FRAME_ANCESTORS", "'self'; script-src *"),
        ("SIDECAR_FRAME_ANCESTORS", "a\r\nSet-Cookie: b"),
        ("SIDECAR_PASSWORD", ""),
        ("SIDECAR_PASSWORD", "        "),
        ("SIDECAR_PASSWORD", "seven77"),
    ],
)
def test_a_variable_that_does_not_fit_is_named_in_one_line(variable: str, words: str) -> None:
    with pytest.raises(SidecarError, match=variable) as caught:
        parse([], {variable: words})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [["--port", "abc"], ["--colour", "red"], ["--log"]])
def test_an_option_that_does_not_fit_is_named_in_one_line(arguments: list[str]) -> None:
    with pytest.raises(SidecarError, match=arguments[0]) as caught:
        parse(arguments, {})
    assert "\n" not in str(caught.value)


def test_a_password_brings_a_login() -> None:
    assert parse([], {"SIDECAR_PASSWORD": "eight888"}).login == ("visitor", "eight888")
    environment = {"SIDECAR_PASSWORD": "eight888", "SIDECAR_USER": "desk"}
    assert parse([], environment).login == ("desk", "eight888")
