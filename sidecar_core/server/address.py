"""Whether the server can listen where it is told to, asked before anything else is begun.

Gradio would find out late, and say something else in two lines.
"""

from __future__ import annotations

import os
import socket

from sidecar_core.errors import SidecarError


def check_address(host: str, port: int) -> None:
    """Raises SidecarError where nobody can listen at that address."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # a port that a server has just left is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SidecarError(
            f"Cannot listen at {host}, port {port}: {why}. Choose others with --host and --port."
        ) from error
