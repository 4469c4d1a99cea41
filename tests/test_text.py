from __future__ import annotations

import random

import pytest
from transformers import PreTrainedTokenizerBase

from sidecar_core.models.pair import Pair
from sidecar_core.text import TokenStream
from tests.toy_tokenizers import toy_tokenizer

REPLACEMENT = "\ufffd"
TEXTS = [
    "The 👩‍👩‍👧 council — 𒀀 — voted, naïvely.",
    "   leading spaces,  double  spaces \n\n  and lines",
    "שלום مرحبا हिन्दी 日本語",
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return toy_tokenizer()


def ids_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("text", TEXTS)
def test_streamed_text_equals_decoding_the_whole_and_never_breaks_a_character(
    text: str, tokenizer: PreTrainedTokenizerBase
) -> None:
    stream = TokenStream(tokenizer)
    updates = [stream.push(token) for token in ids_of(tokenizer, text)]
    assert all(REPLACEMENT not in update for update in updates)
    assert "".join(updates) == text
    assert stream.flush() == ""


def test_a_character_comes_with_its_last_token(tokenizer: PreTrainedTokenizerBase) -> None:
    ids = ids_of(tokenizer, "𒀀")
    assert len(ids) == 4
    stream = TokenStream(tokenizer)
    assert [stream.push(token) for token in ids] == ["", "", "", "𒀀"]


def test_a_real_replacement_character_passes(tokenizer: PreTrainedTokenizerBase) -> None:
    text = f"a{REPLACEMENT}b {REPLACEMENT}{REPLACEMENT} c{REPLACEMENT}"
    stream = TokenStream(tokenizer)
    updates = [stream.push(token) for token in ids_of(tokenizer, text)]
    assert "".join(updates) + stream.flush() == text


def test_flush_gives_what_a_cut_character_decodes_to(tokenizer: PreTrainedTokenizerBase) -> None:
    ids = ids_of(tokenizer, "old 𒀀")[:-1]
    stream = TokenStream(tokenizer)
    text = "".join(stream.push(token) for token in ids)
    assert text == "old "
    assert text + stream.flush() == tokenizer.decode(ids)
    assert stream.flush() == ""


def test_random_tokens_stream_to_their_decoded_text(tokenizer: PreTrainedTokenizerBase) -> None:
    rng = random.Random(0)
    for _ in range(200):
        ids = [rng.randrange(len(tokenizer)) for _ in range(25)]
        stream = TokenStream(tokenizer)
        text = "".join(stream.push(token) for token in ids) + stream.flush()
        assert text == tokenizer.decode(ids, skip_special_tokens=True)


def test_special_tokens_add_no_text(tokenizer: PreTrainedTokenizerBase) -> None:
    stream = TokenStream(tokenizer)
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    call = tokenizer.convert_tokens_to_ids("<tool_call>")
    first, *rest = ids_of(tokenizer, "𒀀")
    assert stream.push(call) == "<tool_call>"
    assert [stream.push(token) for token in (end, first, end, *rest)] == ["", "", "", "", "", "𒀀"]
    assert stream.preview([end]) == [""]


def test_a_preview_shows_drafted_tokens_and_changes_nothing(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    committed, drafted = ids_of(tokenizer, "old 𒀀"), ids_of(tokenizer, " 👩 boilers")
    stream = TokenStream(tokenizer)
    for token in committed[:-2]:
        stream.push(token)
    preview = stream.preview([*committed[-2:], *drafted])
    assert preview[:2] == ["…", "𒀀"]
    assert "".join(text for text in preview if text != "…") == "𒀀 👩 boilers"
    assert stream.preview([*committed[-2:], *drafted]) == preview
    assert [stream.push(token) for token in committed[-2:]] == ["", "𒀀"]


@pytest.mark.smol
@pytest.mark.parametrize("text", TEXTS)
def test_a_published_tokenizer_streams_without_broken_characters(text: str, smol: Pair) -> None:
    stream = TokenStream(smol.tokenizer)
    updates = [stream.push(token) for token in ids_of(smol.tokenizer, text)]
    assert all(REPLACEMENT not in update for update in updates)
    assert "".join(updates) == text
