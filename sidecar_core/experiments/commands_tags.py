"""The commands `leak`, `judge` and `cost`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.experiments import tag_tables
from sidecar_core.files import read_text, save_text
from sidecar_core.settings import RunSettings

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.experiments.corpus import Corpus
    from sidecar_core.experiments.cost.model import CostSetup, Lengths
    from sidecar_core.experiments.judge.judge import ModelJudge
    from sidecar_core.models.pair import LoadedModel

NOT_WITH_A_PRESET = (
    *("measure", "device_name", "standalone_device", "context_tokens", "masked_tokens", "from_run"),
    *("rent", "idle", "network", "worth"),
)
"""What would change the reference's table."""


def register(commands: Any) -> None:
    """Add the commands to the parser."""
    _register_leak(commands)
    _register_judge(commands)
    _register_cost(commands)


def _register_leak(commands: Any) -> None:
    leak = commands.add_parser("leak", help="does the document get into the tags?")
    cli.corpus(leak)
    leak.add_argument(
        "--samples", type=int, metavar="N", help="default 60 for one article, 8 each for several"
    )
    leak.add_argument("--temperature", type=float, default=0.7, metavar="T")
    leak.add_argument(
        "--watch", default="", metavar="WORD", help="a fact to count, whatever its spelling"
    )
    leak.add_argument("--summary", type=Path, metavar="FILE", help="the summary to be tagged")
    leak.add_argument("--conditions", metavar="NAMES", help="default: all, comma-separated")
    leak.add_argument("--task", default="hashtags")
    leak.add_argument("--csv", type=Path, metavar="FILE", help="counts of every article")
    leak.add_argument("--figure", type=Path, metavar="FILE", help="an .svg file")
    leak.set_defaults(handler=leak_command)


def _register_judge(commands: Any) -> None:
    judge = commands.add_parser("judge", help="sidecar against standalone, by a language model")
    cli.corpus(judge)
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
    judge.add_argument("--max-tokens", type=int, default=200, metavar="N", help="of a summary")
    judge.add_argument("--task", default="hashtags")
    judge.set_defaults(handler=judge_command)


def _register_cost(commands: Any) -> None:
    cost = commands.add_parser("cost", help="what tagging costs with the document and without")
    cli.common(cost)
    cost.add_argument("--preset", choices=["part3"], help="the reference's table")
    cost.add_argument("--device-name", metavar="NAME", help="A100 (default), H100, T4, …")
    cost.add_argument("--standalone-device", metavar="NAME", help="default: the same")
    cost.add_argument(
        "--context-tokens", type=int, metavar="N", help="cached tokens with the document"
    )
    cost.add_argument(
        "--masked-tokens", type=int, metavar="N", help="cached tokens left when it is masked"
    )
    cost.add_argument("--from-run", type=Path, metavar="FILE", help="lengths of a recorded run")
    cost.add_argument("--batches", type=cli.numbers, metavar="N,N,…")
    cost.add_argument("--rent", type=float, metavar="USD", help="an hour, instead of the list's")
    cost.add_argument("--idle", type=float, help="idle share of the standalone's; default 0.3")
    cost.add_argument("--network", type=float, help="USD for a million lists; default 0.36")
    cost.add_argument("--worth", type=float, help="speed-up from which it pays; default 0.05")
    cost.add_argument("--measure", action="store_true", help="time decode steps on this machine")
    cost.add_argument("--steps", type=int, default=7, metavar="N", help="timed for each batch")
    cost.add_argument("--figure", type=Path, metavar="FILE", help="an .svg file")
    cost.set_defaults(handler=cost_command)


# --- leak -------------------------------------------------------------------------------------


