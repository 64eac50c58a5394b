"""Runs an engine's program on one host and measures it: `python3 member.py FILE.json`.

The file: {"argv", "folder", "file", "sha256", "marker": file that says that all is here, or null where the program's
end does, "verifies": whether that means that its SHA-256 was compared, "away": [seconds until it is killed, seconds
until it begins again] or null, "limit": seconds}.
Begins at the time in the file `go` of its folder, which all hosts get; they share one clock. Writes done.json when all
is here, and result.json when it is stopped by a file called `stop`: only then it reads the file, so that the hosts of a
machine do not take each other's CPU. Where the engine has not compared the SHA-256, the CPU for that is added.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PAUSE = 0.05
GRACE = 5.0


class Member:
    """One host's part in one cell."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.folder = Path(spec["folder"])
        self.child: subprocess.Popen[bytes] | None = None
        self.began = 0.0
        self.over = False
        self.found: dict[str, Any] = {"seconds": None, "check": 0.0, "starts": 0, "error": None}

    def run(self) -> None:
        """Begin at the time of all, see it through, and write the result."""
        self._await_go()
        self._start()
        while not (self.folder / "stop").exists() and self._passed() < self.spec["limit"]:
            self._look()
            time.sleep(PAUSE)
        self._end()
        self.found |= engine_used()
        if self.found["seconds"] is not None:
            self._check()
        self._write("result.json")

    def _await_go(self) -> None:
        deadline = time.time() + self.spec["limit"]
        while not (self.folder / "go").exists():
            if time.time() > deadline:
                sys.exit("the signal to begin has not come")
            time.sleep(PAUSE)
        self.began = float((self.folder / "go").read_text())
        time.sleep(max(0.0, self.began - time.time()))

    def _passed(self) -> float:
        return time.time() - self.began

    def _look(self) -> None:
        away = self.spec["away"]
        if away and self.found["starts"] == 1 and self._passed() > away[0] and self.child is not None:
            self._kill()
        if away and self.child is None and self._passed() > away[1]:
            self._start()
        if not self.over and self.child is not None:
            self._see(self.child.poll())

    def _see(self, status: int | None) -> None:
        """Remember when all was here, or that it never will be; status: of the engine, if it has ended."""
        if Path(self.spec["marker"]).exists() if self.spec["marker"] else status == 0:
            self.over, self.found["seconds"] = True, self._passed()
        elif status is not None:
            self.over, self.found["error"] = True, f"the engine ended with {status}"
        if self.over:
            self._write("done.json")

    def _start(self) -> None:
        self.found["starts"] += 1
        with (self.folder / "log").open("ab") as log:
            self.child = subprocess.Popen(
                self.spec["argv"], stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )

    def _check(self) -> None:
        begun = time.process_time()
        right = sha256_of(Path(self.spec["file"])) == self.spec["sha256"]
        self.found["check"] = time.process_time() - begun
        if not right:
            self.found |= {"seconds": None, "error": "the file is not the origin's"}
        elif not self.spec["verifies"]:
            self.found["seconds"] += self.found["check"]

    def _kill(self) -> None:
        assert self.child is not None
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.child = None

    def _end(self) -> None:
        if self.child is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGTERM)
        try:
            self.child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._kill()

    def _write(self, name: str) -> None:
        partial = self.folder / f"{name}.partial"
        partial.write_text(json.dumps(self.found))
        partial.rename(self.folder / name)


def engine_used() -> dict[str, float]:
    """Return CPU seconds of all that the engine ran, and the peak of its largest process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu": used.ru_utime + used.ru_stime, "peak_kib": used.ru_maxrss}


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with file.open("rb") as source:
        while data := source.read(1 << 20):
            found.update(data)
    return found.hexdigest()


if __name__ == "__main__":
    Member(json.loads(Path(sys.argv[1]).read_text())).run()
