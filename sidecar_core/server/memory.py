"""The C library's heap: few arenas, so that many runs take no more memory than a few.

glibc gives a thread that allocates an arena of its own, up to eight for each core, and what one
run's threads freed in theirs the next run's threads do not find. Under forty clients that was 800
MB, and still growing.
"""

from __future__ import annotations

import ctypes
import os
import sys

ARENAS = 2
"""One for what computes, one for the page."""

M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def few_arenas() -> bool:
    """Take no more than ARENAS from now on; says whether the C library took it.

    Whoever sets MALLOC_ARENA_MAX knows better.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    return bool(mallopt and mallopt(M_ARENA_MAX, ARENAS))
