"""A pair's tokenizer: reading it, comparing two, and the tokens that end a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.models.quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        why = first_line(error)
        raise SidecarError(
            f"The tokenizer in {folder} cannot be read ({why}); the model must bring its own."
        ) from error


def require_same_tokenizer(target: PreTrainedTokenizerBase, draft: PreTrainedTokenizerBase) -> None:
    """SidecarError unless every id and every token that both tokenizers know mean the same."""
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if ours == theirs:
        return
    by_id, by_id_theirs = ({i: t for t, i in v.items()} for v in (ours, theirs))
    shared = by_id.keys() & by_id_theirs.keys()
    example = next(
        (
            f"id {i} is {by_id[i]!r} in the target's and {by_id_theirs[i]!r} in the draft's"
            for i in sorted(shared)
            if by_id[i] != by_id_theirs[i]
        ),
        None,
    ) or next(
        (
            f"{t!r} is id {ours[t]} in the target's and {theirs[t]} in the draft's"
            for t in sorted(ours.keys() & theirs.keys())
            if ours[t] != theirs[t]
        ),
        None,
    )
    if example is None and len(shared) < 0.9 * max(len(ours), len(theirs)):
        example = f"the target's knows {len(ours):,} tokens and the draft's {len(theirs):,}"
    if example:
        raise SidecarError(
            f"The two models' tokenizers differ ({example}); target and draft must come from one "
            "family that shares its tokenizer."
        )


def require_ids_fit(tokenizer: PreTrainedTokenizerBase, name: str, width: int) -> None:
    """SidecarError if a prompt's special token would lie outside the draft's embedding."""
    for token, index in tokenizer.get_added_vocab().items():
        if index >= width:
            raise SidecarError(
                f"The target's token {token!r} has id {index}, but the draft {name} knows "
                f"only {width:,} tokens; use a draft of the same family."
            )


def eos_ids(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end a text: the generation config's, the tokenizer's, the chat template's."""
    generation: Any = getattr(network, "generation_config", None)
    named = getattr(generation, "eos_token_id", None)
    ids = set(named if isinstance(named, list | tuple) else [named])
    ids |= {tokenizer.eos_token_id, _end_of_turn(tokenizer)}
    return frozenset(int(i) for i in ids if i is not None)


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that the chat template puts right behind the assistant's words."""
    if not tokenizer.chat_template:
        return None
    words = "words of the assistant"
    turns = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": words}]
    try:
        text = str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # a template may insist on anything; the other two sources remain
        return None
    behind = text.rpartition(words)[2].strip()
    special = tokenizer.get_added_vocab()
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"] if behind else []
    return ids[0] if ids and ids[0] in special.values() else None
