"""The load test: its arithmetic, and a few clients at a real server over real weights."""

from __future__ import annotations

import json

import pytest
from gradio_client.exceptions import AppError

from sidecar_core.__main__ import main
from sidecar_core.errors import Busy
from sidecar_core.experiments.bench import load_test
from sidecar_core.experiments.bench.load_test import (
    Answer,
    LoadReport,
    article,
    percentile,
)

KEYS = {"answered", "refused", "failed", "mixed", "waiting", "rss_bytes"}


OWN = {1: Answer(1, 101, (5, 6), 0.1), 2: Answer(2, 102, (7, 8), 0.1)}


def report(*answers: Answer) -> LoadReport:
    made = LoadReport(dict(OWN))
    for answer in answers:
        made.add(answer)
    return made


def test_every_client_has_an_article_of_its_own_and_of_its_own_length():
    articles = [article(n) for n in range(40)]
    assert len({len(text.split()) for text in articles}) == 40
    assert all(f"Marker{n} " in text for n, text in enumerate(articles))


def test_an_answer_to_another_clients_question_is_counted_as_mixed():
    own = 3 * list(OWN.values())
    assert report(*own).mixed() == 0
    assert report(*own, Answer(1, 102, (7, 8), 0.1)).mixed() == 1
    assert report(*own, Answer(1, 101, (5, 9), 0.1)).mixed() == 1


def test_two_clients_that_always_get_the_same_prompt_are_mixed():
    made = report(Answer(1, 101, (5,), 0.1), Answer(2, 101, (5,), 0.1))
    made.alone = {answer.client: answer for answer in made.answers}
    assert made.mixed() == 2


def test_a_full_queue_is_a_refusal_and_anything_else_a_failure():
    made = report()
    made.add(AppError("Whatever it says.", title=Busy.title))
    made.add(AppError("The article is empty."))
    made.add(TimeoutError())
    result = made.as_dict()
    assert (result["refused"], result["failed"]) == (1, 2)


def test_nothing_answered_is_no_figure_and_still_json():
    result = report().as_dict()
    assert result["waiting"] == {"median": None, "p95": None}
    assert json.loads(json.dumps(result, allow_nan=False)).keys() >= KEYS


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 0), (2, 1), (19, 18), (20, 18), (21, 19), (100, 94)]
)
def test_the_95th_percentile_is_the_nearest_rank(count, wanted):
    assert percentile(list(range(count)), 0.95) == wanted


@pytest.mark.parametrize(
    "options", [["--clients", "0"], ["--clients", "2", "--seconds", "0"], ["--clients", "9999"]]
)
def test_numbers_out_of_range_are_refused(options, capsys):
    assert main(["bench", *options]) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_that_does_not_come_up_is_one_clear_line(capsys):
    assert main(["bench", "--clients", "1", "--seconds", "1", "--precision", "fp32",
                 "--pair", "no/such,pair/here"]) == 2  # fmt: skip
    assert "did not come up" in capsys.readouterr().err


OTHER_SERVER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/":
            {otherwise}
        self.send_response(200)
        self.end_headers()

print("a server of another kind", flush=True)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.mark.parametrize(
    "otherwise",
    ["return self.connection.close()", "return self.send_error(404)", "pass  # an empty answer"],
)
def test_a_server_without_the_api_is_one_clear_line(otherwise, tmp_path, monkeypatch, capsys):
    """It says nothing, not found, or nothing of use to who asks for anything but the page."""
    app = tmp_path / "app.py"
    app.write_text(OTHER_SERVER.format(otherwise=otherwise))
    monkeypatch.setattr(load_test, "APP", (str(app),))
    assert main(["bench", "--clients", "1", "--seconds", "1", "--pair", "smol"]) == 2
    assert "did not come up" in capsys.readouterr().err


GRADIO_SERVER = """
import sys
import gradio

def summarise(article: str, max_tokens: int) -> str:
    return article

port = int(sys.argv[sys.argv.index("--port") + 1])
inputs = [gradio.Textbox(), gradio.Number()]
gradio.Interface(summarise, inputs, "text", api_name="summarise").launch(server_port=port)
"""


@pytest.mark.slow
def test_what_fails_while_a_server_is_up_is_not_told_as_its_fault(tmp_path, monkeypatch):
    app = tmp_path / "app.py"
    app.write_text(GRADIO_SERVER)
    monkeypatch.setattr(load_test, "APP", (str(app),))
    seen = []

    def fail_at_a_server() -> None:
        with load_test.served("smol", "auto", None) as (_, process):
            seen.append((process, process.is_running()))
            raise TimeoutError("somebody else's")

    with pytest.raises(TimeoutError, match="somebody else's"):
        fail_at_a_server()
    [(process, was_running)] = seen
    assert was_running
    assert not process.is_running()


@pytest.mark.slow
@pytest.mark.smol
def test_a_few_clients_at_a_real_server_get_their_own_answers(smol, capsys):
    options = ["--clients", "3", "--seconds", "6", "--max-tokens", "2", "--pair", "smol"]
    assert main(["bench", *options, "--precision", "fp32", "--json"]) == 0
    out = capsys.readouterr().out
    result = json.loads(out)
    assert result.keys() >= KEYS
    assert result["answered"] >= 3
    assert result["clients_answered"] == 3
    assert (result["failed"], result["mixed"], result["refused"]) == (0, 0, 0)
    assert result["rss_bytes"]["start"] > 0
    assert result["page_seconds"]["max"] is not None
