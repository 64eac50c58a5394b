"""ssh's own way to a host: asked of `ssh -G`, once a host, side by side, before anything connects."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from rackwright.messages import SettingsError

if TYPE_CHECKING:
    from rackwright.settings.ssh.side_by_side import Finished

USER_FILE = "~/.ssh/config"
SYSTEM_FILE = Path("/etc/ssh/ssh_config")
NO_FILE = "none"
"""As ssh takes it: no configuration at all."""
NOT_OURS = (
    *("include", "host", "sendenv", "hashknownhosts", "gssapiauthentication", "gssapidelegatecredentials"),
    *("forwardx11", "forwardx11trusted", "loglevel", "compression", "visualhostkey", "addkeystoagent"),
    *("controlmaster", "controlpath", "controlpersist"),
)
"""Keywords that change nothing of how a host is reached: a file that has no others need not be asked about."""
DEPTH = 2
"""Files within files that are looked into before ssh is asked anyway."""
ADDRESS = "192.0.2.1"
"""A host that no file names: what ssh says of it without any configuration are its defaults."""


@dataclass(frozen=True)
class SshQuestion:
    """A host as ssh would be given it."""

    host: str
    file: str | None = None
    """`ssh -F`; None: the files that ssh reads without it."""
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class SshAnswer:
    """ssh's options for a host, without those that every host has by default."""

    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By keyword in lower case."""

    def get(self, keyword: str, default: str = "") -> str:
        """Return the value of a keyword; the default where nothing is said, or `none`."""
        value = next(iter(self.options.get(keyword, ())), default)
        return default if value.lower() == "none" else value

    def every(self, keyword: str) -> list[str]:
        """Return all values of a keyword that may stand several times."""
        return list(self.options.get(keyword, ()))

    def is_set(self, keyword: str, *values: str) -> bool:
        """Return True where a keyword has one of the values."""
        return self.get(keyword).lower() in values


NOTHING = SshAnswer()
_answers: dict[tuple[object, ...], SshAnswer] = {}


def ask(question: SshQuestion) -> SshAnswer:
    """Return what ssh would do. Raises SettingsError, with file and line, where it refuses its configuration."""
    return ask_all([question])[question]


def ask_all(questions: Iterable[SshQuestion]) -> dict[SshQuestion, SshAnswer]:
    """Ask for many hosts at the price of a few: what was asked before is remembered while its files stay."""
    keys = {question: _key(question) for question in questions}
    missing = [question for question, key in keys.items() if key is not None and key not in _answers]
    if missing:
        _ask(missing, keys)
    return {question: NOTHING if key is None else _answers[key] for question, key in keys.items()}


def _key(question: SshQuestion) -> tuple[object, ...] | None:
    """Return what an answer is remembered by; None where the files say nothing of how a host is reached."""
    file = _file(question)
    if file == NO_FILE or (file is None and not matters(_usual(), SYSTEM_FILE)):
        return None
    return question, file, _stamp(Path(file) if file else _usual())


def _ask(questions: list[SshQuestion], keys: Mapping[SshQuestion, tuple[object, ...] | None]) -> None:
    if not shutil.which("ssh"):
        from rackwright.settings.ssh.plain_config import read_plainly  # noqa: PLC0415 - few machines have no ssh

        for question in questions:
            read = read_plainly(question.host, Path(_file(question) or _usual()))
            _answers[keys[question] or ()] = SshAnswer(read)
        return
    usual = _defaults()
    for question, ended in zip(questions, run_all([_words(question) for question in questions]), strict=True):
        if ended.status != 0:
            raise _refused(question, ended)
        answer = _parsed(ended.out)
        differing = {key: value for key, value in answer.items() if usual.get(key) != value}
        _answers[keys[question] or ()] = SshAnswer(differing)


def run_all(commands: Sequence[Sequence[str]]) -> Sequence[Finished]:
    """Run commands side by side."""
    from rackwright.settings.ssh import side_by_side  # noqa: PLC0415 - where no file says anything, nothing is asked

    return side_by_side.run_all(commands)


@cache
def _defaults() -> Mapping[str, tuple[str, ...]]:
    [ended] = run_all([["ssh", "-T", "-G", "-F", NO_FILE, ADDRESS]])
    return {**_parsed(ended.out), "hostname": (), "host": ()}


def _words(question: SshQuestion) -> list[str]:
    file = _file(question)
    return [
        *("ssh", "-T", "-G"),
        *(("-F", file) if file else ()),
        *(("-l", question.user) if question.user else ()),
        *(("-p", str(question.port)) if question.port else ()),
        *("--", question.host),
    ]


def _parsed(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in text.splitlines():
        keyword, _, value = row.partition(" ")
        found[keyword.lower()] = (*found.get(keyword.lower(), ()), value.strip())
    return found


def _refused(question: SshQuestion, ended: Finished) -> SettingsError:
    lines = [row.strip() for row in ended.err.splitlines() if row.strip()]
    relevant = [row for row in lines if "terminating" not in row and "Pseudo-terminal" not in row]
    why = "; ".join(relevant or lines) or f"it ended with {ended.status}"
    if ended.status is None:
        why = "it took too long: a `Match exec`, or CanonicalizeHostname?"
    if "jumphost loop" in why:
        return SettingsError(through_itself(question.host), code="RW0125")
    return SettingsError(
        f"{question.host}: ssh does not take its configuration: {why}; next: {' '.join(_words(question))}",
        code="RW0125",
    )


def through_itself(hop: str) -> str:
    """Return why a jump host is never reached, and what to write."""
    return (
        f"the SSH configuration reaches jump host {hop} through itself; next: before the ProxyJump of the others, "
        f"`Host {hop}` with `ProxyJump none`"
    )


# -- files


def _file(question: SshQuestion) -> str | None:
    """Return the file to name to ssh; None for those that it reads without one."""
    if question.file:
        path = Path(question.file).expanduser()
        return str(path) if path.exists() else NO_FILE
    if Path.home() == Path(pwd.getpwuid(os.getuid()).pw_dir):
        return None
    return str(_usual()) if _usual().is_file() else NO_FILE  # ssh itself never looks at $HOME


def _usual() -> Path:
    return Path(USER_FILE).expanduser()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def matters(*files: Path, depth: int = 0) -> bool:
    """Return True if any of these files says how a host is reached, as far as a look tells."""
    return any(_says_more(file, _stamp(file), depth) for file in files if file.exists())


@cache
def _says_more(file: Path, stamp: tuple[int, int], depth: int) -> bool:  # noqa: ARG001 - another stamp, another look
    if depth > DEPTH:
        return True
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return True
    words = [row.replace("=", " ").split(None, 1) for row in lines if row.strip() and row.lstrip()[0] != "#"]
    if any(option[0].lower() not in NOT_OURS for option in words):
        return True
    included = [name for option in words if option[0].lower() == "include" for name in option[-1].split()]
    paths = [Path(path) for name in included for path in glob(str(file.parent / Path(name).expanduser()))]  # noqa: PTH207
    return matters(*paths, depth=depth + 1)
