"""The tools that are measured: how each is called on some hosts, and how its output says that nothing was changed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.meter import Command, Outcome
from rackwright.concerns.read_host import parse_reading, reading_script
from rackwright.loading.host import InventoryHost
from rackwright.messages import ReadingError

HERE, ROOT, BIN = Path(__file__).parent, Path(__file__).parents[2], Path(sys.executable).parent
OURS = "rackwright deploy"
"""What the others are compared with: `pyinfra INVENTORY deploy.py -y`."""
FLOOR = "pyinfra, our reading"
"""What pyinfra takes for one command on every host."""


class ChangedError(Exception):
    """A tool changed something on converged hosts, or failed there: its figures would mean nothing."""


@dataclass(frozen=True)
class Tool:
    """One of them; `unchanged` raises ChangedError."""

    name: str
    command: Command
    unchanged: Callable[[Outcome, Sequence[str]], None]


def tools(inventory: str, entries: Sequence[InventoryHost], all_hosts: bool, folder: Path) -> list[Tool]:
    """All tools for some hosts of an inventory; `folder` has state.json, and gets the others' inventories.

    all_hosts: the inventory has no other hosts, so that none need be left out.
    """
    plain = folder / f"hosts{len(entries)}"
    plain.with_suffix(".json").write_text(json.dumps(ansible_inventory(entries)))
    plain.with_suffix(".py").write_text(f"hosts = {[(one.name, _ssh(one)) for one in entries]!r}\n")
    limit = [] if all_hosts else [argument for one in entries for argument in ("--limit", one.name)]
    logins = [login(one) for one in entries]
    requests = json.dumps(logins)
    (folder / "commands.json").write_text(json.dumps({one["name"]: one["command"] for one in logins}))
    quiet = {"PYINFRA_PROGRESS": "off", "RACKWRIGHT_SITE": str(ROOT)}
    ansible = {"ANSIBLE_CONFIG": str(HERE / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    play = [f"{BIN}/ansible-playbook", "-i", f"{plain}.json", "-e", "@state.json", str(HERE / "playbook.yml")]
    operations = [f"{BIN}/pyinfra", f"{plain}.py", str(HERE / "own_operations.py"), "-y"]
    one = [f"{BIN}/pyinfra", f"{plain}.py", str(HERE / "one_reading.py"), "-y"]
    deploy = [f"{BIN}/pyinfra", inventory, "deploy.py", "-y", *limit]
    plan = [f"{BIN}/rackwright", "plan", inventory, *limit]
    found = [
        Tool("ansible", Command(play, folder, ansible), recap_unchanged),
        Tool("pyinfra", Command(operations, folder, {"PYINFRA_PROGRESS": "off"}), table_unchanged),
        Tool("paramiko", _bare("bare_paramiko.py", requests), readings_whole),
        Tool(OURS, Command(deploy, ROOT, quiet), table_unchanged),
        Tool("rackwright plan", Command(plan, ROOT, quiet), nothing_pending),
        Tool(FLOOR, Command(one, folder, {"PYINFRA_PROGRESS": "off"}), table_changed_alone),
    ]
    if importlib.util.find_spec("asyncssh"):
        found.insert(3, Tool("asyncssh", _bare("bare_asyncssh.py", requests), readings_whole))
    return found


def _bare(program: str, requests: str) -> Command:
    return Command([sys.executable, str(HERE / program)], ROOT, stdin=requests)


def login(entry: InventoryHost) -> dict[str, Any]:
    """Return what a bare client needs to run Rackwright's reading on a host, as the deploy would."""
    data = entry.data
    return {
        "name": entry.name,
        "address": data.get("ssh_hostname", entry.name),
        "port": data.get("ssh_port", 22),
        "user": data.get("ssh_user", "root"),
        "key": data["ssh_key"],
        "known_hosts": data["ssh_known_hosts_file"],
        "command": f"sudo -H -n sh -c {shlex.quote(reading_script(entry.settings))}",
    }


def _ssh(entry: InventoryHost) -> dict[str, Any]:
    return {key: value for key, value in entry.data.items() if key.startswith("ssh_")}


def ansible_inventory(entries: Sequence[InventoryHost]) -> dict[str, Any]:
    """Return the same hosts for Ansible, host keys as strict."""
    return {"all": {"hosts": {entry.name: ansible_data(entry.data) for entry in entries}}}


def ansible_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host's connection as Ansible's variables."""
    return {
        "ansible_host": data["ssh_hostname"],
        "ansible_port": data.get("ssh_port", 22),
        "ansible_user": data["ssh_user"],
        "ansible_ssh_private_key_file": data["ssh_key"],
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={data['ssh_known_hosts_file']} -o StrictHostKeyChecking=yes",
    }


# -- nothing was changed


def recap_unchanged(outcome: Outcome, hosts: Sequence[str]) -> None:
    """Ansible's recap has each host with no change and no failure."""
    rows = re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", outcome.output, re.M)
    bad = [name for name, *counts in rows if set(counts) != {"0"}]
    _demand(outcome.status == 0 and not bad and sorted(hosts) == sorted(row[0] for row in rows), outcome)


def table_unchanged(outcome: Outcome, hosts: Sequence[str]) -> None:
    """Check pyinfra's table of results: every operation on every host without change and error."""
    rows = re.findall(r"^ {4}(\S.*?\S)\s{2,}(\d+)\s+(\d+|-)\s+(\d+|-)\s+(\d+|-)\s*$", outcome.output, re.M)
    total = [row for row in rows if row[0] == "Grand total"]
    well = bool(total) and all(int(row[1]) == len(hosts) and row[2:4] == ("-", "-") for row in rows if row not in total)
    _demand(outcome.status == 0 and well and total[0][2:4] == ("-", "-"), outcome)


def table_changed_alone(outcome: Outcome, hosts: Sequence[str]) -> None:
    """Check pyinfra's table of results: its only operation has succeeded on every host."""
    rows = re.findall(r"^ {4}Read the host\s+(\d+)\s+(\d+|-)\s+(\d+|-)\s+(\d+|-)\s*$", outcome.output, re.M)
    _demand(outcome.status == 0 and rows == [(str(len(hosts)), str(len(hosts)), "-", "-")], outcome)


def readings_whole(outcome: Outcome, hosts: Sequence[str]) -> None:
    """Each host has read itself to the end: nothing is missing of what a deploy decides by."""
    try:
        readings = json.loads(outcome.output)
        for text in readings.values():
            parse_reading(text.split("\n"))
    except (ValueError, ReadingError) as error:
        raise ChangedError(f"{error}: {outcome.output[-2000:]}") from error
    _demand(outcome.status == 0 and sorted(readings) == sorted(hosts), outcome)


def nothing_pending(outcome: Outcome, hosts: Sequence[str]) -> None:  # noqa: ARG001 - as the others are called
    """Check the plan's exit status."""
    _demand(outcome.status == os.EX_OK, outcome)


def _demand(well: bool, outcome: Outcome) -> None:
    if not well:
        raise ChangedError(f"exit status {outcome.status}\n{outcome.output[-6000:]}")