def leak_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`leak`: one article sampled often, or the leak rate of a corpus."""
    from sidecar_core.experiments.corpus import read_corpus
    from sidecar_core.experiments.leak import over_corpus as corpus_leak
    from sidecar_core.experiments.leak import sampling as leak
    from sidecar_core.experiments.leak.report import CONDITIONS, LeakReport, LeakSettings
    from sidecar_core.experiments.records import Records

    _check_figure(arguments.figure)
    corpus = read_corpus(arguments.files, limit=arguments.limit, max_chars=arguments.max_chars)
    documents = corpus.documents
    single = len(documents) == 1
    if arguments.summary and not single:
        raise SidecarError("--summary belongs to one article; give one file.")
    summary = read_text(arguments.summary) if arguments.summary else None
    names = CONDITIONS
    if arguments.conditions:
        names = tuple(n.strip() for n in arguments.conditions.split(",") if n.strip())
    if arguments.samples is None:
        arguments.samples = LeakSettings().samples if single else corpus_leak.SAMPLES
    settings = LeakSettings(
        samples=arguments.samples,
        temperature=arguments.temperature,
        seed=arguments.seed,
        watch=arguments.watch,
        conditions=names,
        task=arguments.task,
    ).validate()
    engine = cli.load_engine(arguments)
    records = Records.in_cache()
    fold: LeakReport | corpus_leak.CorpusLeaks
    if single:
        fold = LeakReport(settings.watch)
        events = leak.leak_test(engine, documents[0], settings, summary=summary, records=records)
        _follow(events, fold.add)
    else:
        fold = corpus_leak.CorpusLeaks(settings, skipped=list(corpus.skipped))
        _follow(
            corpus_leak.corpus_leak_test(engine, documents, settings, records=records), fold.add
        )
        if not fold.complete:
            first = fold.skipped[0]
            raise SidecarError(f"No article could be sampled; {first.where}: {first.why}")
    result = fold.as_dict() | _about(engine, corpus, arguments)
    if arguments.csv:
        rows = result["per_document"] if "per_document" in result else result["tags"]
        save_text(arguments.csv, corpus_leak.table_csv([_flat(row) for row in rows]))
    if arguments.figure:
        from sidecar_core.experiments.tag_figures import leak_figure, save_figure

        save_figure(leak_figure(result), arguments.figure)
    return _shown(result, tag_tables.leak_text, arguments)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the counts of a nested dictionary as columns of their own, and lists as text."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list):
            value = " ".join(value)
        flat.update(value if isinstance(value, dict) else {name: value})
    return flat


# --- judge ------------------------------------------------------------------------------------


def judge_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`judge`: both taggers' lists for each article, compared in both orders."""
    from sidecar_core.experiments.corpus import read_corpus
    from sidecar_core.experiments.judge.over_corpus import Comparisons, JudgeReport, judge_corpus
    from sidecar_core.models.cache import cache_dir

    settings = RunSettings(
        document_masking=arguments.document_masking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        seed=arguments.seed,
        task=arguments.task,
    ).validate()
    corpus = read_corpus(arguments.files, limit=arguments.limit, max_chars=arguments.max_chars)
    engine = cli.load_engine(arguments)
    judge = _judge(engine, arguments)
    path = arguments.verdicts or cache_dir() / "judge" / "verdicts.jsonl"
    fold = JudgeReport(skipped=list(corpus.skipped))
    _follow(
        judge_corpus(engine, judge, corpus.documents, settings, kept=Comparisons(path)), fold.add
    )
    if not fold.comparisons:
        first = fold.skipped[0]
        raise SidecarError(f"No article could be judged; {first.where}: {first.why}")
    result = fold.as_dict() | {"judge": judge.name, "verdicts": str(path)}
    return _shown(result | _about(engine, corpus, arguments), tag_tables.judge_text, arguments)


def _judge(engine: Engine, arguments: argparse.Namespace) -> ModelJudge:
    from sidecar_core.experiments.judge.judge import ModelJudge
    from sidecar_core.models.registry import PAIRS

    reasons, name = not arguments.no_reasons, arguments.judge
    if name is None:
        return ModelJudge(engine.pair.target, engine.pair.tokenizer, reasons=reasons)
    pair = cli.load_pair(arguments, name if name in PAIRS or "," in name else f"{name},{name}")
    return ModelJudge(pair.target, pair.tokenizer, reasons=reasons)


# --- cost -------------------------------------------------------------------------------------


