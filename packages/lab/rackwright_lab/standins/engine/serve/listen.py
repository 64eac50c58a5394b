"""The server's socket, and serving on it until a signal or a fault ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from .state import Engine


def bound(host: str, port: int, *reuse: int) -> socket.socket:
    """Return a socket that holds the address but does not listen yet. Raises RuntimeError when it is taken.

    reuse: the socket options that the real server sets, such as SO_REUSEADDR. Without it the address is taken for a
    minute after a server that closed its clients' connections itself, on a host's own network. trtllm-serve sets none
    (tensorrt_llm/commands/serve.py, launch_server).
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    for option in reuse:
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind(address)
    except OSError as error:
        raise RuntimeError(f"Failed to bind socket to {host}:{port}: {error}") from error
    return made


class CalmServer(uvicorn.Server):
    """Wakes once a second and at signals: uvicorn wakes ten times a second, which on forty idle hosts costs a core."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._signalled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Tick once a second until the server is to exit; a signal ends the wait at once."""
        self._loop = asyncio.get_running_loop()
        # Counter 0 is uvicorn's own sign to renew the Date header, which it does once a second.
        signalled = asyncio.ensure_future(self._signalled.wait())
        while not await self.on_tick(0):
            await asyncio.wait([signalled], timeout=1)
        signalled.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal, and wake the loop."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)


def server(application: Starlette) -> uvicorn.Server:
    """Return a web server with the limits that all engines have."""
    settings = uvicorn.Config(application, log_level="info", timeout_keep_alive=5, timeout_graceful_shutdown=5)
    return CalmServer(settings)


def arm_death(engine: Engine) -> None:
    """Set the clock of the fault `die_after_seconds`, if it is on."""
    seconds = engine.faults.active().get("die_after_seconds")
    if seconds is not None:
        signal.signal(signal.SIGALRM, lambda *_: engine.die("CUDA error: unspecified launch failure"))
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
