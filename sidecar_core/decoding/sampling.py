"""Sampling rules: the distributions that are drawn from, and the accept-or-correct rule.

Method: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", and Chen
et al. 2023, "Accelerating Large Language Model Decoding with Speculative Sampling".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

GREEDY_BELOW = 1e-5
"""Temperatures below this are greedy: dividing by them would only overflow."""

SORTED_HEAD = 1024
"""Top-p looks among this many most likely tokens first; sorting 150,000 is the rare case."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """Temperature, then top-k, then top-p: what p and q mean wherever something is drawn."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    @property
    def greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW

    @property
    def plain(self) -> bool:
        """Whether the distribution drawn from is the raw softmax."""
        return self.temperature == 1.0 and self.top_k == 0 and self.top_p >= 1.0

    def distribution(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities [vocabulary] for float32 logits [vocabulary]. Not for greedy."""
        logits = (logits - logits.max()) / self.temperature
        if 0 < self.top_k < logits.numel():
            kept = logits.topk(self.top_k)
            logits = torch.full_like(logits, -torch.inf).scatter(0, kept.indices, kept.values)
        probabilities = logits.softmax(-1)
        return _nucleus(probabilities, self.top_p) if self.top_p < 1.0 else probabilities

    def choose(self, logits: torch.Tensor, generator: torch.Generator) -> int:
        """A token for float32 logits [vocabulary]."""
        if self.greedy:
            return int(logits.argmax())
        return draw(self.distribution(logits), generator)


def _nucleus(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of most likely tokens that holds `top_p` of the mass, renormalised."""
    head = min(SORTED_HEAD, probabilities.numel())
    values, indices = probabilities.topk(head)
    if head < probabilities.numel() and values.sum() < top_p:
        values, indices = probabilities.sort(descending=True)
    before = values.cumsum(-1) - values
    kept = values * (before < top_p)
    return torch.zeros_like(probabilities).scatter(0, indices, kept / kept.sum())


def draw(probabilities: torch.Tensor, generator: torch.Generator) -> int:
    """One index drawn from probabilities [vocabulary]."""
    return int(torch.multinomial(probabilities, 1, generator=generator))


def uniform(generator: torch.Generator) -> float:
    """u in (0, 1]: a token that the target gives no probability is never accepted."""
    return 1.0 - float(torch.rand(1, generator=generator, device=generator.device))


def accepts(p: float, q: float, u: float) -> bool:
    """u ≤ min(1, p/q), without the division."""
    return u * q <= p


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """max(0, p - q) renormalised; p itself where nothing is left of it (p = q up to rounding)."""
    rest = (p - q).clamp_min(0.0)
    mass = rest.sum()
    return rest / mass if mass > 0 else p


def overlap(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Σ_v min(p(v), q(v)), the expected acceptance: [..., vocabulary] twice gives [...], at most 1
    whatever the rounding."""
    return torch.minimum(p, q).sum(-1).clamp_max(1.0)
