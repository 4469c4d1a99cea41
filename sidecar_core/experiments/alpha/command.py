"""The commands `alpha`, `sweep`, `placement` and `articles`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from sidecar_core import cli
from sidecar_core.experiments.alpha import tables
from sidecar_core.experiments.alpha.conditions import CONTROLS, STANDARD
from sidecar_core.experiments.alpha.sweep import LENGTHS
from sidecar_core.experiments.commands import (
    about,
    corpus_options,
    last,
    names,
    nothing_came,
    shown,
    skipped_as_list,
)
from sidecar_core.experiments.readings import MAX_TOKENS
from sidecar_core.files import file_errors
from sidecar_core.settings import COMPARED_GAMMA, RunSettings
from sidecar_core.tasks import get_task

if TYPE_CHECKING:
    from sidecar_core.experiments.alpha.conditions import Condition
    from sidecar_core.experiments.readings import DocumentAlpha

STORE_BYTES = 1 << 29
"""Prompt prefixes kept in memory: those of the article at work, and no heap of earlier ones."""


def register(commands: Any) -> None:
    """Add the commands to the parser."""
    alpha = commands.add_parser("alpha", help="teacher-forced α over articles, by condition")
    _options(alpha)
    alpha.add_argument(
        "--conditions",
        default=",".join(STANDARD),
        metavar="NAMES",
        help=f"comma-separated; default: %(default)s; also {', '.join(CONTROLS)}, or all",
    )
    alpha.add_argument("--draft-text", default="", metavar="TEXT", help="what `unrelated` reads")
    alpha.set_defaults(handler=alpha_command)

    sweep = commands.add_parser("sweep", help="α against the length of a masked suffix")
    _options(sweep)
    sweep.add_argument("--lengths", type=cli.numbers, default=LENGTHS, metavar="N,N,…")
    sweep.add_argument("--visible", action="store_true", help="also measure it visible")
    sweep.set_defaults(handler=sweep_command)

    placement = commands.add_parser(
        "placement", help="natural, rebased, deferred and folded suffix: α and tags side by side"
    )
    _options(placement)
    placement.add_argument(
        "--document-masking", action=argparse.BooleanOptionalAction, default=True
    )
    placement.set_defaults(handler=placement_command)

    articles = commands.add_parser(
        "articles",
        help="save CNN/DailyMail test articles from the Hugging Face Hub as .jsonl",
        description=f"Saves CNN/DailyMail test articles as .jsonl. {cli.NO_MODEL}",
    )
    articles.add_argument("file", type=Path, metavar="FILE")
    articles.add_argument("--count", type=int, default=100, metavar="N")
    cli.common(articles)
    articles.set_defaults(handler=articles_command)


def _options(command: argparse.ArgumentParser) -> None:
    corpus_options(command)
    command.add_argument(
        "--max-tokens", type=int, default=MAX_TOKENS, metavar="N", help="of a summary"
    )
    command.add_argument(
        "--gamma", type=int, default=COMPARED_GAMMA, metavar="N", help="drafts per round"
    )
    command.add_argument("--task", default="hashtags", help="whose suffix is masked or visible")
    command.add_argument("--fresh", action="store_true", help="ignore kept results")


def alpha_command(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """`alpha`: every condition on every article."""
    from sidecar_core.experiments.alpha import conditions, published
    from sidecar_core.experiments.alpha.pooling import pool
    from sidecar_core.prompts import unrelated_prompt

    chosen_names = names(arguments.conditions)
    if chosen_names == ("all",):
        chosen_names = conditions.STANDARD + conditions.CONTROLS
    conditions.check_names(chosen_names)
    session = _Session(arguments)
    if arguments.draft_text:  # one that is too long is refused before an article is measured
        room = session.engine.pair.draft.max_positions - arguments.max_tokens
        unrelated_prompt(arguments.draft_text, session.engine.prompts, room)
    chosen = conditions.choose(chosen_names, session.engine, session.task, arguments.draft_text)
    results = session.measure(chosen)
    options = {"gamma": arguments.gamma, "max_tokens": arguments.max_tokens}
    pooled = pool(results, **options) | session.about()
    return session.show(pooled | {"published": published.as_dict()}, tables.alpha_text)


def sweep_command(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """`sweep`: identical and masked for every length of the suffix."""
    from sidecar_core.experiments.alpha import published, sweep

    lengths = sweep.check_lengths(arguments.lengths)
    session = _Session(arguments)
    suffix, builder = session.task.suffix, session.engine.prompts
    seen = [sweep.lengthened(builder, suffix, n) for n in lengths if n and arguments.visible]
    results = session.measure(sweep.sweep_conditions(lengths, seen))
    pooled = sweep.pool_sweep(results, lengths) | session.about()
    return session.show(pooled | {"published": published.as_dict()}, tables.sweep_text)


def placement_command(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """`placement`: α and tags for every place of a masked suffix."""
    from sidecar_core.experiments.alpha import placement

    session = _Session(arguments)
    results = session.measure(placement.placement_conditions(session.engine, session.task))
    texts = {document.id: document.text for document in session.corpus.documents}
    masking = arguments.document_masking
    steps = [
        placement.tag_everywhere(
            session.engine, texts[r.id], r, session.task, document_masking=masking
        )
        for r in session.processes.share(results)
    ]
    tagged = session.processes.gather([last(s) for s in session.bar(steps, "tags")])
    articles = [texts[result.id] for result in results]
    pooled = placement.pool_placement(results, articles, tagged)
    pooled |= {"document_masking": masking, **session.about()}
    return session.show(pooled, tables.placement_text)


def articles_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`articles`: the posts' corpus, as a file that the other commands read."""
    from sidecar_core.experiments.corpus import cnn_dailymail
    from sidecar_core.models.cache import write_text

    lines = [json.dumps(article) + "\n" for article in cnn_dailymail(arguments.count)]
    with file_errors("write", arguments.file):
        write_text(arguments.file, "".join(lines))
    print(f"{len(lines)} articles are in {arguments.file}.", file=sys.stderr)
    return {"articles": len(lines), "file": str(arguments.file)}


