"""A host's address and known key, and the hosts that SSH is going to refuse, with what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.messages import SettingsError
from rackwright.settings.ssh.known_keys import HostNames
from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion, ask, ask_all

USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
SSH_PORT = 22
STRICT = "ssh_strict_host_key_checking"


@dataclass(frozen=True)
class HostKeyPlace:
    """The address of a host and of its key: as pyinfra and OpenSSH have it."""

    address: str
    port: int
    entry: str
    """Its name in known_hosts."""
    files: tuple[str, ...]
    """The files that are read, as they were written; a new key goes into the first."""
    shared: tuple[str, ...] = ()
    """Files of the machine that are read, and never written."""
    also: str = ""
    """Its name without the port, by which ssh knows its key too."""

    @property
    def names(self) -> HostNames:
        """Its name in known_hosts."""
        return HostNames(self.entry, self.also, (*self.files, *self.shared))


def question_of(name: str, data: Mapping[str, Any]) -> SshQuestion:
    """Return a host as ssh would be given it, from its connection data."""
    user, file = data.get("ssh_user"), data.get("ssh_config_file")
    return SshQuestion(
        str(data.get("ssh_hostname") or name.removeprefix("@ssh/")),
        str(file) if file else None,
        user if isinstance(user, str) and user else None,
        data["ssh_port"] if isinstance(data.get("ssh_port"), int) else None,
    )


def is_by_ssh(name: str) -> bool:
    """Return True for a host that is reached by SSH, and not by another connector of pyinfra's."""
    return not name.startswith("@") or name.startswith("@ssh/")


def not_followed(hosts: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Ask ssh about many hosts at once; returns what it would do for them and we do not.

    hosts: names and connection data. Raises SettingsError where ssh refuses its configuration.
    """
    questions = [question_of(name, data) for name, data in hosts if is_by_ssh(name)]
    for question in questions:
        if question.file and not Path(question.file).expanduser().exists():
            raise SettingsError(
                f"{question.host}: ssh_config_file: there is no {question.file}; next: write it, or leave the key out",
                code="RW0135",
            )
    answers = {question: answer for question, answer in ask_all(questions).items() if answer.options}
    if not answers:
        return []
    from rackwright.settings.ssh.not_taken import not_taken  # noqa: PLC0415 - few machines configure ssh

    return not_taken(answers)


def refuse_unfit(question: SshQuestion, answer: SshAnswer) -> None:
    """Raise SettingsError for what ssh would do, and cannot be left out here."""
    if answer.options:
        from rackwright.settings.ssh.not_taken import refuse_shortfalls  # noqa: PLC0415 - as above

        refuse_shortfalls(question, answer)


def place_of(name: str, data: Mapping[str, Any]) -> HostKeyPlace:
    """Return the place of a host, from its connection data and the SSH configuration."""
    question = question_of(name, data)
    file = data.get("ssh_known_hosts_file")
    return place_for(question, ask(question), str(file) if file else None)


def place_for(question: SshQuestion, answer: SshAnswer, known_hosts: str | None) -> HostKeyPlace:
    """Return the same from ssh's answer. known_hosts: the file that the settings name, in place of all others."""
    address = answer.get("hostname", question.host)
    port = question.port or int(answer.get("port") or SSH_PORT)
    alias = answer.get("hostkeyalias")
    entry = alias or (address if port == SSH_PORT else f"[{address}]:{port}")
    also = address if entry not in (address, alias) else ""
    if known_hosts:
        return HostKeyPlace(address, port, entry, (known_hosts,), also=also)
    files, shared = (
        _files(answer, "userknownhostsfile", USER_FILES),
        _files(answer, "globalknownhostsfile", GLOBAL_FILES),
    )
    return HostKeyPlace(address, port, entry, files, shared, also)


def _files(answer: SshAnswer, keyword: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    stated = answer.every(keyword)
    if not stated:
        return usual
    words = shlex.split(stated[0]) if '"' in stated[0] else stated[0].split()
    return tuple(name for name in words if name.lower() != "none")


def is_unknown(name: str, data: Mapping[str, Any]) -> bool:
    """Return True if a host's key is checked strictly and is in none of the files that SSH reads."""
    return is_by_ssh(name) and data.get(STRICT) == "yes" and not place_of(name, data).names.usable


def advice(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one warning about all such hosts. hosts: their connection data, by name."""
    names = list(hosts)
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    remarks = dict.fromkeys(text for name in names[:3] for text in place_of(name, hosts[name]).names.remarks())
    return (
        f"the host keys of {some} are not in known_hosts, so SSH will refuse them: "
        "ssh to each once and compare the key, or set accept_new_host_keys: true for the first contact"
        f"{''.join(f'; {text}' for text in remarks)}"
    )
