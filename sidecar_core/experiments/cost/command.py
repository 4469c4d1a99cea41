"""The command `cost`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar_core import cli
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.commands import shown
from sidecar_core.experiments.cost import tables
from sidecar_core.experiments.cost.latency import latency
from sidecar_core.experiments.svg import check_figure_path, save_figure
from sidecar_core.files import read_text

if TYPE_CHECKING:
    from sidecar_core.experiments.cost.model import CostSetup, Lengths
    from sidecar_core.models.pair import LoadedModel
    from sidecar_core.report import RunReport

NOT_WITH_A_PRESET = (
    *("measure", "device_name", "standalone_device", "context_tokens", "masked_tokens", "from_run"),
    *("rent", "idle", "network", "worth", "standalone_rent", "standalone_batch", "share", "hop"),
)
"""What would change the posts' table."""


def register(commands: Any) -> None:
    """Add `cost` to the subparsers."""
    cost = commands.add_parser("cost", help="what tagging costs with the document and without")
    cli.common(cost)
    cost.add_argument("--preset", choices=["part3"], help="the posts' table")
    cost.add_argument("--device-name", metavar="NAME", help="A100 (default), H100, T4, …")
    cost.add_argument("--standalone-device", metavar="NAME", help="default: the same")
    cost.add_argument(
        "--context-tokens", type=int, metavar="N", help="cached tokens with the document"
    )
    cost.add_argument(
        "--masked-tokens", type=int, metavar="N", help="cached tokens left when it is masked"
    )
    cost.add_argument(
        "--from-run",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="recorded runs: lengths of the first, and how long tagging took in all of them",
    )
    cost.add_argument("--batches", type=cli.numbers, metavar="N,N,…")
    cost.add_argument(
        "--rent", type=float, metavar="USD", help="per hour, instead of the list price"
    )
    cost.add_argument(
        "--standalone-rent", type=float, metavar="USD", help="the same for the standalone's machine"
    )
    cost.add_argument("--standalone-batch", type=int, metavar="N", help="default: the same")
    cost.add_argument("--share", type=float, help="share of articles that need tags; default 1")
    cost.add_argument(
        "--hop", type=float, metavar="MS", help="round trip to the standalone tagger, in ms"
    )
    cost.add_argument(
        "--idle", type=float, help="idle share of the standalone's machine; default 0.3"
    )
    cost.add_argument("--network", type=float, help="USD per million lists sent; default 0.36")
    cost.add_argument("--worth", type=float, help="speed-up from which it pays; default 0.05")
    cost.add_argument("--measure", action="store_true", help="time decode steps on this machine")
    cost.add_argument("--steps", type=int, default=7, metavar="N", help="timed for each batch")
    cost.add_argument("--figure", type=Path, metavar="FILE", help="an .svg file")
    cost.set_defaults(handler=cost_command)


def cost_command(arguments: argparse.Namespace) -> dict[str, Any]:
    """`cost`: the model's table; with `--measure` this machine's beside it."""
    from sidecar_core.experiments.cost import model as cost

    check_figure_path(arguments.figure)
    for name in NOT_WITH_A_PRESET if arguments.preset else ():
        if (value := getattr(arguments, name)) is not None and value is not False:
            option = "--" + name.replace("_", "-")
            raise SidecarError(f"--preset cannot be combined with {option}.")
    model = cli.load_engine(arguments).pair.draft if arguments.measure else None
    runs = _runs(arguments.from_run or ())
    scenario = cost.PART3 if arguments.preset else _setup(arguments, model, runs)
    table = cost.rows(scenario, arguments.batches or cost.BATCHES)
    result = {"preset": arguments.preset, **cost.as_dict(scenario, table)}
    if model is not None:
        result["measured"] = _measured(model, scenario.lengths, arguments)
    if runs:
        result["latency"] = latency(runs)
    if arguments.figure:
        from sidecar_core.experiments.cost.figure import cost_figure

        measured = result.get("measured", {}).get("rows", ())
        save_figure(cost_figure(result["rows"], measured), arguments.figure)
    return shown(result, tables.cost_text, arguments)


def _setup(
    arguments: argparse.Namespace, model: LoadedModel | None, runs: Sequence[RunReport]
) -> CostSetup:
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
    name, rent = arguments.standalone_device, arguments.standalone_rent
    apart = device_named(name) if name else None
    if rent is not None:
        apart = dataclasses.replace(apart or device, rent=rent, source="as given")
    own = _given(arguments, share="share", standalone_batch="standalone_batch")
    if arguments.hop is not None:
        own["hop"] = arguments.hop / 1000
    return CostSetup(
        footprint,
        device,
        _lengths(arguments, runs),
        apart,
        **own,
        **_given(arguments, idle="idle", network="network", worth="worth"),
    )


def _lengths(arguments: argparse.Namespace, runs: Sequence[RunReport]) -> Lengths:
    import dataclasses

    from sidecar_core.experiments.cost.model import Lengths

    lengths = Lengths()
    if runs:
        lengths = Lengths.of_run(runs[0])
    given = _given(arguments, full="context_tokens", masked="masked_tokens")
    return dataclasses.replace(lengths, **given)


def _runs(files: Sequence[Path]) -> list[RunReport]:
    """The recorded runs of these files. Raises SidecarError."""
    from sidecar_core.recording import read_recording
    from sidecar_core.report import RunReport

    return [RunReport.of(read_recording(read_text(file)).events) for file in files]


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
