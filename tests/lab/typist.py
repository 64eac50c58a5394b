"""A newcomer who types what a page says, in a shell on a terminal, and edits the files that it names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright_lab.lab import Lab
from tests.pages import Act, Edited, Program
from tests.programs.typed import Typed as Terminal

PATIENCE = 900.0
"""Seconds for a command."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and what a live view moves by."""
QUESTIONS = {
    "[y/N]": "y\n",
    "Number or name [1]:": "b200\n",
    "Press enter to execute...": "\n",
    "Type yes to continue:": "yes\n",
}
"""What is asked on the way, and what a newcomer answers."""


@dataclass
class Typist:
    """Where an operator stands who types, and all that was shown, by section of the page."""

    folder: Path
    environment: Mapping[str, str]
    stands_for: Mapping[str, str]
    """Words of the page, and what they are here."""
    lab: Lab
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _shipped: dict[Path, str] = field(default_factory=dict)

    def does(self, act: Act, status: int = 0) -> str:
        """Do one thing of a page, and return what was shown. Fails where a command ends with another status."""
        if isinstance(act, Edited):
            return self._edits(act)
        text = self._here(act.lines if isinstance(act, Program) else act.command)
        command = shlex.join(["python", "-c", text]) if isinstance(act, Program) else text
        ended, shown = self.types(command)
        shown = f"$ {command}\n{shown}"
        print(shown)
        assert ended == status, f"{command}: {ended}"
        self.shown[act.section].append(shown)
        return shown

    def types(self, command: str) -> tuple[int, str]:
        """Type a command; returns its exit status, and what was shown. The shell stays where it has gone."""
        stands_at = Path(self.environment["HOME"]) / "stands-at"
        script = f"{command}\nstatus=$?\npwd >{shlex.quote(str(stands_at))}\nexit $status\n"
        with Terminal(["bash", "-c", script], self.folder, self.environment) as terminal:
            try:
                status = terminal.answers(QUESTIONS, PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{command} did not end within {PATIENCE:g} s:\n{terminal.shown}") from None
        self.folder = Path(stands_at.read_text().strip())
        stands_at.unlink()
        return status, ESCAPES.sub("", terminal.shown)

    def _edits(self, act: Edited) -> str:
        path = self.folder / act.file
        shipped = self._shipped.setdefault(path, path.read_text())
        path.write_text(shipped + self._here(act.lines))
        return ""

    def _here(self, text: str) -> str:
        for name, here in self.stands_for.items():
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", here, text)
        return text


def environment(home: Path, *folders: Path, **more: str) -> dict[str, str]:
    """Return the environment of an operator with this home, and programs of their own in these folders."""
    passed = {name: value for name, value in os.environ.items() if not name.startswith(("RACKWRIGHT_", "PYTHON"))}
    path = ":".join([*map(str, folders), passed["PATH"]])
    return {**passed, "HOME": str(home), "PATH": path, "COLUMNS": "1000", **more}
