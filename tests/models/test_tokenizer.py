"""Which tokens end a text."""

from __future__ import annotations

import dataclasses

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.models.tokenizer import eos_ids
from tests.tiny import tiny_model
from tests.tiny_pair import tiny_engine
from tests.toy_tokenizers import toy_tokenizer

BEHIND = {"<|end|>\\n": {"<|bos|>", "<|end|>"}, " <|bos|>": {"<|bos|>"}, "\\n": {"<|bos|>"}}
"""What a template puts behind the assistant's words: what ends a text."""


@pytest.mark.parametrize("behind", BEHIND)
def test_only_a_special_token_behind_the_assistants_words_ends_a_text(behind: str) -> None:
    tokenizer = toy_tokenizer(
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '" + behind + "' }}"
        "{% endfor %}"
    )
    tokenizer.eos_token = "<|bos|>"
    network = tiny_model(0).network
    found = eos_ids(network, tokenizer)
    named = network.generation_config.eos_token_id
    assert set(tokenizer.convert_ids_to_tokens(sorted(found - {named}))) == BEHIND[behind]
    pair = tiny_engine().pair
    model = dataclasses.replace(pair.target, eos_ids=found)
    engine = Engine(dataclasses.replace(pair, target=model, draft=model, tokenizer=tokenizer))
    assert engine.stop_ids == found
