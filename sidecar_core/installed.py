"""Where the program lies: the folder of its assets, and how another process finds the same code."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path


def _assets() -> Path:
    """The repository's folder `assets/`. Once installed, it is the package `sidecar_core.assets`
    (`setup.py`); in a checkout it is the package `assets`, beside this one."""
    try:
        return Path(str(files("sidecar_core.assets")))
    except ModuleNotFoundError:
        return Path(str(files("assets")))


ASSETS = _assets()


def environment() -> dict[str, str]:
    """This process's environment, in which a Python finds all the modules that this one finds, from
    whatever folder it is started."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
