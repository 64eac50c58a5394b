"""Problems in settings: collected all at once, printed with file, line, key and the nearest right name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.messages import SettingsError, coded, printable
from rackwright.settings.origin import Origin
from rackwright_engines.key_path import KeyPath, dotted

HEADING = "the settings are not valid, nothing was connected:"


@dataclass(frozen=True)
class Problem:
    """One thing to fix: where, which key (may be empty), what is wrong, and the host it was found on."""

    where: Origin | None
    path: KeyPath
    text: str
    host: str = ""
    code: str = field(kw_only=True)
    """The argument of `rackwright explain`."""
    of_host: bool = False
    """True when more than the one file makes it wrong, such as the host's GPUs: then the hosts are reported too."""


class InvalidSettingsError(SettingsError):
    """Everything that is wrong with the settings of an inventory, in one message."""

    code = "RW0101"

    def __init__(self, problems: Sequence[Problem], next_command: str, hosts: Collection[str] = ()) -> None:
        """hosts: all that are refused, those included that are right themselves and serve with one that is not."""
        self.problems = tuple(problems)
        self.hosts = frozenset(hosts)
        super().__init__("\n".join([HEADING, *_lines(problems), f"fix these, then: {next_command}"]))


def _lines(problems: Sequence[Problem]) -> list[str]:
    hosts: dict[tuple[str, int, str, str], dict[str, bool]] = {}
    for problem in problems:
        file, number = (problem.where.file, problem.where.line_number) if problem.where else ("", 0)
        by_host = hosts.setdefault((file, number, _text(problem), problem.code), {})
        if problem.host:
            by_host[problem.host] = by_host.get(problem.host, False) or problem.of_host
    every = {problem.host for problem in problems if problem.host}
    return [
        printable(f"  {coded(code, _place(file, number, list(names)))}{text}{_on(file, names, every)}")
        for (file, number, text, code), names in sorted(hosts.items(), key=lambda one: one[0])
    ]


def _on(file: str, hosts: Mapping[str, bool], every: Collection[str]) -> str:
    """Name the hosts where the file does not say them: what more than it makes wrong, and what is wrong on some alone.

    hosts: whether more than the file makes it wrong there. every: all on which anything is wrong.
    """
    if not file or not hosts or all(file.startswith(f"host_vars/{host}") for host in hosts):
        return ""
    return f"; on {some(list(hosts))}" if any(hosts.values()) or len(hosts) < len(every) else ""


def _text(problem: Problem) -> str:
    written = problem.where.written if problem.where else ""
    path = (written, *problem.path[1:]) if written else problem.path
    return f"{dotted(path)}: {problem.text}" if path else problem.text


def _place(file: str, number: int, hosts: Sequence[str]) -> str:
    if file:
        return f"{Origin(file, number)}: "
    return f"{some(hosts)}: " if hosts else ""


def some(hosts: Sequence[str]) -> str:
    """Name the first three, and how many more."""
    remaining = len(hosts) - 3
    return ", ".join(hosts[:3]) + (f" and {remaining} more" if remaining > 0 else "")
