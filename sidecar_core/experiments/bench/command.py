"""The command `bench`: decoding beside other programs, passes by rows, or many clients at a
server."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.examples import load_examples

if TYPE_CHECKING:
    from sidecar_core.experiments.bench.llama_cpp import LlamaCpp
    from sidecar_core.models.cache import Progress


def register(commands: Any) -> None:
    """Add `bench` to the subparsers."""
    bench = commands.add_parser("bench", help="measure decoding beside other programs")
    cli.common(bench)
    bench.add_argument("--tokens", type=int, default=64, metavar="N", help="tokens a run decodes")
    bench.add_argument("--repeats", type=int, default=3, metavar="N")
    bench.add_argument(
        "--only-auto", action="store_true", help="leave transformers and fp32 out (less memory)"
    )
    bench.add_argument(
        "--llama-cpp",
        action="store_true",
        help="beside llama.cpp too, with the same GGUF files (package xllamacpp)",
    )
    bench.add_argument(
        "--examples", action="store_true", help="use all six example articles instead of one"
    )
    bench.add_argument(
        "--passes", action="store_true", help="time passes by row count instead; --repeats times"
    )
    load = bench.add_argument_group("load test instead")
    load.add_argument("--clients", type=int, metavar="N", help="concurrent clients")
    load.add_argument("--seconds", type=float, default=60, metavar="S", help="duration")
    load.add_argument("--max-tokens", type=int, default=8, metavar="N", help="of each summary")
    load.add_argument("--url", help="a server that runs already; default: one is started")
    bench.set_defaults(handler=bench_command)


def bench_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the contest, or the load test where clients are given; the result object."""
    if arguments.clients is not None:
        return load_command(arguments)
    if not (8 <= arguments.tokens <= 512 and 1 <= arguments.repeats <= 50):
        raise SidecarError("--tokens must be from 8 to 512 and --repeats from 1 to 50.")
    return _passes(arguments) if arguments.passes else _contest(arguments)


def load_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """Many clients at a server; the result object."""
    from sidecar_core.experiments.bench.load_test import load_test, served, table

    if not (1 <= arguments.clients <= 500 and 1 <= arguments.seconds <= 3600):
        raise SidecarError("--clients must be from 1 to 500 and --seconds from 1 to 3600.")
    if not 1 <= arguments.max_tokens <= 512:
        raise SidecarError("--max-tokens must be from 1 to 512.")
    how = arguments.clients, arguments.seconds, arguments.max_tokens
    if arguments.url:
        report = load_test(arguments.url, *how)
    else:
        with served(arguments.pair, arguments.precision, arguments.device) as (url, process):
            print(f"The server is up at {url}", file=sys.stderr)
            report = load_test(url, *how, process)
    result = report.as_dict()
    print(table(result), file=sys.stderr if arguments.json else sys.stdout)
    return result


def _contest(arguments: argparse.Namespace) -> dict[str, Any]:
    from sidecar_core.experiments.bench.speed import Contest, resident_after_run, table
    from sidecar_core.models.loading import load_pair, load_plain
    from sidecar_core.terminal import load_progress

    progress = load_progress()
    peers = _llama_cpp(arguments.pair, progress) if arguments.llama_cpp else {}
    options: dict[str, Any] = {"device": arguments.device, "progress": progress}
    auto = load_pair(arguments.pair, precision=arguments.precision, **options)
    resident = resident_after_run(auto)  # before anything else takes memory
    fp32 = plain = None
    if not arguments.only_auto:
        fp32 = load_pair(arguments.pair, precision="fp32", **options)
        plain = load_plain(arguments.pair, **options)
    articles = {e.key: e.text for e in load_examples()} if arguments.examples else None
    contest = Contest(fp32, auto, plain, tokens=arguments.tokens, articles=articles, peers=peers)
    contest.bench.rss_bytes = resident
    for step in contest.repeats(arguments.repeats):
        print(step, file=sys.stderr)
    print(table(contest.bench), file=sys.stderr if arguments.json else sys.stdout)
    result = contest.bench.as_dict()
    return {"pair": auto.name, "precision": auto.target.precision, "note": auto.note, **result}


def _llama_cpp(pair: str, progress: Progress) -> dict[str, LlamaCpp]:
    from sidecar_core.experiments.bench.llama_cpp import LlamaCpp, gguf_files

    target, draft = gguf_files(pair, progress)
    return {"llama_cpp": LlamaCpp(target), "llama_cpp_draft": LlamaCpp(target, draft)}


def _passes(arguments: argparse.Namespace) -> dict[str, Any]:
    from sidecar_core.experiments.bench.passes import measure_passes, table
    from sidecar_core.models.loading import load_pair
    from sidecar_core.terminal import load_progress

    pair = load_pair(
        arguments.pair,
        precision=arguments.precision,
        device=arguments.device,
        progress=load_progress(),
    )
    result = measure_passes(pair, arguments.repeats)
    print(table(result), file=sys.stderr if arguments.json else sys.stdout)
    return {"pair": pair.name, "precision": pair.target.precision, "note": pair.note, **result}
