"""Small servers on this machine: a proxy that notes who asks, and what IPv6 needs."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest


def listening(host: str = "127.0.0.1") -> socket.socket:
    """A socket that listens at a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.socket(family)
    server.bind((host, 0))
    server.listen(20)
    return server


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError):
        listening("::1").close()
        return True
    return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")


class Proxy:
    """What `serving` yields: its address, and the number of connections that it took."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.asked = 0


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[Proxy]:
    """A proxy that treats each connection with `answer` and closes it then."""
    with listening() as server:
        proxy = Proxy(server.getsockname()[1])

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    visitor, _ = server.accept()
                    proxy.asked += 1
                    threading.Thread(target=treat, args=(visitor,), daemon=True).start()

        def treat(visitor: socket.socket) -> None:
            with visitor, contextlib.suppress(OSError):
                visitor.settimeout(20)
                answer(visitor)

        threading.Thread(target=serve, daemon=True).start()
        yield proxy
        server.shutdown(socket.SHUT_RDWR)  # ends `accept`


def http_answer(status: str) -> Callable[[socket.socket], None]:
    """An HTTP proxy that answers every request with `status`, for example "403 Forbidden"."""

    def answer(visitor: socket.socket) -> None:
        visitor.recv(65536)
        visitor.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

    return answer


def socks_refuses(visitor: socket.socket) -> None:
    """A SOCKS5 proxy whose rules allow no connection."""
    visitor.recv(512)
    visitor.sendall(b"\x05\x00")
    visitor.recv(512)
    visitor.sendall(b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00")


def socks_to(port: int) -> Callable[[socket.socket], None]:
    """A SOCKS5 proxy that connects everybody to that port of this machine."""

    def answer(visitor: socket.socket) -> None:
        visitor.recv(512)
        visitor.sendall(b"\x05\x00")
        visitor.recv(512)
        with socket.create_connection(("127.0.0.1", port)) as there:
            visitor.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            back = threading.Thread(target=_copy, args=(there, visitor), daemon=True)
            back.start()
            _copy(visitor, there)
            back.join(20)

    return answer


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
