"""The posts' figures, to stand beside ours.

α in closed form over 100 CNN/DailyMail test articles: their first 3,000 characters, the target's
greedy summary of at most 200 tokens, pooled over positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

ARTICLES = 100


@dataclass(frozen=True, slots=True)
class Published:
    """One pair's figures. `cost` is identical - masked by suffix length in tokens."""

    models: str
    alpha: Mapping[str, float]
    cost: Mapping[int, float]


PUBLISHED = MappingProxyType(
    {
        "small": Published(
            "Qwen2.5-Instruct 1.5B with 0.5B",
            MappingProxyType({"identical": 0.6493, "visible": 0.616, "masked": 0.6447}),
            MappingProxyType({25: 0.0045, 50: 0.0068, 100: 0.0091, 200: 0.0123, 400: 0.0150}),
        ),
        "big": Published(
            "Qwen2.5-Instruct 7B with 1.5B",
            MappingProxyType({"identical": 0.6361, "visible": 0.627, "masked": 0.6391}),
            MappingProxyType({25: -0.0030, 50: -0.0037, 100: -0.0081, 200: -0.0099, 400: -0.0093}),
        ),
    }
)
"""By name of the pair. The suffix of `alpha` has about 25 tokens, as the first entry of `cost` has;
the small pair's cost there is printed as 0.0045, though its two figures of α differ by 0.0046."""


def as_dict() -> dict[str, dict[str, object]]:
    """For the JSON results."""
    return {
        name: {
            "models": figures.models,
            "articles": ARTICLES,
            "alpha": dict(figures.alpha),
            "cost": {str(n): cost for n, cost in figures.cost.items()},
        }
        for name, figures in PUBLISHED.items()
    }
