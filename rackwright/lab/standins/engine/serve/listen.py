"""The server's socket, and serving on it until a signal or a fault ends it."""

from __future__ import annotations

import signal
import socket

import uvicorn
from starlette.applications import Starlette

from .state import Engine


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address but does not listen yet. Raises RuntimeError when it is taken."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    try:
        made.bind(address)
    except OSError as error:
        raise RuntimeError(f"Failed to bind socket to {host}:{port}: {error}") from error
    return made


def server(application: Starlette) -> uvicorn.Server:
    """Return a web server with the limits that all engines have."""
    settings = uvicorn.Config(application, log_level="info", timeout_keep_alive=5, timeout_graceful_shutdown=5)
    return uvicorn.Server(settings)


def arm_death(engine: Engine) -> None:
    """Set the clock of the fault `die_after_seconds`, if it is on."""
    seconds = engine.faults.active().get("die_after_seconds")
    if seconds is not None:
        signal.signal(signal.SIGALRM, lambda *_: engine.die("CUDA error: unspecified launch failure"))
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
