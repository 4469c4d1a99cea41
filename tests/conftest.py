"""Fixtures that every folder of tests may use: the pairs with real weights, loaded once each."""

from __future__ import annotations

import pytest

from sidecar_core.examples import load_examples
from sidecar_core.models.loading import load_pair
from sidecar_core.models.pair import Pair

pytest_plugins = ["tests.served"]


@pytest.fixture(scope="session")
def smol() -> Pair:
    """SmolLM2-135M and the same without two layers, fp32 on the CPU."""
    return load_pair("smol", precision="fp32", device="cpu")


@pytest.fixture(scope="session")
def coder() -> Pair:
    """Qwen2.5-Coder 1.5B and 0.5B, fp32 on the CPU: 9.6 GB, mapped into memory."""
    return load_pair("coder", precision="fp32", device="cpu")


@pytest.fixture(scope="session")
def example_texts() -> list[str]:
    """The articles in assets/examples."""
    return [example.text for example in load_examples()]
