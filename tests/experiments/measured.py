"""Small pairs and articles that the α tests measure."""

from __future__ import annotations

import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.experiments.corpus import Document
from sidecar_core.models.pair import LoadedModel, Pair
from tests.tiny import tiny_model
from tests.toy_tokenizers import toy_tokenizer

ARTICLES = (
    "The council voted on Tuesday to replace the boilers of the old quarter. Work begins in March "
    "and is to cost 41 million; the rents are frozen until it is done.",
    "Engineers had warned that the quay sinks by nine millimetres a year. A flood wall is to be "
    "built in its place.",
    "A library in the hills lends out tools, ladders and a cider press. Its members owe nothing "
    "but a good word.",
)

DOCUMENTS = tuple(Document(f"story-{n}", text) for n, text in enumerate(ARTICLES))


def close_engine(noise: float = 0.02, seed: int = 0, wider: int = 0, spare: int = 0) -> Engine:
    """A tiny target, and a draft with the same weights but for some noise: they agree in part.

    `wider` is by how much the target's vocabulary is larger than the draft's, `spare` by how much
    both are larger than the tokenizer's.
    """
    tokenizer = toy_tokenizer()
    end = frozenset([tokenizer.eos_token_id])
    target, draft = (tiny_model(seed, vocab=len(tokenizer) + spare, eos=end) for _ in range(2))
    source = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for weights in draft.network.parameters():
            weights += noise * torch.randn(weights.shape, generator=source)
    if wider:
        target = widened(target, wider)
    name = f"{draft.fingerprint}-{noise}"
    draft = LoadedModel("draft", draft.network, "fp32", name, end)
    return Engine(Pair("close", target, draft, tokenizer))


def widened(model: LoadedModel, by: int) -> LoadedModel:
    """The same model with `by` tokens more, which are likely ones."""
    network = model.network
    with torch.no_grad():
        network.resize_token_embeddings(model.vocab_size + by)
        network.get_output_embeddings().weight[-by:] *= 3.0
    return LoadedModel(model.name, network, "fp32", f"{model.fingerprint}-wide", model.eos_ids)
