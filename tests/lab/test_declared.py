"""deploy.py is the truth: what it does not call is neither planned, changed nor judged on a real host."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, Run, Site
from tests.refused import refusal

pytestmark = pytest.mark.lab
OWN = """
from pyinfra.operations import server
server.shell(name="Tune the kernel", commands=["touch /run/tuned"])
"""
NOTE = "Note the time {place} the turns"
NOTED = f"""
from pyinfra.operations import server
server.shell(name="{NOTE}", commands=["date +%s%N >/run/{{place}}-turns"])
"""
"""An operation of the site's own; one stands just before endpoint(), one just after."""


@pytest.fixture
def lived(site: Site) -> Host:
    """Return a host that serves what the checkout asks for."""
    host = next(host for host in site.lab.hosts if host.kind == "lived")
    run = site.deploy(limit=[host.name])
    assert run.status == 0, run.output
    return host


@pytest.fixture
def own_site(site: Site, tmp_path: Path) -> Callable[..., Run]:
    """Commands in a fresh site whose deploy.py is the shipped one without firewall(), and with steps of its own."""
    folder = tmp_path / "site"
    assert site.rackwright("init", str(folder), "--lab").status == 0
    lines = [row for row in (folder / "deploy.py").read_text().splitlines() if not row.startswith("firewall()")]
    at = next(number for number, row in enumerate(lines) if row.startswith("endpoint()"))
    lines[at : at + 1] = [NOTED.format(place="before"), lines[at], NOTED.format(place="after")]
    (folder / "deploy.py").write_text("\n".join(lines) + OWN)
    of_the_lab = (folder / "group_vars" / "lab.yml").read_text().splitlines()
    (folder / "group_vars" / "lab.yml").write_text("\n".join(row for row in of_the_lab if "allow_from" not in row))

    def run(program: str, *words: str) -> Run:
        return site.command(BIN / program, *words, cwd=folder)

    return run


def test_without_firewall_nothing_of_it_is_planned_changed_or_judged(lived: Host, own_site: Callable[..., Run]) -> None:
    before = rules_of(lived)
    plan = own_site("rackwright", "plan", "inventory/lab.py", "--limit", lived.name)
    assert plan.status == 2, "without firewall() the host's word, which a deploy before has set up, goes"
    assert "1 change\n" in plan.output
    assert texts.LEFT_BEHIND.format(kinds="file, rule, unit", step="firewall") in plan.output
    assert "not looked at: Tune the kernel" in plan.output
    lived.run("iptables -I INPUT -p tcp --dport 4242 -j ACCEPT")
    lived.run("rm -f /root/.docker/config.json")  # something to put back, so that the host must converge
    deploy = own_site("pyinfra", "inventory/lab.py", "deploy.py", "-y", "-v", "--limit", lived.name)
    assert deploy.status == 0, deploy.output
    assert "Firewall" not in "".join(deploy.table)
    assert deploy.table["Tune the kernel"] == (1, 0, 0)
    lived.run("test -e /run/tuned")
    drift = own_site("rackwright", "drift", "inventory/lab.py", "--limit", lived.name)
    assert drift.status == 0, drift.output
    lived.run("iptables -D INPUT -p tcp --dport 4242 -j ACCEPT")
    assert rules_of(lived) == before


def rules_of(host: Host) -> list[str]:
    """Our own rules, in their order."""
    return [rule for rule in host.run("iptables-save -t filter").stdout.splitlines() if "rackwright" in rule]


def test_a_wrong_order_is_refused_before_any_connection(own_site: Callable[..., Run], tmp_path: Path) -> None:
    deploy = tmp_path / "site" / "wrong.py"
    deploy.write_text("from tasks import docker, preflight\ndocker()\npreflight()\n")
    run = own_site("pyinfra", "inventory/lab.py", "wrong.py", "-y")
    assert run.status == 1
    refusal(run.output, "RW2004", "docker()", "move preflight() above docker()")
    assert "Connected" not in run.output


def test_what_a_step_left_goes_when_asked_and_the_endpoint_serves_on(lived: Host, own_site: Callable[..., Run]) -> None:
    served = lived.run("docker inspect --format '{{.Id}}' rackwright-llm").stdout
    words = ("teardown", "inventory/lab.py", "--limit", lived.name, "--left-behind")
    ahead = own_site("rackwright", *words, "--dry")
    assert f"remove our firewall rules ({texts.NO_LONGER_CALLED})" in ahead.output
    assert "rackwright:" in lived.run("iptables-save").stdout
    run = own_site("rackwright", *words, "-y")
    assert run.status == 0, run.output
    assert texts.LEFT_BEHIND_GONE in run.output
    assert "rackwright:" not in lived.run("iptables-save; ip6tables-save").stdout
    lived.run("! test -e /etc/systemd/system/rackwright-firewall.service && ! test -e /etc/rackwright/firewall")
    assert lived.run("docker inspect --format '{{.Id}}' rackwright-llm").stdout == served
    plan = own_site("rackwright", "plan", "inventory/lab.py", "--limit", lived.name)
    assert "left behind" not in plan.output


def test_a_step_runs_alone_by_its_name(lived: Host, site: Site) -> None:
    lived.run("iptables -F DOCKER-USER")
    words = ("inventory/lab.py", "tasks.firewall", "-y", "--limit", lived.name)
    run = site.command(BIN / "pyinfra", *words)
    assert run.status == 0, run.output
    assert [name.partition(" | ")[0] for name in run.changed] == ["Firewall"]
    assert site.command(BIN / "pyinfra", *words).changed == []


def test_own_operations_run_once_in_a_rollout_and_a_rollback_runs_none(
    lived: Host, own_site: Callable[..., Run]
) -> None:
    lived.run("rm -f /run/tuned")
    words = ("inventory/lab.py", "--limit", lived.name, "-y", "--plain")
    changed = ("--gate", "basic", "--data", 'engine={"stream_interval": 31}')
    run = own_site("rackwright", "rollout", *words, "--bake", "0", *changed)
    assert run.status == 0, run.output
    assert run.output.count("operation: Tune the kernel") == 1
    lived.run("test -e /run/tuned && rm /run/tuned")
    back = own_site("rackwright", "rollback", *words)
    assert back.status == 0, back.output
    (not_run,) = re.findall(f"{texts.OPERATIONS_NOT_RUN}(.+)", back.output)
    assert NOTE.format(place="before") + ", " in not_run
    assert ", Tune the kernel" in not_run
    lived.run("! test -e /run/tuned")
