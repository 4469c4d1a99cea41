"""Claims about the networks that the engine can run: their positions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.errors import SidecarError
from sidecar_core.models.loading import load_pair
from tests.models.tiny_weights import save_folder

LONG = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
LENGTHS = {"original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "has dynamic positions"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "has dynamic positions"),
        ({"rope_parameters": LONG | LENGTHS}, "has longrope positions"),
        ({"rope_parameters": {"full_attention": LONG | LENGTHS}}, "has longrope positions"),
        ({"rope_parameters": {"rope_type": "of-tomorrow"}}, "has of-tomorrow positions"),
    ],
)
def test_positions_that_follow_the_length_of_the_text_are_refused(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    target, draft = save_folder(tmp_path / "target"), save_folder(tmp_path / "draft")
    change_config(draft, change)
    with pytest.raises(SidecarError, match=told):
        load_pair(f"{target},{draft}", precision="fp32")


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "linear", "factor": 2.0},
        {"rope_type": "yarn", "factor": 2.0} | LENGTHS,
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        | LENGTHS,
    ],
)
def test_a_text_read_in_chunks_under_fixed_scaled_positions_is_the_text_read_at_once(
    tmp_path: Path, scaling: dict[str, object]
) -> None:
    """Also past the length that the scaling began from."""
    folder = save_folder(tmp_path / "model")
    change_config(folder, {"rope_scaling": scaling})
    pair = load_pair(f"{folder},{folder}", precision="fp32")
    ids = [token % 400 for token in range(150)]
    whole, parts = SegmentedCache(), SegmentedCache()
    at_once = forward(pair.target, whole, ids, 0, segment="document")
    for start in range(0, 150, 30):
        last = forward(pair.target, parts, ids[start : start + 30], start, segment="document")
    torch.testing.assert_close(last, at_once, atol=1e-5, rtol=1e-4)


def change_config(folder: Path, change: dict[str, object]) -> None:
    file = folder / "config.json"
    before = {k: v for k, v in json.loads(file.read_text()).items() if not k.startswith("rope")}
    file.write_text(json.dumps({**before, **change}))
