"""A cache folder of its own for every test, but for those on real weights."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    if not any(request.node.get_closest_marker(name) for name in ("smol", "coder")):
        monkeypatch.setenv("SIDECAR_CACHE", str(folder))
    return folder
