"""Serves the page: options, models in the background, then the server.

The server is up at once; the models load in the background. Every option has an environment
variable, for hosts that start the app without arguments (`sidecar_core/server/options.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sidecar_core.errors import SidecarError
from sidecar_core.server.network import bypass_proxies, check_address, without_proxies
from sidecar_core.server.options import Options, parse
from sidecar_core.server.process import RUNS_SECONDS, Shutdown, limit_malloc_arenas


def main(arguments: Sequence[str] | None = None) -> int:
    """`python app.py`: serve until a signal ends the process. Returns 2, with one line on standard
    error, if the page cannot be served."""
    try:
        serve(parse(arguments))
    except SidecarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def serve(options: Options) -> NoReturn:
    """Serve the page until a signal ends the process. Raises SidecarError if it cannot start."""
    shutdown = Shutdown()
    check_address(options.host, options.port)
    bypass_proxies(options.host)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # Imported late: Gradio takes seconds, and reads environment variables that were only checked
    # above. `zero_gpu` must come before anything that may import torch.
    from sidecar_core.host import zero_gpu  # isort: split
    from sidecar_core.host.model_host import ModelHost, load_engine

    with without_proxies():
        from sidecar_core.page.looks import launch_arguments
        from sidecar_core.page.page import build_demo
        from sidecar_core.server import gradio_start, logs
        from sidecar_core.server import launch as serving

    limit_malloc_arenas()
    logs.set_up(options.log)
    gradio_start.prepare(options.host, options.port)
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
        raise SidecarError(f"The server cannot start: {error}") from error

    def close() -> None:
        host.monitor.close(RUNS_SECONDS)
        demo.close(verbose=False)

    shutdown.wait_and(close)
