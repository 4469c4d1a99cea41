"""The page's API: the documented client example, and what a program is told that asks wrongly."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from sidecar_core.examples import Example
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.hosts import ready_host
from tests.served import page_of
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
ENGINE = tiny_engine()

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
EXAMPLE = next(
    block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Client(" in block
)
"""The client example of the documentation."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with page_of(ready_host(ENGINE), (Example("Boilers", ARTICLE),)) as address:
        yield address


def test_the_client_example_gives_what_the_engine_gives(url, capsys):
    exec(EXAMPLE, {"url": url, "article": ARTICLE})
    settings = RunSettings(task="headline", max_tokens=60)
    wanted = RunReport.of(ENGINE.stream(ARTICLE, settings)).as_dict()
    shown = capsys.readouterr().out
    assert f"{wanted['summary']} {wanted['sidecar']['tags']}\n" in shown


def test_a_free_task_is_asked_for_in_words(url):
    result = Client(url, verbose=False).predict(
        ARTICLE, "free", max_tokens=9, instruction="Ask a question.", api_name="/summarise"
    )
    wanted = RunSettings(task="free", task_suffix="Ask a question.", max_tokens=9)
    assert result["settings"] == wanted.as_dict()
    assert result["sidecar"]["kv_tokens"] > 0


def test_every_setting_of_the_endpoint_reaches_the_run(url):
    asked = {"task": "keywords", "max_tokens": 9, "temperature": 0.7, "seed": 5}
    result = Client(url, verbose=False).predict(
        ARTICLE, document_masking=False, api_name="/summarise", **asked
    )
    assert result["settings"].items() >= {"document_masking": False, **asked}.items()
    assert result["emitted"] <= 9


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"article": "  "}, "The article is empty"),
        ({"task": "sonnet"}, "There is no task 'sonnet'"),
        ({"task": "free"}, "needs an instruction"),
        ({"max_tokens": 100_000}, "max_tokens is 100000"),
        ({"article": "a" * 1_000_000}, "the limit is"),
    ],
)
def test_a_wrong_request_is_answered_with_one_clear_line(url, asked, complaint):
    with pytest.raises(AppError, match=complaint):
        Client(url, verbose=False).predict(**{"article": ARTICLE, **asked}, api_name="/summarise")


def test_the_api_describes_itself(url):
    described = Client(url, verbose=False).view_api(return_format="dict")
    endpoint = described["named_endpoints"]["/summarise"]
    assert [p["parameter_name"] for p in endpoint["parameters"]][:2] == ["article", "task"]


def test_as_an_mcp_server_the_page_offers_the_same_as_a_tool():
    pytest.importorskip("mcp", reason="gradio[mcp] is not installed")
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def ask(address: str) -> str:
        async with (
            streamablehttp_client(f"{address}gradio_api/mcp/") as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            tool = next(tools[name] for name in tools if name.endswith("summarise"))
            assert "Summarise an article" in (tool.description or "")
            answer = await session.call_tool(tool.name, {"article": ARTICLE, "max_tokens": 20})
            return str(answer.content[0].text)  # type: ignore[union-attr]

    with page_of(ready_host(ENGINE), (Example("Boilers", ARTICLE),), mcp_server=True) as address:
        answer = ast.literal_eval(asyncio.run(ask(address)))
    wanted = RunReport.of(ENGINE.stream(ARTICLE, RunSettings(max_tokens=20))).as_dict()
    assert answer["summary"] == wanted["summary"]


def test_whole_numbers_may_be_written_with_a_point(url):
    result = Client(url, verbose=False).predict(
        ARTICLE, max_tokens=4.0, seed=1.0, temperature=0.5, api_name="/summarise"
    )
    assert (result["settings"]["max_tokens"], result["settings"]["seed"]) == (4, 1)


def test_half_characters_in_a_task_are_no_crash(url):
    result = Client(url, verbose=False).predict(
        ARTICLE, "free", max_tokens=4, instruction="List \\ud800", api_name="/summarise"
    )
    assert result["emitted"] <= 4
