"""int8 networks written and mapped back."""

from __future__ import annotations

import pytest
import torch

from sidecar_core.models import int8_store
from sidecar_core.models.kernels.int8 import Int8Linear, quantize
from tests.tiny import tiny_model


def test_what_is_loaded_is_what_was_saved(tmp_path):
    kept, wanted = tiny_model(0).network, tiny_model(0).network
    int8_store.save(kept, tmp_path)
    quantize(wanted)
    loaded = int8_store.load(tmp_path)
    ids = torch.arange(20)[None]
    assert torch.equal(loaded(input_ids=ids).logits, wanted(input_ids=ids).logits)
    for name, tensor in wanted.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)


def test_weights_lie_where_the_kernel_can_load_them(tmp_path):
    int8_store.save(tiny_model(0).network, tmp_path)
    start = int8_store._data_start(tmp_path / int8_store.FILE)
    assert start % int8_store.ALIGNMENT == 0
    for module in int8_store.load(tmp_path).modules():
        if isinstance(module, Int8Linear):
            assert module.weight.data_ptr() % int8_store.ALIGNMENT == 0


def test_a_cut_file_is_not_loaded(tmp_path):
    int8_store.save(tiny_model(0).network, tmp_path)
    file = tmp_path / int8_store.FILE
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(Exception, match=r"(?i)safetensor|header|incomplete"):
        int8_store.load(tmp_path)
