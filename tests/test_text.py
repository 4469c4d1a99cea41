from __future__ import annotations

import random

import pytest
from transformers import PreTrainedTokenizerBase

from sidecar_core.models.pair import Pair
from sidecar_core.text import TokenStream, whole_text
from tests.toy_tokenizers import byte_fallback_tokenizer, toy_tokenizer

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


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_character_that_the_end_cuts_off_is_dropped(
    missing: int, tokenizer: PreTrainedTokenizerBase
) -> None:
    ids = ids_of(tokenizer, "old 𒀀")[:-missing]
    stream = TokenStream(tokenizer)
    text = "".join(stream.push(token) for token in ids)
    assert text == "old "
    assert stream.flush() == stream.flush() == ""
    assert whole_text(tokenizer, ids) == "old "
    assert REPLACEMENT in tokenizer.decode(ids)


def test_a_real_replacement_character_before_a_cut_one_passes(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    ids = ids_of(tokenizer, f"a{REPLACEMENT}b𒀀")[:-1]
    assert whole_text(tokenizer, ids) == f"a{REPLACEMENT}b"
    assert whole_text(tokenizer, ids_of(tokenizer, f"a{REPLACEMENT}")) == f"a{REPLACEMENT}"


@pytest.mark.parametrize("pieces", [["<0xF0>", "<0x9F>", "<0x92>"], ["<0xE6>"]])
def test_a_cut_character_of_byte_fallback_is_dropped_too(pieces: list[str]) -> None:
    tokenizer = byte_fallback_tokenizer()
    ids = tokenizer.convert_tokens_to_ids(["a", *pieces])
    assert REPLACEMENT in tokenizer.decode(ids)
    assert whole_text(tokenizer, ids) == "a"


def test_random_tokens_stream_to_their_decoded_text(tokenizer: PreTrainedTokenizerBase) -> None:
    rng = random.Random(0)
    for _ in range(200):
        ids = [rng.randrange(len(tokenizer)) for _ in range(25)]
        stream = TokenStream(tokenizer)
        text = "".join(stream.push(token) for token in ids) + stream.flush()
        whole = tokenizer.decode(ids, skip_special_tokens=True)
        assert whole.rstrip(REPLACEMENT) == text.rstrip(REPLACEMENT)
        assert len(whole) >= len(text)
        assert text == whole_text(tokenizer, ids)


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
