"""Commands that begin loaded: a process that has imported pyinfra and Rackwright once forks for each command of a test.

Two thirds of a short command's CPU is its start, and the lab's tests type some hundreds of them on two cores. A fork
runs the program's own entry point with its own words, folder, environment, session and output, and ends as any Python
does; it can be followed and killed as any other (tests/lab/running.py). Started as users start them are those within
another program (strace, unshare), and with RACKWRIGHT_COLD_START=1, as in `make proof`, all.

The server's half is `python -m tests.warm PROGRAM DESCRIPTOR`.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TextIO

import gevent

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LONGEST = 150_000
"""Bytes of one request, an environment included; a packet of Linux's default size holds it."""
FIRST = {"pyinfra": "pyinfra_cli.main", "rackwright": "rackwright.cli.main"}
"""The module of each program's `main`. Its console script imports it before all others, and gevent patches there."""
ADDITIONAL = (
    "rackwright.inventory",
    "rackwright.operations.endpoints",
    "rackwright.cli.rollout",
    "rackwright.cli.status",
    "rackwright.inspect.status.output",
    "rackwright.rollout.launch",
    "rackwright.record.view.report",
    "rackwright_lab.inventory",
)
"""What most commands load. Nothing of a site: what is beside a deploy.py is each run's own."""
FORK, WAIT, CLOSE = os.fork, os.waitpid, os.close
"""Python's own: pyinfra has gevent put others in their place, for which its loop would have to run here."""
COLD = "RACKWRIGHT_COLD_START"
"""The variable with which each command is started as users start it."""
PATH = "PYTHONPATH"
"""The one variable of Python's own that a fork goes by: it reads them at its start."""


class Forked:
    """A command in a fork: what of subprocess.Popen is needed of it. It leads a process group of its own."""

    def __init__(self, words: Sequence[str], answers: TextIO) -> None:
        self._words, self._answers = words, answers
        first = answers.readline()
        assert first, f"the process that was to fork {words[0]} is gone: its last words are above"
        self.pid = int(first)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, once it has ended."""
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired when it has none after so many seconds."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self._words), timeout or 0)
            with self._answers as answers:
                self.returncode = int(answers.readline())
        return self.returncode


class Server:
    """A process that has loaded a program, as a test sees it. It ends when this end of their socket is closed."""

    def __init__(self, program: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, "-m", __name__, program, str(theirs.fileno())]
            env = {name: value for name, value in os.environ.items() if name != PATH}
            subprocess.Popen(words, cwd=ROOT, env=env, pass_fds=[theirs.fileno()], start_new_session=True)

    def start(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], output: int) -> Forked:
        """Begin a command that reads nothing and prints into a descriptor."""
        request = json.dumps({"words": words, "cwd": str(cwd), "env": dict(env)}).encode()
        assert len(request) < LONGEST, "an environment that is too large for a packet"
        reading_end, tell = os.pipe()
        socket.send_fds(self._requests, [request], [output, tell])
        os.close(tell)
        return Forked(words, os.fdopen(reading_end))


def run(words: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float) -> tuple[int, str]:
    """Run a command, and return its status and all that it printed.

    Raises subprocess.TimeoutExpired, with what it printed, once it is killed for having taken so many seconds.
    """
    with tempfile.TemporaryFile() as printed:
        process = start(words, cwd, env, printed.fileno())
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired as late:
            late.output = _read(printed)
            raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return status, _read(printed)


def _read(printed: IO[bytes]) -> str:
    printed.seek(0)
    return printed.read().decode(errors="replace")


def start(words: Sequence[str], cwd: Path, env: Mapping[str, str], output: int) -> Forked | subprocess.Popen[bytes]:
    """Begin a command by the quickest way that runs the same code, in a process group of its own."""
    if found := _loaded(words, env):
        fork_server, own_words, own_env = found
        return fork_server.start(own_words, cwd, own_env, output)
    return subprocess.Popen(
        words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )


def _loaded(words: Sequence[str], env: Mapping[str, str]) -> tuple[Server, list[str], dict[str, str]] | None:
    """Return the server of one of Rackwright's commands, perhaps with variables by `env`, its words and environment.

    None: the command is started as any other program is.
    """
    environment, arguments = dict(env), list(words)
    if arguments[0] == "env":
        arguments = arguments[1:]
        while "=" in arguments[0]:
            name, _, value = arguments.pop(0).partition("=")
            environment[name] = value
    program = next((name for name in FIRST if arguments[0] == str(BIN / name)), None)
    differs = any(
        environment.get(name) != os.environ.get(name)
        for name in environment
        if name.startswith("PYTHON") and name != PATH
    )
    return (server(program), arguments, environment) if program and not differs and not os.environ.get(COLD) else None


@cache
def server(program: str) -> Server:
    """Return this process's server of a program."""
    return Server(program)


def serve(program: str, requests: socket.socket) -> None:
    """Load a program, and fork for each request. Only a command returns: by SystemExit, in its fork."""
    main: Callable[[], Any] = import_module(FIRST[program]).main
    for name in ADDITIONAL:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, LONGEST, 2)
        if not request:
            return
        output, tell = descriptors
        if not FORK():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            supervise(output, tell)
            command(main, **json.loads(request))
        CLOSE(output)
        CLOSE(tell)


def supervise(output: int, tell: int) -> None:
    """Fork once more: there, return with a session and an output of its own; here, tell its pid, and its status."""
    if pid := FORK():
        CLOSE(output)
        os.write(tell, f"{pid}\n".encode())
        os.write(tell, f"{os.waitstatus_to_exitcode(WAIT(pid, 0)[1])}\n".encode())
        os._exit(0)
    os.setsid()
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    CLOSE(output)
    CLOSE(tell)


def command(main: Callable[[], Any], words: list[str], cwd: str, env: dict[str, str]) -> None:
    """Be the console script of a program. Raises SystemExit with its status."""
    # Its loop is there from the import on: all forks would wake each other by it, and its clock has stood since.
    gevent.reinit()
    gevent.get_hub().loop.update_now()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    sys.path[:1] = [str(BIN), *filter(None, env.get(PATH, "").split(os.pathsep))]
    script = ModuleType("__main__")
    script.__file__ = words[0]  # click takes a program's name from it
    sys.modules["__main__"] = script
    sys.exit(main())


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
