"""What is measured of a machine once, kept, and measured again where it does not fit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models.kernels import calibration
from sidecar_core.models.kernels.calibration import (
    CHUNKS,
    ROWS,
    Calibration,
    calibration_of,
    machine,
)
from sidecar_core.models.kernels.int8 import Int8Linear, quantize
from sidecar_core.models.kernels.kind import BLOCK, decodes, kind_of_pass, pass_kind
from sidecar_core.models.pair import LoadedModel
from tests.tiny import tiny_model

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path))
    return tmp_path / "calibrations"


def asked(said: list[str] | None = None, fingerprint: str = "abc") -> Calibration:
    def hear(progress: LoadProgress) -> None:
        if said is not None:
            said.append(progress.message)

    return calibration_of(tiny_model(0).network, "tiny", fingerprint, CPU, hear)


def test_it_is_measured_once_and_then_read(folder):
    said: list[str] = []
    first = asked(said)
    assert said == ["Timing tiny on this machine (once)"]
    assert asked(said) == first
    assert len(said) == 1
    assert first.rows == ROWS
    assert all(seconds > 0 for seconds in first.seconds)
    assert first.chunk in CHUNKS
    assert first.rows_alike


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        '{"format": 0}',
        '{"format": 2}',
        '{"format": 3}',
        '{"format": 3, "rows": [1], "seconds": [1], "chunk": 64, "rows_alike": true, "kernel": ""}',
        '{"format": 3, "rows": "x", "seconds": [], "chunk": 64, "rows_alike": true, "kernel": ""}',
    ],
)
def test_a_damaged_file_is_measured_again(folder, damaged):
    asked()
    (path,) = folder.iterdir()
    path.write_text(damaged, encoding="utf-8")
    said: list[str] = []
    asked(said)
    assert len(said) == 1
    assert json.loads(path.read_text("utf-8"))["format"] == calibration.FORMAT


@pytest.mark.parametrize(
    "wrong",
    [{"seconds": [-1.0] * len(ROWS)}, {"chunk": 7}, {"rows": [3]}, {"kernel": "other"},
     {"kernel": []}, {"kernel": "integer"}],
)  # fmt: skip
def test_numbers_that_cannot_be_are_measured_again(folder, wrong):
    asked()
    (path,) = folder.iterdir()
    kept = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(kept | wrong), encoding="utf-8")
    said: list[str] = []
    asked(said)
    assert len(said) == 1


def test_other_weights_and_other_machines_have_files_of_their_own(folder, monkeypatch):
    asked()
    asked(fingerprint="other")
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(calibration, "_cpu_name", lambda: "another processor")
    asked()
    assert len(list(folder.iterdir())) == 3


def test_a_machine_is_its_processor_and_its_threads(monkeypatch):
    here = machine(CPU)
    assert machine(CPU) == here
    assert machine(CPU, lambda: "another processor") != here
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    assert machine(CPU) != here


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "calibrations").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(SidecarError, match="SIDECAR_CACHE"):
        asked()


def test_rows_that_depend_on_each_other_are_noticed(monkeypatch):
    model = tiny_model(0)
    layer = model.network.model.layers[0].mlp.up_proj
    monkeypatch.setattr(
        type(layer), "forward", lambda self, x: x @ self.weight.T + 1e-6 * x.shape[1]
    )
    assert not calibration.measure(model.network, CPU).rows_alike


def test_measuring_decodes_as_a_run_does_and_reads_in_whole_blocks(monkeypatch):
    kinds = []
    model = tiny_model(0)
    inner = model.network.forward

    def watched(*args, **options):
        kinds.append((kind_of_pass(), options["input_ids"].shape[1]))
        return inner(*args, **options)

    monkeypatch.setattr(model.network, "forward", watched)
    calibration.measure(model.network, CPU)
    assert {rows % BLOCK for kind, rows in kinds if kind == "read"} == {0}
    assert {rows for kind, rows in kinds if kind == "decode"} == set(ROWS)
    assert {kind for kind, _ in kinds} == {"read", "decode"}


@pytest.mark.parametrize(
    ("narrow", "wide", "chunk"),
    [(1e-3, 2e-3, 1024), (0.2, 0.35, 128), (0.3, 1.2, 32), (5.0, 20.0, 32), (0.01, 0.005, 1024)],
)
def test_a_chunk_is_what_a_stop_may_wait_for(narrow, wide, chunk):
    assert calibration._chunk(narrow, wide) == chunk


def test_the_kind_of_a_pass_ends_with_it_whatever_happens():
    def fails() -> None:
        with pass_kind("decode"):
            assert decodes()
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    assert kind_of_pass() == "masked"


def test_a_pass_is_timed_again_until_its_shortest_time_was_not_an_accident():
    calm, waited = [1.0, 2.0], [1.0, 9.0]
    assert not calibration._noisy([waited, calm, calm])
    assert calibration._noisy([waited, waited, calm])


def test_a_pass_of_fewer_rows_never_counts_as_longer_than_one_of_more():
    assert calibration._shortest([[3.0, 2.0, 5.0], [4.0, 2.5, 4.0]]) == (2.0, 2.0, 4.0)


def int8_model() -> LoadedModel:
    model = tiny_model(0)
    quantize(model.network)
    return model


def kernels_of(network: torch.nn.Module) -> set[str]:
    return {layer.kernel for layer in network.modules() if isinstance(layer, Int8Linear)}


@pytest.mark.parametrize(
    ("integer", "packed", "taken"),
    [(1.0, 2.0, "integer"), (1.2, 1.0, "integer"), (1.3, 1.0, "packed")],
)
def test_int8_takes_the_kernel_that_is_quicker_here(integer, packed, taken, monkeypatch):
    seconds = {"integer": integer, "packed": packed}
    inner = calibration._measured

    def timed(network, device, kernel):
        assert kernels_of(network) == {kernel}
        found = inner(network, device, kernel)
        return dataclasses.replace(found, seconds=(seconds[kernel],) * len(ROWS))

    monkeypatch.setattr("sidecar_core.models.kernels.int8.integers_are_exact", lambda: True)
    monkeypatch.setattr(calibration, "_measured", timed)
    network = int8_model().network
    assert calibration_of(network, "tiny", "abc", CPU, lambda _: None).kernel == taken
    assert kernels_of(network) == {taken}
    again = int8_model().network
    calibration_of(again, "tiny", "abc", CPU, lambda _: None)  # as it was kept
    assert kernels_of(again) == {taken}


def test_a_kernel_that_this_machine_lacks_is_not_taken_from_a_file(folder, monkeypatch):
    calibration_of(int8_model().network, "tiny", "abc", CPU, lambda _: None)
    (path,) = folder.iterdir()
    kept = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(kept | {"kernel": "integer"}), encoding="utf-8")
    monkeypatch.setattr("sidecar_core.models.kernels.int8.integers_are_exact", lambda: False)
    network = int8_model().network
    assert calibration_of(network, "tiny", "abc", CPU, lambda _: None).kernel == "packed"
    assert kernels_of(network) == {"packed"}
