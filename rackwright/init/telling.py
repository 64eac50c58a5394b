"""The last lines of `rackwright init`: what was written, what to edit, and what to type next. Pure."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from rackwright.init.choices import Choices, SiteGroup
from rackwright.init.fresh import NUMBERS, host_entry
from rackwright.init.machine import Machine
from rackwright.init.typed_host import TypedHost
from rackwright.messages import counted
from rackwright.profiles.catalog import Profile

ABOUT = {
    "deploy.py": "the steps of a host, in their order",
    "config.py": "what pyinfra reads first",
    "group_vars/all.yml": "every host: logins, tokens, who may connect",
    "tasks/__init__.py": "the steps, from the library; yours can replace them",
    "templates": "the endpoint's unit and its two scripts",
    ".gitignore": "what stays out of version control",
    "rackwright.lock.yml": "the profile as it is now, so that an upgrade restarts nothing",
    ".rackwright": "not to edit: an update merges by it; the settings' schema for editors",
    "inventory/ansible.py": "reads an Ansible inventory for pyinfra",
    "inventory/lab.py": "the hosts of the lab that is up",
    "group_vars/lab.yml": "what is different in the lab",
}
"""The purpose of each file."""
ORDER = (
    *("deploy.py", "config.py", "inventory", "group_vars", "tasks", "templates"),
    *("rackwright.lock.yml", ".gitignore", ".rackwright"),
)
HIDDEN = ".rackwright"
FOLDERS = ("templates", HIDDEN)
"""Folders that are one row."""
ALL = Path("group_vars/all.yml")


def of_machines(machines: Mapping[TypedHost, Machine]) -> Iterator[str]:
    """Yield what was read of each host."""
    for host, machine in machines.items():
        yield f"{host.address}: {machine.text if machine.gpu else machine.trouble}"
        if machine.gpu and not machine.fitting:
            yield f"  no shipped profile is for {machine.gpus} x {machine.gpu}"
        if machine.architecture and not machine.has_sudo:
            yield f"  {host.user or 'the login'} needs sudo without a password there: a deploy works as root"


def tree(written: Collection[Path], found: Choices) -> Iterator[str]:
    """Yield the files that were written, each with what it is for."""
    about = {**ABOUT, **dict(_about(found))}
    shown = dict.fromkeys(_shown(path) for path in written)
    names = sorted(shown, key=lambda name: (ORDER.index(name.partition("/")[0]), name))
    width = max(map(len, names), default=0)
    yield from (f"  {name:{width}}  {about.get(name.rstrip('/'), '')}".rstrip() for name in names)


def _shown(path: Path) -> str:
    return f"{path.parts[0]}/" if path.parts[0] in FOLDERS else str(path)


def _about(found: Choices) -> Iterator[tuple[str, str]]:
    for stem, groups in found.inventories.items():
        hosts = sum(len(group.hosts) for group in groups)
        yield f"inventory/{stem}.py", counted(hosts, "host") if hosts else _no_hosts(groups)
    for group in found.groups:
        yield f"group_vars/{group.name}.yml", f"profile {group.profile.name}, and what you set beside it"


def _no_hosts(groups: Sequence[SiteGroup]) -> str:
    if len(groups) > 1:
        return "the groups, without a host yet"
    return f"{NUMBERS[max(groups[0].profile.hosts, 2)]} example hosts"


def edits(texts: Mapping[Path, str], found: Choices) -> Iterator[str]:
    """Yield file and line of what must be edited. texts: the site's files as they are."""
    for stem, groups in found.inventories.items():
        yield from _edit(Path(f"inventory/{stem}.py"), texts, *_wanted_of(groups))
    yield from _edit(ALL, texts, "# models:", "your Hugging Face token, where the model needs one")
    if any(group.profile.image.startswith("nvcr.io/") for group in found.groups):
        yield from _edit(ALL, texts, "# registry:", "your NGC key, where the image needs a login")


def _wanted_of(groups: Sequence[SiteGroup]) -> tuple[str, str]:
    """Return the words of the line of an inventory that must be edited, and what belongs there."""
    if any(group.hosts for group in groups):
        return "# fabric_address", "the hosts' addresses to each other"
    return (".example.com" if len(groups) == 1 else f"{json.dumps(groups[0].name)}: [", "your hosts")


def _edit(path: Path, texts: Mapping[Path, str], words: str, what: str) -> Iterator[str]:
    rows = texts.get(path, "").splitlines()
    number = next((number for number, row in enumerate(rows, 1) if words in row), 0)
    if number:
        yield f"  {f'{path}:{number}':24}  {what}"


def retained(site: Path, existing: Collection[Path]) -> Iterator[str]:
    """Yield the files that were there already."""
    names = ", ".join(str(path) for path in existing if path.parts[0] != HIDDEN)
    if names:
        yield from textwrap.wrap(
            f"kept, since they were in {site} already: {names}", 98, subsequent_indent="  ", break_long_words=False
        )


def not_added(site: Path, texts: Mapping[Path, str], found: Choices) -> Iterator[str]:
    """Yield what must be added by hand to inventories that were there already, and the hosts that fit no profile.

    texts: those inventories.
    """
    for host in found.left_out:
        what = f"{host.machine.gpus} x {host.machine.gpu}" if host.machine and host.machine.gpu else "no NVIDIA GPU"
        names = " or ".join(group.profile.name for group in found.groups)
        yield f"left out: {host.host.address} ({what}), since profile {names} is not for it"
        fitting = host.machine.fitting if host.machine else ()
        if fitting:
            yield f"  next: rackwright init {site} --profile {fitting[0]} --host {host.host.typed}"
    for stem, groups in found.inventories.items():
        path = Path(f"inventory/{stem}.py")
        if path in texts:
            yield from _add_to(site, path, texts[path], groups)


def _add_to(site: Path, path: Path, text: str, groups: Sequence[SiteGroup]) -> Iterator[str]:
    """Yield the lines of hosts that an inventory lacks; without new hosts, how one gets such a line."""
    for group in groups:
        if new := [host for host in group.hosts if json.dumps(host.host.name) not in text]:
            yield f"add to {site / path}, in {group.name}:"
            yield from (f"  {host_entry(host)}," for host in new)
    if not any(group.hosts for group in groups):
        command = f"rackwright init {shlex.quote(str(site))} --profile {groups[0].profile.name} --host USER@ADDRESS"
        yield f"another host: {command}"
        yield f"  reads it, and prints its line for {site / path}"


def next_commands(site: Path, inventories: Sequence[str], of_lab: Profile | None = None) -> Iterator[str]:
    """Yield the commands to type next. of_lab: the profile that a lab's hosts are to serve."""
    if site != Path():
        yield f"  cd {shlex.quote(str(site))}"
    if of_lab and of_lab.hosts > 1:
        yield f"  rackwright lab up --hosts {of_lab.hosts}     # as many serve {of_lab.name} together"
    for stem in inventories:
        yield f"  rackwright check inventory/{stem}.py"
        yield f"  pyinfra inventory/{stem}.py deploy.py --dry     # shows what it would change"
        yield f"  pyinfra inventory/{stem}.py deploy.py"
        yield f'  rackwright chat inventory/{stem}.py -- "What is the capital of France?"'
