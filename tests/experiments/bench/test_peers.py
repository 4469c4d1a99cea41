"""llama.cpp as a contestant, and the table of passes by rows."""

from __future__ import annotations

import math
import sys

import pytest

from sidecar_core.__main__ import main
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.bench.llama_cpp import LACKING, LlamaCpp, gguf_files
from sidecar_core.experiments.bench.passes import measure_passes, table
from sidecar_core.experiments.bench.speed import Bench, Timing
from sidecar_core.models.cache import silent
from sidecar_core.models.kernels.calibration import ROWS
from sidecar_core.models.registry import PAIRS
from sidecar_core.models.sources import resolve
from tests.tiny_pair import tiny_engine


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(SidecarError, match="llama-cpp") as told:
        LlamaCpp(tmp_path / "model.gguf")
    assert str(told.value) == LACKING


@pytest.mark.smol
def test_a_pair_that_is_not_of_two_files_is_refused():
    with pytest.raises(SidecarError, match="two GGUF files"):
        gguf_files("smol", silent)  # its draft is its target without two layers


@pytest.mark.slow
@pytest.mark.smol
def test_llama_cpp_writes_as_many_tokens_as_are_asked_for_and_keeps_the_prompt():
    pytest.importorskip("xllamacpp")
    peer = LlamaCpp(resolve(PAIRS["smol"].target, silent).path)
    prompt = list(range(1000, 1100))
    cold, warm = peer.complete(prompt, 1), peer.complete(prompt, 9)
    assert (cold.tokens, warm.tokens) == (1, 9)
    assert cold.prompt_tokens == len(prompt)
    assert warm.prompt_tokens < 5
    assert warm.seconds > 0


def test_passes_are_timed_for_both_models_and_every_number_of_rows():
    result = measure_passes(tiny_engine("int8").pair, 2)
    assert result["rows"] == list(ROWS)
    for times in result["milliseconds"].values():
        assert len(times) == len(ROWS)
        assert all(math.isfinite(ms) and ms > 0 for ms in times)
    lines = table(result).splitlines()
    assert [line.split()[0] for line in lines] == ["rows", "target", "draft"]
    assert "1.00" in lines[1]


def test_a_ratio_over_one_article_leaves_the_others_out():
    bench = Bench()
    bench.timings["auto"] = [Timing(10, 1.0, "bees"), Timing(10, 4.0, "trains")]
    bench.timings["auto_plain"] = [Timing(10, 2.0, "bees"), Timing(10, 2.0, "trains")]
    assert bench.by_article("auto", "auto_plain") == {"bees": 2.0, "trains": 0.5}
    assert bench.ratio("auto", "auto_plain") == 1.25


@pytest.mark.parametrize("options", [["--passes", "--repeats", "0"], ["--tokens", "1"]])
def test_numbers_out_of_range_are_refused_before_anything_is_loaded(options, capsys):
    assert main(["bench", *options]) == 2
    assert "must be from" in capsys.readouterr().err
