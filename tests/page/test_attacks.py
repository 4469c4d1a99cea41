"""What a hostile program can send over HTTP: it gets a clear error, and the server goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio.utils import get_upload_folder

from sidecar_core.page import page as app
from sidecar_core.page.controls import SETTINGS, values_of
from sidecar_core.settings import RunSettings
from tests.hosts import until
from tests.served import Served, options

ARTICLE = "The plant closed."
SUMMARISE: dict[str, Any] = {
    "article": ARTICLE,
    "task": "hashtags",
    "document_masking": True,
    "max_tokens": 20,
    "temperature": 0.0,
    "seed": 0,
    "instruction": "",
    "opening": "",
    "main_task": "summary",
    "main_instruction": "",
}
GOOD: dict[str, dict[str, Any]] = {
    "run": {"article": ARTICLE, **dict(zip(SETTINGS, values_of(RunSettings()), strict=True))},
    "summarise": SUMMARISE,
}
WRONG: dict[str, Any] = {
    "a list": [1, 2],
    "a dictionary": {"a": {"b": [None]}},
    "a file": {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
    "huge": 10**300,
    "negative": -1,
    "long text": "x" * 300_000,
}


def call(served: Served, name: str, data: Any) -> tuple[str, Any]:
    """The last event of a call of the API, and its data."""
    base = f"{served.url}gradio_api/call/{name}"
    with httpx.Client(timeout=60) as client:
        asked = client.post(base, json={"data": data})
        if asked.status_code != 200:
            return "error", asked.text
        told = client.get(f"{base}/{asked.json()['event_id']}").text
    kinds = [line[7:] for line in told.splitlines() if line.startswith("event: ")]
    data = [line[6:] for line in told.splitlines() if line.startswith("data: ")]
    return kinds[-1], json.loads(data[-1])


def works(served: Served) -> bool:
    return all(call(served, name, list(GOOD[name].values()))[0] == "complete" for name in GOOD)


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", GOOD)
def test_a_wrong_value_for_any_parameter_is_refused_or_harmless(
    served: Served, name: str, what: str
) -> None:
    for parameter in GOOD[name]:
        before = served.engine.calls
        kind, said = call(served, name, list((GOOD[name] | {parameter: WRONG[what]}).values()))
        if kind == "complete":  # a component made something valid of it
            continue
        assert kind == "error", parameter
        assert served.engine.calls == before, parameter
        assert "Traceback" not in str(said)
        if name == "summarise":  # of `/run`, Gradio's own components refuse some, at any length
            assert len(str(said)) < 1000, parameter
    assert works(served)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", ["four", None, [4], {"a": 1}, 513, "4"])
def test_a_number_that_is_none_is_refused_in_words(served: Served, name: str, value: Any) -> None:
    kind, said = call(served, name, list((GOOD[name] | {"max_tokens": value}).values()))
    assert kind == "error"
    assert any(word in str(said) for word in ("max_tokens", "number", "maximum", "None"))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("data", [[], [None], "text", {"a": 1}, None, [ARTICLE] * 50])
def test_a_wrong_number_of_values_is_an_error_and_no_crash(
    served: Served, name: str, data: Any
) -> None:
    kind, _ = call(served, name, data)
    assert kind in ("error", "complete")
    assert works(served)


@pytest.mark.parametrize("name", GOOD)
def test_ten_megabytes_of_text_are_refused_before_any_model(served: Served, name: str) -> None:
    before = served.engine.calls
    kind, said = call(served, name, list((GOOD[name] | {"article": "a " * 5_000_000}).values()))
    assert kind == "error"
    assert "200,000" in str(said)
    assert served.engine.calls == before
    assert works(served)


@pytest.mark.parametrize(
    "path",
    [
        "gradio_api/file=/etc/passwd",
        "gradio_api/file=../../../../etc/passwd",
        "gradio_api/file=..%2f..%2f..%2fetc%2fpasswd",
        "gradio_api/file=app.py",
        "gradio_api/file=.git/config",
        "gradio_api/file=/proc/self/environ",
        "gradio_api/file=file:///etc/passwd",
        "file=/etc/passwd",
        "static/../../../../etc/passwd",
        "assets/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "gradio_api/proxy=http://127.0.0.1:1/",
    ],
)
def test_no_file_of_the_machine_can_be_read(served: Served, path: str) -> None:
    answer = httpx.get(httpx.URL(served.url).copy_with(raw_path=f"/{path}".encode()), timeout=60)
    assert answer.status_code >= 400
    assert "root:" not in answer.text


def upload(served: Served, name: str, data: bytes) -> httpx.Response:
    files = {"files": (name, data, "text/plain")}
    return httpx.post(f"{served.url}gradio_api/upload", files=files, timeout=60)


@pytest.mark.parametrize(
    "name", ["../../evil.txt", "/etc/evil.txt", "a/../../b.txt", "..\\..\\evil.txt", "x" * 5000]
)
def test_names_of_uploads_stay_inside_the_upload_folder(served: Served, name: str) -> None:
    answer = upload(served, name, b"text")
    if answer.status_code == 200:
        (path,) = answer.json()
        assert Path(get_upload_folder()).resolve() in Path(path).resolve().parents
    assert works(served)


def test_a_huge_upload_is_refused_by_its_size(served: Served) -> None:
    assert upload(served, "huge.txt", b"\0" * 8_000_000).status_code == 413
    assert works(served)


@pytest.mark.slow
def test_an_uploaded_file_is_deleted_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "KEEP_UPLOADS", 1)
    served = Served(options())
    (path,) = upload(served, "mine.txt", b"mine").json()
    assert Path(path).read_bytes() == b"mine"
    until(lambda: not Path(path).exists(), seconds=30)
    served.demo.close(verbose=False)
