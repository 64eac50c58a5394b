"""Measures converged runs over hundreds of hosts: each host of a small lab answers at many ports, as a host of its own.

Run it with `python -m bench.many [--names 500] [--rounds 3] [--bastion HOST]` as root, on a lab whose hosts are
deployed and serve. The tools run in turn, and each is compared with the bare client of its own round, by medians.
A rule of this machine's leads the ports to each host's sshd, so that nothing is changed on the hosts. With a bastion,
a host of the lab that is not deployed, all go through that one, whose sshd has its own limits. In addition to
clock, CPU and memory it says how many files were open at the same time.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.meter import Meter, Spent
from bench.peers.tools import FLOOR, OURS, Tool, tools
from rackwright.adapter.run.session import chosen_hosts
from rackwright_lab import Lab
from rackwright_lab.hosts.host import Host
from rackwright_lab.inventory import settings, ssh_data

FIRST = 3000
"""The first of the ports that lead to a host's sshd."""
BARE = "paramiko"
FIGURES = ("wall", "cpu", "client")
MEASURED = (BARE, FLOOR, OURS, "rackwright plan")
INVENTORY = """\
import json
from pathlib import Path

from rackwright.inventory import build
from rackwright.settings.secret import Secret

data = json.loads(Path(__file__).with_suffix(".json").read_text())
own = {**data["own"], "registry": {"key": Secret(data["key"])}, "models": {"hub_token": Secret(data["token"])}}
hosts = [(name, {**ssh, **own}) for name, ssh in data["hosts"]]
globals().update(build(__file__, {"lab": hosts}, children={"b200": ["lab"]}))
"""
"""As a user has it: nothing of the lab's is loaded with it."""
RULE = "iptables -t nat {verb} OUTPUT -p tcp -d {network} --dport {first}:{last} -j DNAT --to-destination :22"
CONFIG = """\
Host {bastion}
  IdentityFile {key}
  ProxyJump none
Host {network}
  ProxyJump {user}@{bastion}
"""


def main() -> None:
    """Measure each tool after a run that does not count, in turn with the others, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, default=500, help="hosts of the inventory")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--bastion", help="a host of the lab through which all others are reached")
    options = parser.parse_args()
    # A time-out's signal, too, ends with the rule taken away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lab = Lab.open()
    bastion = next((host for host in lab.hosts if host.name == options.bastion), None)
    hosts = [host for host in lab.hosts if host is not bastion and _serves(host)]
    ports = range(FIRST, FIRST + -(-options.names // len(hosts)))
    with tempfile.TemporaryDirectory() as folder, led(bastion, hosts, ports), Meter(hosts) as meter:
        found = many_tools(hosts, bastion, ports, options.names, Path(folder))
        first_runs = {tool.name: seen_once(tool, names, meter) for tool, names in found}
        rounds = [{tool.name: spent(tool, names, meter) for tool, names in found} for _ in range(options.rounds)]
    print("\n".join(table(f"{options.names} names of {len(hosts)} hosts", first_runs, rounds)))


def seen_once(tool: Tool, names: Sequence[str], meter: Meter) -> tuple[int, int]:
    """Peak memory in bytes and open files of a run that does not count. Raises ChangedError."""
    outcome, memory, _ = meter.watch(tool.command)
    tool.unchanged(outcome, names)
    return memory, meter.open_files


def spent(tool: Tool, names: Sequence[str], meter: Meter) -> Spent:
    """Return what one run of a tool takes. Raises ChangedError."""
    outcome, found = meter.spend(tool.command)
    tool.unchanged(outcome, names)
    return found


def table(title: str, first_runs: Mapping[str, tuple[int, int]], rounds: Sequence[Mapping[str, Spent]]) -> list[str]:
    """Return a row a tool: medians of the rounds, and of its share of the bare client's clock and CPU in each round."""
    heads = (title, "clock, s", "CPU, s", "of it client", "memory, MiB", "open files", "x clock", "x CPU")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, (memory, files) in first_runs.items():
        spent_by_tool = [one[name] for one in rounds]
        figures = [
            f"{median(values):.1f}" for values in ([getattr(one, of) for one in spent_by_tool] for of in FIGURES)
        ]
        figures += [f"{memory / 2**20:.0f}", str(files), *(_shares(name, rounds, of) for of in ("wall", "cpu"))]
        rows.append(f"| {name} | {' | '.join(figures)} |")
    return rows


def _shares(name: str, rounds: Sequence[Mapping[str, Spent]], of: str) -> str:
    """Return the median of the rounds' ratios to the bare client, and the least and the most."""
    if any(BARE not in one for one in rounds):
        return ""
    found = sorted(getattr(one[name], of) / getattr(one[BARE], of) for one in rounds)
    return f"{median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


def many_tools(
    hosts: Sequence[Host], bastion: Host | None, ports: Sequence[int], names: int, folder: Path
) -> list[tuple[Tool, list[str]]]:
    """Return the tools, and the names that each goes to. A bare client goes through no bastion."""
    host_keys = folder / "known_hosts"
    keys = [f"[{host.address}]:{port} {host.public_host_key()}\n" for port in ports for host in hosts]
    host_keys.write_text("".join([*keys, *([f"{bastion.address} {bastion.public_host_key()}\n"] if bastion else [])]))
    more = {"ssh_known_hosts_file": str(host_keys)}
    if bastion:
        config = folder / "ssh_config"
        words = {"bastion": bastion.address, "key": bastion.key, "user": bastion.user}
        config.write_text(CONFIG.format(network=_network(hosts[0]).replace("0/24", "*"), **words))
        more["ssh_config_file"] = str(config)
    inventory = folder / "many.py"
    inventory.write_text(INVENTORY)
    data = inventory_data(settings(Lab.open()), hosts, ports, names, more)
    inventory.with_suffix(".json").write_text(json.dumps(data))
    entries = chosen_hosts(str(inventory), ())
    wanted = [name for name in MEASURED if not (bastion and name in (BARE, FLOOR))]
    found = tools(str(inventory), entries, True, folder)
    return [(tool, [entry.name for entry in entries]) for tool in found if tool.name in wanted]


def inventory_data(
    lab_settings: Mapping[str, Any], hosts: Sequence[Host], ports: Sequence[int], names: int, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inventory's data: names with SSH data, and the lab's own settings, their secrets as texts."""
    many = [(f"{host.name}-{port}", {**ssh_data(host), **more, "ssh_port": port}) for port in ports for host in hosts]
    secrets = {"key": lab_settings["registry"]["key"].unmask(), "token": lab_settings["models"]["hub_token"].unmask()}
    plain = {key: value for key, value in lab_settings.items() if key not in ("registry", "models")}
    return {"hosts": many[:names], "own": plain, **secrets}


@contextmanager
def led(bastion: Host | None, hosts: Sequence[Host], ports: Sequence[int]) -> Iterator[None]:
    """Lead the ports to sshd within the block, from this machine or from the bastion."""
    inside = ["nsenter", "--net", "--target", str(bastion.machine.leader())] if bastion else []

    def rule(verb: str) -> None:
        text = RULE.format(verb=verb, network=_network(hosts[0]), first=ports[0], last=ports[-1])
        subprocess.run([*inside, *text.split()], check=True)

    rule("-A")
    try:
        yield
    finally:
        rule("-D")


def _serves(host: Host) -> bool:
    return host.run("ls /var/lib/rackwright/endpoints/*/current", check=False).returncode == 0


def _network(host: Host) -> str:
    return f"{host.address.rpartition('.')[0]}.0/24"


if __name__ == "__main__":
    main()
