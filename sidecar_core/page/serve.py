"""Opens the page: options, models in the background, then the server.

It listens at once; the models load meanwhile. Every option has an environment variable, for hosts
that start the app without arguments (`sidecar_core/server/options.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sidecar_core.errors import SidecarError
from sidecar_core.server.address import check_address
from sidecar_core.server.options import Options, parse
from sidecar_core.server.shutdown import RUNS_SECONDS, Shutdown


def main(arguments: Sequence[str] | None = None) -> int:
    """`python app.py`: serves until a signal ends the process. Returns 2, with one line on standard
    error, for what does not fit."""
    try:
        serve(parse(arguments))
    except SidecarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def serve(options: Options) -> NoReturn:
    """Serves the page until a signal ends the process. Raises SidecarError before that."""
    shutdown = Shutdown()
    check_address(options.host, options.port)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # These come late: Gradio reads the environment, which had to be checked first, and takes
    # seconds. And `zero_gpu` goes before all that may import torch.
    from sidecar_core.host import zero_gpu  # isort: split
    from sidecar_core.host.model_host import ModelHost, load_engine
    from sidecar_core.page.page import build_demo, launch_arguments
    from sidecar_core.server import launch as serving
    from sidecar_core.server import logs, memory

    memory.few_arenas()
    logs.set_up(options.log)
    load = zero_gpu.adapted(load_engine(options.pair, options.precision, options.device))
    host = ModelHost(load, options.max_seconds, options.max_waiting)
    if zero_gpu.ON:
        host.load_here()
    else:
        host.start()
    demo = build_demo(host)
    try:
        demo.launch(
            prevent_thread_lock=True,
            **launch_arguments(options.max_waiting),
            **serving.server_arguments(host, options),
        )
    except OSError as error:
        raise SidecarError(f"The server cannot listen: {error}") from error

    def close() -> None:
        host.watch.close(RUNS_SECONDS)
        demo.close(verbose=False)

    shutdown.wait_and(close)
