"""Tokenizers made on the spot: byte-level BPE over a few sentences, with added tokens."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "The council voted on Tuesday to replace the boilers of the old quarter.",
    "Summarize the document in 3 bullets. Keep each bullet under 18 words.",
    "You are a concise assistant. After the summary, output hashtags.",
]
SPECIAL = ("<|bos|>", "<|start|>", "<|end|>")
NOT_SPECIAL = ("<tool_call>", "<|fim|>")

CHATML = (
    "{% for m in messages %}{{ '<|start|>' + m['role'] + '\n' + m['content'] + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
DROPS_SYSTEM = (
    "{% for m in messages if m['role'] != 'system' %}{{ '<|start|>' + m['content'] | trim }}"
    "{% endfor %}{{ '<|end|>' }}"
)


def toy_tokenizer(
    chat_template: str | None = CHATML, *, adds_bos: bool = False, added_in_vocabulary: bool = False
) -> PreTrainedTokenizerFast:
    """A tokenizer that splits most characters outside ASCII over several tokens.

    With `added_in_vocabulary` the model knows the added tokens as whole words and looks whole words
    up first, as some published tokenizers do.
    """
    backend = Tokenizer(models.BPE(ignore_merges=added_in_vocabulary))
    if not added_in_vocabulary:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:  # split at white space only, so that a special token's text can be one word
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(" ", "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[*SPECIAL, *NOT_SPECIAL] if added_in_vocabulary else [],
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_special_tokens(list(SPECIAL))
    backend.add_tokens([AddedToken(token, special=False) for token in NOT_SPECIAL])
    if adds_bos:
        bos = ("<|bos|>", backend.token_to_id("<|bos|>"))
        backend.post_processor = processors.TemplateProcessing(
            single="<|bos|> $A", special_tokens=[bos]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|bos|>",
        eos_token="<|end|>",
        chat_template=chat_template,
    )


def byte_fallback_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer as SentencePiece makes them: each byte of what it does not know is a token."""
    pieces = ["<unk>", "a", "b", *(f"<0x{byte:02X}>" for byte in range(256))]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: n for n, piece in enumerate(pieces)},
            merges=[],
            unk_token="<unk>",
            byte_fallback=True,
        )
    )
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=backend)
