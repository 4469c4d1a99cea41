"""The leak test's figure."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.svg import intervals


def leak_figure(result: dict[str, Any]) -> str:
    """The share of leaking samples under every condition with its interval; for a corpus the share
    of leaking tags."""
    per_tag = any("tag_rate" in found for found in result["conditions"].values())
    keys = ("tag_rate", "tag_ci95") if per_tag else ("rate", "ci95")
    rows = [
        (name, found[keys[0]], found[keys[1]])
        for name, found in result["conditions"].items()
        if found[keys[0]] is not None
    ]
    title = "Tags" if per_tag else "Samples with a tag"
    return intervals(f"{title} that only the document holds", rows)
