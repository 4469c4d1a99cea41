"""The commands `leak` and `cue`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.commands import (
    about,
    corpus_options,
    follow,
    names,
    nothing_came,
    shown,
)
from sidecar_core.experiments.leak import tables
from sidecar_core.experiments.svg import check_figure_path, save_figure
from sidecar_core.files import read_text, save_text


def register(commands: Any) -> None:
    """Add `leak` and `cue` to the subparsers."""
    leak = commands.add_parser("leak", help="does the document get into the tags?")
    corpus_options(leak)
    leak.add_argument(
        "--samples", type=int, metavar="N", help="default 60 for one article, 8 each for several"
    )
    leak.add_argument("--temperature", type=float, default=0.7, metavar="T")
    leak.add_argument("--watch", default="", metavar="WORD", help="a word to count in any spelling")
    leak.add_argument("--summary", type=Path, metavar="FILE", help="the summary to be tagged")
    leak.add_argument("--conditions", metavar="NAMES", help="default: all, comma-separated")
    leak.add_argument("--task", default="hashtags")
    leak.add_argument("--csv", type=Path, metavar="FILE", help="counts of every article")
    leak.add_argument("--figure", type=Path, metavar="FILE", help="an .svg file")
    leak.set_defaults(handler=leak_command)

    cue = commands.add_parser("cue", help="does the draft open a tag list without the cue?")
    corpus_options(cue)
    cue.set_defaults(handler=cue_command)


def leak_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`leak`: one article sampled often, or the leak rate of a corpus."""
    from sidecar_core.experiments.corpus import read_corpus
    from sidecar_core.experiments.leak import over_corpus, sampling
    from sidecar_core.experiments.leak.report import CONDITIONS, LeakReport, LeakSettings
    from sidecar_core.experiments.records import Records

    check_figure_path(arguments.figure)
    corpus = read_corpus(arguments.files, limit=arguments.limit, max_chars=arguments.max_chars)
    documents = corpus.documents
    single = len(documents) == 1
    if arguments.summary and not single:
        raise SidecarError("--summary belongs to one article; give one file.")
    summary = read_text(arguments.summary) if arguments.summary else None
    if arguments.samples is None:
        arguments.samples = LeakSettings().samples if single else over_corpus.SAMPLES
    settings = LeakSettings(
        samples=arguments.samples,
        temperature=arguments.temperature,
        seed=arguments.seed,
        watch=arguments.watch,
        conditions=CONDITIONS if arguments.conditions is None else names(arguments.conditions),
        task=arguments.task,
    ).validate()
    arguments.samples = settings.samples
    engine = cli.load_engine(arguments)
    records = Records.in_cache()
    fold: LeakReport | over_corpus.CorpusLeaks
    if single:
        fold = LeakReport(settings.watch)
        events = sampling.leak_test(
            engine, documents[0], settings, summary=summary, records=records
        )
        follow(events, fold.add)
    else:
        fold = over_corpus.CorpusLeaks(settings, skipped=list(corpus.skipped))
        follow(over_corpus.corpus_leak_test(engine, documents, settings, records=records), fold.add)
        if not fold.complete:
            raise nothing_came(fold.skipped, "sampled")
    result = fold.as_dict() | about(engine, corpus, arguments)
    if arguments.csv:
        rows = result["per_document"] if "per_document" in result else result["tags"]
        save_text(arguments.csv, over_corpus.table_csv([_flat(row) for row in rows]))
    if arguments.figure:
        from sidecar_core.experiments.leak.figure import leak_figure

        save_figure(leak_figure(result), arguments.figure)
    return shown(result, tables.leak_text, arguments)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the counts of a nested dictionary as columns of their own, and lists as text."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list):
            value = " ".join(value)
        flat.update(value if isinstance(value, dict) else {name: value})
    return flat


def cue_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`cue`: what the draft writes behind each summary when nothing opens the list."""
    from sidecar_core.experiments.corpus import Skipped, read_corpus
    from sidecar_core.experiments.leak.without_cue import Continued, pool_continued, without_cue
    from sidecar_core.experiments.records import Records

    corpus = read_corpus(arguments.files, limit=arguments.limit, max_chars=arguments.max_chars)
    engine = cli.load_engine(arguments)
    events: list[Any] = []
    follow(without_cue(engine, corpus.documents, records=Records.in_cache()), events.append)
    skipped = [*corpus.skipped, *(e for e in events if isinstance(e, Skipped))]
    found = [event for event in events if isinstance(event, Continued)]
    if not found:
        raise nothing_came(skipped, "continued")
    result = pool_continued(found, skipped) | about(engine, corpus, arguments)
    return shown(result, tables.cue_text, arguments)
