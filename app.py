"""Opens the page: options, models in the background, then the server.

`python app.py` listens at once; the models load meanwhile. Every option has an environment
variable, for hosts that start the app without arguments.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from sidecar_core.ui.app import build_demo, launch_arguments
from sidecar_core.ui.model_host import MAX_SECONDS, ModelHost, load_engine


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line and, behind it, the environment say."""
    env = os.environ.get
    parser = argparse.ArgumentParser(description="Speculative decoding with a sidecar, as a page.")
    parser.add_argument("--pair", default=env("SIDECAR_PAIR", "auto"), help="model pair")
    parser.add_argument(
        "--precision",
        default=env("SIDECAR_PRECISION", "auto"),
        choices=["auto", "fp32", "bf16", "int8"],
    )
    parser.add_argument("--device", default=env("SIDECAR_DEVICE"), help="for example cpu or cuda")
    parser.add_argument("--host", default=env("GRADIO_SERVER_NAME", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(env("GRADIO_SERVER_PORT", "7860")))
    parser.add_argument(
        "--max-seconds",
        type=_seconds,
        default=env("SIDECAR_MAX_SECONDS", str(MAX_SECONDS)),
        metavar="S",
        help="longest that a run may take",
    )
    return parser.parse_args(arguments)


def _seconds(words: str) -> float:
    seconds = float(words)
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("must be from 1 to 86400 seconds")
    return seconds


def main() -> None:
    chosen = options()
    load = load_engine(chosen.pair, chosen.precision, chosen.device)
    host = ModelHost(load, chosen.max_seconds)
    host.start()
    build_demo(host).launch(server_name=chosen.host, server_port=chosen.port, **launch_arguments())


if __name__ == "__main__":
    main()
