"""The page's API: what another client can send, and what comes back. No browser."""

from __future__ import annotations

import json
import threading
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.utils import diff
from gradio_client.exceptions import AppError

from sidecar_core.errors import BadInput, Busy, SidecarError
from sidecar_core.events import TokenBonus, TokenCorrected, TokenDrafted
from sidecar_core.host.model_host import HostStatus, ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import words
from sidecar_core.page.controls import SETTINGS, RunInputs, values_of
from sidecar_core.page.edge import read_upload
from sidecar_core.page.looks import launch_arguments
from sidecar_core.page.page import _models, _outputs, _Page
from sidecar_core.prompts import Article
from sidecar_core.recording import read_recording
from sidecar_core.server.options import parse
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.view.run_view import LiveRun
from tests.runs import HOSTILE, ScriptedEngine, one_round, whole_run
from tests.served import Served

ROUNDS: tuple[Any, ...] = (
    ([(" listeria", 0.91), (" found", 0.83)], (" and", 0.3), " patients"),
    ([(" ice", 0.91), (" cream", 0.83), (" in", 0.3), (" the", 0.9)], None, " patients"),
)

STATUS, STREAM, CHART = 0, 2, 3


@pytest.fixture
def client(served: Served) -> Any:
    from gradio_client import Client

    return Client(served.url, verbose=False)


def inputs(article: str = "", **changes: Any) -> dict[str, Any]:
    """The page's inputs by name."""
    settings = dict(zip(SETTINGS, values_of(RunSettings()), strict=True))
    return {"article": article} | settings | changes


def values(**changes: Any) -> list[Any]:
    """The settings in the order of `/run`."""
    return list(inputs(**changes).values())[1:]


def test_settings_and_components_values_are_two_forms_of_the_same() -> None:
    settings = RunSettings(gamma=2, temperature=0.5, draft_prompt="identical", seed=9)
    assert RunInputs("", *values_of(settings)).settings() == settings


def test_whole_floats_from_sliders_become_integers() -> None:
    assert RunInputs(**inputs(gamma=3.0)).settings().gamma == 3


def test_what_a_model_brings_stays_inside_its_attribute() -> None:
    names: set[str] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, found: names.update(name for name, _ in found)  # type: ignore[method-assign]
    parser.feed(_models(HostStatus("failed", 'bad "x" onmouseover="alert(1)'), ""))
    assert names == {"class", "title", "style"}


def test_a_run_through_the_api_ends_with_the_summary(client: Any) -> None:
    result = client.predict("The plant closed.", *values(), api_name="/run")
    assert result[STATUS]["kind"] == "done"
    assert ">plant<" in result[STREAM]["done"]


@pytest.mark.parametrize("size", [MAX_ARTICLE_CHARS + 1, 1_000_000])
def test_a_huge_article_is_refused_before_any_model(client: Any, served: Served, size: int) -> None:
    with pytest.raises(Exception, match=f"the limit is {MAX_ARTICLE_CHARS:,}"):
        client.predict("x" * size, *values(), api_name="/run")
    assert served.engine.calls == 0


@pytest.mark.parametrize("article", ["", "   \n "])
def test_a_blank_article_is_refused_in_words(client: Any, served: Served, article: str) -> None:
    with pytest.raises(Exception, match="article is empty"):
        client.predict(article, *values(), api_name="/run")
    assert served.engine.calls == 0


@pytest.mark.parametrize(
    "change",
    [{"gamma": 99}, {"gamma": 2.5}, {"temperature": -1}, {"top_p": 0}, {"max_tokens": 0}],
)
def test_settings_out_of_range_are_refused_and_the_next_run_works(
    client: Any, served: Served, change: dict[str, Any]
) -> None:
    with pytest.raises(Exception):  # noqa: B017 - Gradio's own components refuse some of them
        client.predict("The plant closed.", *values(**change), api_name="/run")
    assert served.engine.calls == 0
    assert client.predict("The plant closed.", *values(), api_name="/run")[STATUS]["kind"] == "done"


def test_an_error_reaches_the_client_in_its_own_words(client: Any, served: Served) -> None:
    with pytest.raises(Exception, match="too long"):
        client.predict("word " * 500, *values(), api_name="/run")


@pytest.mark.parametrize("endpoint", ["/run", "/summarise"])
def test_a_programs_error_has_a_title_that_names_its_kind(
    client: Any, served: Served, endpoint: str
) -> None:
    settings = values() if endpoint == "/run" else []
    with pytest.raises(AppError) as bad:
        client.predict("", *settings, api_name=endpoint)
    tickets = [served.host.queue.enter() for _ in range(served.host.queue.max_waiting + 1)]
    try:
        with pytest.raises(AppError) as busy:
            client.predict("The plant closed.", *settings, api_name=endpoint)
    finally:
        for ticket in tickets:
            served.host.queue.leave(ticket)
    assert (bad.value.title, busy.value.title) == (BadInput.title, Busy.title)


@pytest.fixture
def page(tmp_path: Path) -> _Page:
    """A page's handlers, without the page."""
    host = ModelHost(lambda progress: (ScriptedEngine(), "scripted"))
    host.load_here()
    return _Page(host, (), tmp_path)


def test_a_huge_article_is_not_tokenised_to_be_counted(page: _Page) -> None:
    engine: Any = page.host.engine()
    read: list[int] = []
    engine.prompts.plain = lambda text: read.append(len(text)) or ()
    assert "at most 200,000" in page.look(Session(), **inputs("x" * (MAX_ARTICLE_CHARS + 1)))[0]
    assert read == []
    page.look(Session(), **inputs("x" * MAX_ARTICLE_CHARS))
    assert read == [MAX_ARTICLE_CHARS]


