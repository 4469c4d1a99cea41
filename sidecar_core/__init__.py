"""Speculative decoding whose draft model does a second job on the side: the public API.

A sidecar task is an instruction (the suffix), the words that its answer opens with (the cue), and
the way to read what the model then writes:

    from sidecar_core import SidecarTask, TagsFinished, load_pair

    PLACES = SidecarTask(
        name="places",
        label="Places",
        suffix=" After the summary, list the places it names, separated by commas.",
        cue="\\n\\nPlaces:",
        parse=lambda raw: tuple(filter(None, map(str.strip, raw.split("\\n")[0].split(",")))),
        is_done=lambda raw: "\\n" in raw,
        max_tokens=32,
    )
    for event in load_pair("auto").stream(article, tasks=[PLACES]):
        if isinstance(event, TagsFinished):
            print(event.tagger, event.tags)

`RunReport.of(events)` folds a whole run; `RunSettings` are its settings. Importing this package
loads neither torch nor transformers; `load_pair` does.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# OpenMP's threads spin while they wait for each other, some 200 times a pass. Where something else
# wants one of the cores, they spin against it: a pass then takes ten times as long and more. Asleep
# they do not, but are slow to wake. So they spin for a fraction of a millisecond and then sleep.
# OpenMP reads this when torch is imported, so it is said here, before that.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # for what is not GNU's
    os.environ["GOMP_SPINCOUNT"] = "10000"

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine as Engine
    from sidecar_core.errors import SidecarError as SidecarError
    from sidecar_core.events import Candidates as Candidates
    from sidecar_core.events import DraftLost as DraftLost
    from sidecar_core.events import Event as Event
    from sidecar_core.events import PhaseChanged as PhaseChanged
    from sidecar_core.events import PrefillProgress as PrefillProgress
    from sidecar_core.events import RoundStarted as RoundStarted
    from sidecar_core.events import RunFailed as RunFailed
    from sidecar_core.events import RunFinished as RunFinished
    from sidecar_core.events import RunStarted as RunStarted
    from sidecar_core.events import SummaryFinished as SummaryFinished
    from sidecar_core.events import TagsFinished as TagsFinished
    from sidecar_core.events import TagsSkipped as TagsSkipped
    from sidecar_core.events import TagText as TagText
    from sidecar_core.events import TokenAccepted as TokenAccepted
    from sidecar_core.events import TokenBonus as TokenBonus
    from sidecar_core.events import TokenCorrected as TokenCorrected
    from sidecar_core.events import TokenDrafted as TokenDrafted
    from sidecar_core.events import TokenRejected as TokenRejected
    from sidecar_core.main_tasks import MainTask as MainTask
    from sidecar_core.models.cache import Progress
    from sidecar_core.report import RunReport as RunReport
    from sidecar_core.settings import RunSettings as RunSettings
    from sidecar_core.tasks import CATEGORY as CATEGORY
    from sidecar_core.tasks import FRENCH as FRENCH
    from sidecar_core.tasks import HASHTAGS as HASHTAGS
    from sidecar_core.tasks import HEADLINE as HEADLINE
    from sidecar_core.tasks import KEYWORDS as KEYWORDS
    from sidecar_core.tasks import SidecarTask as SidecarTask

__version__ = "0.1.0"

_HOMES = {
    "decoding.engine": ("Engine",),
    "errors": ("SidecarError",),
    "events": (
        "BlockEnded", "Candidates", "DraftLost", "Event", "PhaseChanged", "PlainPass",
        "PrefillProgress",
        "RoundStarted",
        "RunFailed", "RunFinished", "RunStarted", "SummaryFinished", "TagText", "TagsFinished",
        "TagsSkipped", "TokenAccepted", "TokenBonus", "TokenCorrected", "TokenDrafted",
        "TokenRejected",
    ),
    "report": ("RunReport",),
    "settings": ("RunSettings",),
    "main_tasks": ("MainTask",),
    "tasks": ("CATEGORY", "FRENCH", "HASHTAGS", "HEADLINE", "KEYWORDS", "SidecarTask"),
}  # fmt: skip
"""Module → the public names that live in it; they are imported when they are first asked for."""

__all__ = sorted(["load_pair", *(name for names in _HOMES.values() for name in names)])


def load_pair(
    name: str = "auto",
    *,
    precision: str = "auto",
    device: str | None = None,
    progress: Progress | None = None,
) -> Engine:
    """The engine for a pair: `small`, `big`, `coder`, `smol`, or any "TARGET,DRAFT".

    Weights that are not here are fetched; `progress` hears of it. Raises SidecarError for a pair
    that cannot be had or cannot be run.
    """
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.models import loading

    return Engine(loading.load_pair(name, precision=precision, device=device, progress=progress))


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
