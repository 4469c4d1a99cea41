"""The claim that composing caches is masking, in a form that any pair can be held to."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.speculative import Side
from sidecar_core.decoding.tagging import open_deferred, open_sidecar
from sidecar_core.models.pair import LoadedModel
from sidecar_core.visibility import full_mask, positions


@dataclass(frozen=True)
class Layout:
    """A finished answer: (name, ids) of every segment up to the tags, in column order."""

    segments: tuple[tuple[str, tuple[int, ...]], ...]

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return dict(self.segments)[name]

    @property
    def lengths(self) -> list[tuple[str, int]]:
        return [(name, len(ids)) for name, ids in self.segments]

    def deferred(self) -> Layout:
        """The same with the suffix behind the summary."""
        rest = [s for s in self.segments if s[0] != "suffix"]
        place = [name for name, _ in rest].index("summary") + 1
        return Layout((*rest[:place], ("suffix", self["suffix"]), *rest[place:]))


def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
    return logits.float().log_softmax(-1)


@torch.inference_mode()
def by_full_mask(
    model: LoadedModel,
    layout: Layout,
    *,
    suffix_masking: bool,
    document_masking: bool,
    rebased: bool,
) -> dict[str, torch.Tensor]:
    """The oracle: one pass over everything; log-probabilities [tokens, vocabulary] by segment."""
    ids = torch.tensor([[token for _, part in layout.segments for token in part]])
    mask = full_mask(
        layout.lengths, suffix_masking=suffix_masking, document_masking=document_masking
    )
    where = torch.tensor([positions(layout.lengths, rebased=rebased)])
    logits = model.network(
        input_ids=ids, attention_mask=mask, position_ids=where, use_cache=False
    ).logits[0]
    parts = log_probabilities(logits).split([length for _, length in layout.lengths])
    return dict(zip((name for name, _ in layout.lengths), parts, strict=True))


def by_composition(
    model: LoadedModel,
    layout: Layout,
    *,
    suffix_masking: bool,
    document_masking: bool,
    rebased: bool,
    deferred: bool,
) -> dict[str, torch.Tensor]:
    """The engine's way, pass by pass, for the rows that anything is drawn from."""
    cache = SegmentedCache()
    for name in ("head", "document", "instruction"):
        forward(model, cache, layout[name], cache.length, segment=name, rows=0)
    start, suffix = cache.length, layout["suffix"]
    if not suffix_masking and not deferred:
        forward(model, cache, suffix, start, segment="suffix", rows=0)
    tail = start if rebased or deferred else start + len(suffix)
    side = Side(model, cache, layout["tail"], tail)
    side.emitted.extend(layout["summary"][:-1])
    rows = side.run((), rows=len(layout["tail"]) + len(layout["summary"]) - 1)
    side.emitted.append(layout["summary"][-1])
    opened = (open_deferred if deferred else open_sidecar)(
        side, suffix, document_masking=document_masking, stop_ids=frozenset()
    )
    tags = (*layout["cue"], *layout["tags"])
    tag_rows = forward(model, opened.cache, tags, opened.position, segment="tags", rows=len(tags))
    count = len(layout["tail"])
    return {
        "tail": log_probabilities(rows[:count]),
        "summary": log_probabilities(rows[count:]),
        "cue": log_probabilities(tag_rows[: len(layout["cue"])]),
        "tags": log_probabilities(tag_rows[len(layout["cue"]) :]),
    }


def largest_difference(
    model: LoadedModel,
    layout: Layout,
    *,
    suffix_masking: bool,
    document_masking: bool,
    rebased: bool = False,
    deferred: bool = False,
) -> float:
    """Largest difference in log-probability, over all rows that anything is drawn from."""
    switches = {"suffix_masking": suffix_masking, "document_masking": document_masking}
    columns = layout.deferred() if deferred else layout
    wanted = by_full_mask(model, columns, **switches, rebased=rebased)
    got = by_composition(model, layout, **switches, rebased=rebased, deferred=deferred)
    return max(float((rows - wanted[name][: len(rows)]).abs().max()) for name, rows in got.items())