def test_a_huge_article_is_not_tokenised_to_be_cut(page: _Page) -> None:
    engine: Any = page.host.engine()
    engine.prompts.first_tokens = None
    with pytest.raises(gr.Error, match="the limit is 200,000"):
        page.first_tokens(**inputs("x" * (MAX_ARTICLE_CHARS + 1)))


def test_an_unknown_task_is_refused_before_it_takes_a_place() -> None:
    with pytest.raises(SidecarError, match="There is no task 'juggling'"):
        RunInputs(**inputs(task="juggling")).settings()


def test_an_uploaded_text_is_refused_by_its_size() -> None:
    with pytest.raises(SidecarError, match=r"800,001 bytes; .* 200,000 characters"):
        read_upload(b"x" * (4 * MAX_ARTICLE_CHARS + 1))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b" \r\n\t", "\u200b\n".encode()])
def test_an_upload_with_nothing_to_read_is_refused_and_the_article_stays(
    page: _Page, data: bytes
) -> None:
    with pytest.raises(gr.Error, match="The file is empty; the article on the page stays"):
        page.read(data)


def test_an_upload_that_is_no_text_is_refused_and_the_article_stays(page: _Page) -> None:
    with pytest.raises(gr.Error, match="not UTF-8 text"):
        page.read(b"\0")


def test_an_uploaded_text_comes_as_it_is(page: _Page) -> None:
    assert page.read("\ufeff One.\r\nTwo 🐝 ".encode()) == " One.\r\nTwo 🐝 "


def test_no_offer_to_cut_is_made_where_a_task_leaves_no_room_for_an_article(page: _Page) -> None:
    engine: Any = page.host.engine()
    engine.article_limit = lambda settings: 0
    count, offer, *_ = page.look(Session(), **inputs("One word."))
    assert "the limit is 0" in count
    assert not offer.visible


def test_half_a_character_in_an_article_is_not_in_the_file_that_is_saved(page: _Page) -> None:
    session, article = Session(), "The plant \ud800 closed."
    list(page.run(SimpleNamespace(session_hash="a"), session, **inputs(article)))
    saved = page.recordings.on_save(session, article, True)
    assert read_recording(saved).article == "The plant   closed."


def test_markup_in_a_link_is_text(page: _Page) -> None:
    asked: Any = SimpleNamespace(query_params={"task": HOSTILE})
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in page.open(asked)[-2]


def test_two_clients_see_only_their_own(served: Served) -> None:
    from gradio_client import Client

    def events(settings: RunSettings) -> Any:
        return whole_run(settings, tag=f"seed{settings.seed}")

    served.engine.events = events
    served.engine.pause = 0.005
    results: dict[int, Any] = {}

    def visit(seed: int) -> None:
        own = Client(served.url, verbose=False)
        results[seed] = own.predict("The plant closed.", *values(seed=seed), api_name="/run")

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, result in results.items():
        mine = {n for n in range(1, 5) if f"#seed{n}" in result[4]["list"]}
        assert mine == {seed}
    assert served.engine.most_active == 1


def test_the_api_offers_the_run_and_its_plain_form_and_nothing_else(client: Any) -> None:
    assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/run", "/summarise"]


def test_a_run_sends_at_most_three_times_what_it_ends_with() -> None:
    """Updates go over the wire as Gradio's diff. The most there can be: one for each draft, and one
    for the judgement of each round, which comes at once. The chart has its own, slower pace."""
    run = LiveRun(Article.of("doc"), RunSettings())
    sent, before = 0, None
    for event in (e for n in range(40) for e in one_round(n, *ROUNDS[n % 2])):
        run.add(event)
        if isinstance(event, TokenDrafted | TokenCorrected | TokenBonus):
            now = [o for n, o in enumerate(_outputs(run.view())) if n != CHART][:7]
            sent += len(json.dumps(now if before is None else diff(before, now)))
            before = now
    assert before is not None
    assert sent <= 3 * len(json.dumps(before))


def test_inputs_stay_out_of_the_browsers_storage_and_no_font_comes_from_afar() -> None:
    arguments = launch_arguments()
    assert arguments["run_history"] is False
    assert "://" not in arguments["css"]
    assert "://" not in arguments["head"]


def test_no_template_evaluates_a_value_twice() -> None:
    templates = [t for name, t in vars(words).items() if name.isupper()]
    assert templates
    assert not any("{{" in template for template in templates)


def test_the_time_limit_of_a_run_comes_from_the_command_line_or_the_environment() -> None:
    assert parse([], {}).max_seconds == 600
    assert parse([], {"SIDECAR_MAX_SECONDS": "90"}).max_seconds == 90
    assert parse(["--max-seconds", "30"], {"SIDECAR_MAX_SECONDS": "90"}).max_seconds == 30
    for nonsense in ("0", "nan", "soon"):
        with pytest.raises(SidecarError, match="from 1 to 86400"):
            parse([], {"SIDECAR_MAX_SECONDS": nonsense})


def test_an_answer_that_the_time_limit_cut_off_says_so(
    client: Any, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.host, "max_seconds", 0.3)
    served.engine.pause = 0.1
    result = client.predict("The plant closed.", api_name="/summarise")
    assert result["stopped"] == "Stopped: the time limit of 0.3 s was reached."
    monkeypatch.undo()
    assert result["ending"] == "timed_out"
    whole = client.predict("The plant closed.", api_name="/summarise")
    assert whole["ending"] == "finished"
    assert "stopped" not in whole