def cost_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`cost`: the model's table; with `--measure` this machine's beside it."""
    from sidecar_core.experiments.cost import model as cost

    _check_figure(arguments.figure)
    for name in NOT_WITH_A_PRESET if arguments.preset else ():
        if (value := getattr(arguments, name)) is not None and value is not False:
            option = "--" + name.replace("_", "-")
            raise SidecarError(f"--preset is the reference's table; leave {option} or it out.")
    model = cli.load_engine(arguments).pair.draft if arguments.measure else None
    scenario = cost.PART3 if arguments.preset else _scenario(arguments, model)
    table = cost.rows(scenario, arguments.batches or cost.BATCHES)
    result = {"preset": arguments.preset, **cost.as_dict(scenario, table)}
    if model is not None:
        result["measured"] = _measured(model, scenario.lengths, arguments)
    if arguments.figure:
        from sidecar_core.experiments.tag_figures import cost_figure, save_figure

        measured = result.get("measured", {}).get("rows", ())
        save_figure(cost_figure(result["rows"], measured), arguments.figure)
    return _shown(result, tag_tables.cost_text, arguments)


def _scenario(arguments: argparse.Namespace, model: LoadedModel | None) -> CostSetup:
    import dataclasses

    from sidecar_core.experiments.cost.devices import device_named, footprint_of, shape_of_spec
    from sidecar_core.experiments.cost.model import CostSetup
    from sidecar_core.models.sources import choose

    device = device_named(arguments.device_name or "A100")
    if arguments.rent is not None:
        device = dataclasses.replace(device, rent=arguments.rent, source="as given")
    if model is not None:
        footprint = footprint_of(model)
    else:
        spec, note = choose(arguments.pair)
        if note:
            print(note, file=sys.stderr)
        precision = arguments.precision
        if precision == "auto":
            precision = "fp32" if device.name == "laptop CPU" else "bf16"
        footprint = shape_of_spec(spec.draft).footprint(precision)
    apart = arguments.standalone_device
    return CostSetup(
        footprint,
        device,
        _lengths(arguments),
        device_named(apart) if apart else None,
        **_given(arguments, idle="idle", network="network", worth="worth"),
    )


def _lengths(arguments: argparse.Namespace) -> Lengths:
    import dataclasses

    from sidecar_core.experiments.cost.model import Lengths
    from sidecar_core.recording import read_recording
    from sidecar_core.report import RunReport

    lengths = Lengths()
    if arguments.from_run:
        recording = read_recording(read_text(arguments.from_run))
        lengths = Lengths.of_run(RunReport.of(recording.events))
    given = _given(arguments, full="context_tokens", masked="masked_tokens")
    return dataclasses.replace(lengths, **given)


def _given(arguments: argparse.Namespace, **options: str) -> dict[str, Any]:
    """The values of those options that were given, by the fields that they fill."""
    found = {field: getattr(arguments, option) for field, option in options.items()}
    return {field: value for field, value in found.items() if value is not None}


def _measured(
    model: LoadedModel, lengths: Lengths, arguments: argparse.Namespace
) -> dict[str, Any]:
    from sidecar_core.experiments.cost.measure import (
        BATCHES,
        beside_model,
        measure,
        read_bandwidth,
    )

    found = []
    for row in measure(model, lengths, arguments.batches or BATCHES, arguments.steps):
        print(f"batch {row.batch}: {1000 * row.full_seconds:.0f} ms a step", file=sys.stderr)
        found.append(row)
    bandwidth = read_bandwidth(model.device)
    return {
        "device": str(model.device),
        "precision": model.precision,
        "bandwidth": bandwidth,
        "steps": arguments.steps,
        "rows": beside_model(model, lengths, found, bandwidth),
    }


# --- what they share --------------------------------------------------------------------------


def _follow(events: Iterable[Any], add: Callable[[Any], None]) -> None:
    """Fold `events`, with the stage under way on standard error."""
    from tqdm import tqdm

    from sidecar_core.experiments.readings import Step

    with tqdm(file=sys.stderr, bar_format="{desc} {postfix}") as line:
        for event in events:
            add(event)
            if isinstance(event, Step):
                line.set_description_str(f"{event.document}: {event.stage}", refresh=False)
                line.set_postfix_str(f"{event.done}/{event.total}", refresh=False)
                line.update()


def _about(engine: Engine, corpus: Corpus, arguments: argparse.Namespace) -> dict[str, Any]:
    """What every result says of its making."""
    pair = engine.pair
    return {
        "pair": pair.name,
        "models": {"target": pair.target.name, "draft": pair.draft.name},
        "precision": pair.draft.precision,
        "device": str(pair.draft.device),
        "note": pair.note,
        "cut": sum(document.cut for document in corpus.documents),
        "settings": {
            name: getattr(arguments, name)
            for name in ("samples", "temperature", "seed", "task", "max_chars")
            if hasattr(arguments, name)
        },
    }


def _shown(
    result: dict[str, Any], as_text: Callable[[dict[str, Any]], str], arguments: argparse.Namespace
) -> dict[str, Any]:
    if not arguments.json:
        print(as_text(result))
    return result


def _check_figure(path: Path | None) -> None:
    """Refuse a kind of figure before anything is computed for it."""
    if path:
        from sidecar_core.experiments.tag_figures import check_figure_path

        check_figure_path(path)