class _Session:
    """What the three measuring commands share: corpus, engine, processes, progress."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Raises SidecarError for bad input before anything is loaded."""
        from sidecar_core.decoding.engine import Engine
        from sidecar_core.decoding.prefix import PrefixStore
        from sidecar_core.experiments.corpus import read_corpus
        from sidecar_core.experiments.processes import this_process

        self.arguments = arguments
        self.task = get_task(arguments.task)
        RunSettings(
            gamma=arguments.gamma, max_tokens=arguments.max_tokens, seed=arguments.seed
        ).validate()
        self.corpus = read_corpus(
            arguments.files, limit=arguments.limit, max_chars=arguments.max_chars
        )
        self.processes = this_process(arguments.device)
        pair = cli.load_pair(
            arguments,
            device=arguments.device or self.processes.device,
            quiet=not self.processes.is_first,
        )
        self.engine = Engine(pair, PrefixStore(STORE_BYTES))
        self.skipped = list(self.corpus.skipped)

    def measure(self, conditions: Sequence[Condition]) -> list[DocumentAlpha]:
        """The results of all processes, in order. Raises SidecarError when there are none."""
        from sidecar_core.experiments.alpha.measure import measure
        from sidecar_core.experiments.corpus import Skipped
        from sidecar_core.experiments.readings import DocumentAlpha
        from sidecar_core.experiments.records import Records

        documents = self.processes.share(self.corpus.documents)
        own: list[DocumentAlpha | Skipped] = []
        with self.bar(total=len(documents), label="articles") as bar:
            for item in measure(
                self.engine,
                documents,
                conditions,
                max_tokens=self.arguments.max_tokens,
                gamma=self.arguments.gamma,
                records=Records.in_cache(fresh=self.arguments.fresh),
            ):
                if isinstance(item, DocumentAlpha | Skipped):
                    own.append(item)
                    bar.update()
                else:
                    bar.set_postfix_str(f"{item.document}: {item.stage} {item.done}/{item.total}")
        everything = self.processes.gather(own)
        self.skipped += [item for item in everything if isinstance(item, Skipped)]
        results = [item for item in everything if isinstance(item, DocumentAlpha)]
        if not results:
            raise nothing_came(self.skipped, "measured")
        return results

    def bar(
        self, items: Sequence[Any] | None = None, label: str = "", total: int | None = None
    ) -> Any:
        """A progress bar on standard error, of the first process only; over `items`, or updated by
        hand up to `total`."""
        return tqdm(
            items,
            desc=label,
            total=total,
            file=sys.stderr,
            disable=not self.processes.is_first,
        )

    def about(self) -> dict[str, Any]:
        """What every result says of its making."""
        return about(self.engine, self.corpus, self.arguments) | {
            "suffix_tokens": len(self.engine.prompts.plain(self.task.suffix)),
            "skipped": skipped_as_list(self.skipped),
        }

    def show(
        self, result: dict[str, Any], as_text: Callable[[dict[str, Any]], str]
    ) -> dict[str, Any] | None:
        """The result of the first process, as a table unless it is wanted as JSON; None for the
        others."""
        if not self.processes.is_first:
            return None
        return shown(result, as_text, self.arguments)
