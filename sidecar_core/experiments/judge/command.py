"""The command `judge`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.experiments.commands import about, corpus_options, follow, nothing_came, shown
from sidecar_core.experiments.judge import tables
from sidecar_core.experiments.readings import MAX_TOKENS
from sidecar_core.settings import COMPARED_GAMMA, RunSettings

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.experiments.judge.judge import ModelJudge


def register(commands: Any) -> None:
    """Add `judge` to the subparsers."""
    judge = commands.add_parser("judge", help="sidecar against standalone, by a language model")
    corpus_options(judge)
    judge.add_argument(
        "--judge",
        metavar="NAME",
        help="a pair, whose target judges, or one model (Hub id, folder, GGUF file); "
        "default: the target",
    )
    judge.add_argument("--verdicts", type=Path, metavar="FILE", help="where verdicts are kept")
    judge.add_argument("--no-reasons", action="store_true", help="answers only, much faster")
    judge.add_argument("--document-masking", action=argparse.BooleanOptionalAction, default=True)
    judge.add_argument("--temperature", type=float, default=0.0, metavar="T")
    judge.add_argument(
        "--max-tokens", type=int, default=MAX_TOKENS, metavar="N", help="of a summary"
    )
    judge.add_argument("--task", default="hashtags")
    judge.add_argument(
        "--planted", action="store_true", help="first test the judge on known answers"
    )
    judge.set_defaults(handler=judge_command)


def judge_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`judge`: both taggers' lists for each article, compared in both orders."""
    from sidecar_core.experiments.corpus import read_corpus
    from sidecar_core.experiments.judge import planted
    from sidecar_core.experiments.judge.over_corpus import Comparisons, JudgeReport, judge_corpus
    from sidecar_core.models.cache import cache_dir

    settings = RunSettings(
        document_masking=arguments.document_masking,
        gamma=COMPARED_GAMMA,  # a sampled summary is then the same on every machine
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        seed=arguments.seed,
        task=arguments.task,
    ).validate()
    corpus = read_corpus(arguments.files, limit=arguments.limit, max_chars=arguments.max_chars)
    engine = cli.load_engine(arguments)
    judge = _judge(engine, arguments)
    path = arguments.verdicts or cache_dir() / "judge" / "verdicts.jsonl"
    known = planted.ask(judge) if arguments.planted else None
    fold = JudgeReport(skipped=list(corpus.skipped))
    follow(
        judge_corpus(engine, judge, corpus.documents, settings, kept=Comparisons(path)), fold.add
    )
    if not fold.comparisons:
        raise nothing_came(fold.skipped, "judged")
    result = fold.as_dict() | {"judge": judge.name, "verdicts": str(path), "planted": known}
    return shown(result | about(engine, corpus, arguments), tables.judge_text, arguments)


def _judge(engine: Engine, arguments: argparse.Namespace) -> ModelJudge:
    from sidecar_core.experiments.judge.judge import ModelJudge
    from sidecar_core.models.registry import PAIRS

    reasons, name = not arguments.no_reasons, arguments.judge
    if name is None:
        return ModelJudge(engine.pair.target, engine.pair.tokenizer, reasons=reasons)
    pair = cli.load_pair(arguments, name if name in PAIRS or "," in name else f"{name},{name}")
    return ModelJudge(pair.target, pair.tokenizer, reasons=reasons)
