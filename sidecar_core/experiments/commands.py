"""What the commands of the experiments share: names in an option, progress, a result's making."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import MAX_CHARS

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.experiments.corpus import Corpus, Skipped

SETTINGS = ("samples", "temperature", "seed", "task", "max_chars", "max_tokens", "gamma")
"""Options that a result states, where its command has them."""


def corpus_options(command: argparse.ArgumentParser) -> None:
    """The common options, and those of a command over articles."""
    cli.common(command)
    command.add_argument("files", nargs="+", metavar="FILE", help=".txt, or .jsonl with `text`")
    command.add_argument("--limit", type=int, metavar="N", help="the first N articles only")
    command.add_argument(
        "--max-chars",
        type=int,
        default=MAX_CHARS,
        metavar="N",
        help="how much of an article is used; default: %(default)s",
    )


def names(text: str) -> tuple[str, ...]:
    """An option's names, separated by commas, each once.

    >>> names("masked, visible,masked,")
    ('masked', 'visible')
    """
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def follow(events: Iterable[Any], add: Callable[[Any], None]) -> None:
    """Pass every event to `add`, with the stage under way on standard error."""
    from tqdm import tqdm

    from sidecar_core.experiments.readings import Step

    with tqdm(file=sys.stderr, bar_format="{desc} {postfix}") as line:
        for event in events:
            add(event)
            if isinstance(event, Step):
                line.set_description_str(f"{event.document}: {event.stage}", refresh=False)
                line.set_postfix_str(f"{event.done}/{event.total}", refresh=False)
                line.update()


def last(steps: Iterable[Any]) -> Any:
    """What a generator returns; what it yields is dropped."""
    steps = iter(steps)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value


def about(engine: Engine, corpus: Corpus, arguments: argparse.Namespace) -> dict[str, Any]:
    """What every result says of its making: models, articles, settings.

    `corpus.sha256` is a digest of the texts that were used, in order, as they were cut: two results
    with the same digest are about the same words, whatever the files are called.
    """
    pair, texts = engine.pair, [document.text for document in corpus.documents]
    return {
        "pair": pair.name,
        "models": {"target": pair.target.name, "draft": pair.draft.name},
        "precision": pair.target.precision,
        "device": str(pair.target.device),
        "note": pair.note,
        "corpus": {
            "files": [str(file) for file in arguments.files],
            "articles": len(texts),
            "sha256": hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
        },
        "cut": sum(document.cut for document in corpus.documents),
        "settings": {name: getattr(arguments, name) for name in SETTINGS if name in arguments},
    }


def skipped_as_list(skipped: Iterable[Skipped]) -> list[dict[str, str]]:
    """For the JSON results."""
    return [{"where": s.where, "why": s.why} for s in skipped]


def nothing_came(skipped: Iterable[Skipped], what: str) -> SidecarError:
    """The error for a run in which every article was skipped; `what` is "sampled" or the like."""
    first = next(iter(skipped))
    return SidecarError(f"No article could be {what}; {first.where}: {first.why}")


def shown(
    result: dict[str, Any], as_text: Callable[[dict[str, Any]], str], arguments: argparse.Namespace
) -> dict[str, Any]:
    """The result, printed as text unless it is wanted as JSON."""
    if not arguments.json:
        print(as_text(result))
    return result
