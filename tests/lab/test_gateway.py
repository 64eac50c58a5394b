"""A gateway on a bare host, from nothing to nothing; and two gateways in front of two hosts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import NEW, OLD, install_line
from tests.lab.conftest import BIN, ROOT, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab
INVENTORY = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

away = ("away", {"ssh_hostname": "10.79.255.1"})
globals().update(build(__file__, {"b200": [away], "gateway": hosts()}))
"""
DRIVER = {"version": NEW, "console": "serial"}
SETTINGS = "gateway: {tls: false, port: 80, allow_from: [10.79.0.0/16]}\n"


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("w", hosts=1, bare=1) as lab:
        yield lab


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a site of a gateway, and of a host behind it that does not exist."""
    shutil.copy(ROOT / "deploy.py", tmp_path)
    shutil.copytree(ROOT / "tasks", tmp_path / "tasks")
    for name in ("inventory", "group_vars", "templates"):
        (tmp_path / name).mkdir()
    for name in ("all", "b200"):
        shutil.copy(ROOT / f"group_vars/{name}.yml", tmp_path / "group_vars")
    (tmp_path / "group_vars/gateway.yml").write_text(SETTINGS)
    (tmp_path / "inventory/lab.py").write_text(INVENTORY)
    return tmp_path


def answer(host: Host, path: str) -> tuple[str, str]:
    """Return the status of a gateway's answer, and the revision that it names."""
    words = "curl --silent --output /dev/null --dump-header - http://127.0.0.1"
    rows = host.run(f"{words}{path}", check=False).stdout.lower().splitlines()
    revisions = [row.partition(": ")[2] for row in rows if row.startswith("x-gateway-revision:")]
    return rows[0].split(" ")[1] if rows else "", "".join(revisions)


def test_a_gateway_comes_stays_and_goes(site: Site, folder: Path) -> None:
    host = site.lab.host("bare1")

    def deploy() -> Run:
        return site.command(BIN / "pyinfra", "inventory/lab.py", "deploy.py", "-y", "--limit", "gateway", cwd=folder)

    first = deploy()
    assert first.status == 0, first.output
    status, revision = answer(host, "/healthz")
    assert (status, bool(revision)) == ("503", True), "no model has a host"
    assert answer(host, "/v1/models")[0] == "401"
    assert host.run("stat -c %a /etc/rackwright/gateway/*.map | sort -u").stdout.split() == ["600"]
    assert deploy().changed == []

    template = (ROOT / "templates/haproxy.cfg.j2").read_text()
    (folder / "templates/haproxy.cfg.j2").write_text(template.replace("    retries 3\n", "    retrie 3\n"))
    broken = deploy()
    assert "RW3614" in broken.output
    assert broken.status != 0
    assert answer(host, "/healthz") == ("503", revision)

    gone = site.command(BIN / "rackwright", "teardown", "inventory/lab.py", "--limit", "gateway", "-y", cwd=folder)
    assert gone.status == 0, gone.output
    remaining = "ls -d /etc/rackwright /etc/systemd/system/rackwright-gateway.service /usr/sbin/haproxy 2>/dev/null"
    assert host.run(remaining, check=False).stdout == ""


@in_proof("tests/unit/test_driver_switch.py decides both")
def test_a_mere_gateway_has_no_driver_and_the_only_one_that_serves_too_is_not_restarted(
    site: Site, folder: Path
) -> None:
    host = site.lab.host("bare1")
    first = site.command(BIN / "pyinfra", "inventory/lab.py", "deploy.py", "-y", "--limit", "gateway", cwd=folder)
    assert first.status == 0, first.output
    driver = [text for key, value in DRIVER.items() for text in ("--data", f"driver.{key}={value}")]

    def switch(*words: str) -> Run:
        options = ("rollout", "inventory/lab.py", "--drivers", "-y", *driver)
        return site.command(BIN / "rackwright", *options, *words, cwd=folder)

    refusal(switch("--limit", "gateway").output, "RW4196", "nothing was done")
    for verb in ("firmware", "diagnose", "plan", "drift", "cache ls", "cache verify", "cache prune", "cache repair"):
        typed = (*verb.split(), "inventory/lab.py", "--limit", "gateway")
        looked = site.command(BIN / "rackwright", *typed, cwd=folder)
        assert "Traceback" not in looked.output, looked.output
        assert "Docker" not in looked.output, looked.output

    host.run(install_line(OLD))
    (folder / "inventory/lab.py").write_text(INVENTORY.replace('"b200": [away]', '"b200": hosts()'))
    run = switch()
    assert run.status == 1, run.output
    refusal(run.output, "RW3606", host.name, "nothing was done", "next: ")
    assert answer(host, "/healthz")[0] == "503", "it serves on"
    host.run("[ ! -e /var/lib/rackwright/driver ]")


def closing(folder: Path) -> Path:
    """Return a site like the lab's, whose direct ports are closed."""
    shutil.copy(ROOT / "deploy.py", folder)
    for name in ("tasks", "inventory", "group_vars", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    with (folder / "group_vars/lab_gateway.yml").open("a") as file:
        file.write("  close_direct: true\n")
    return folder


def reaches(client: Host, server: Host) -> bool:
    """Return True if an endpoint answers a host directly."""
    words = f"curl --silent --output /dev/null --max-time 3 http://{server.address}:8000/health"
    return client.run(words, check=False).returncode == 0


def refuse_direct_clients(site: Site, folder: Path, gateways: list[Host]) -> None:
    """Close the direct ports of two hosts behind gateways, and look from all sides."""
    words = (BIN / "pyinfra", "inventory/lab_gateway.py", "deploy.py", "-y")
    one, other = site.lab.host("bare1"), site.lab.host("bare2")
    assert reaches(other, one)
    closed = site.command(*words, cwd=folder)
    assert closed.status == 0, closed.output
    assert not reaches(other, one)
    assert [reaches(gateway, one) for gateway in gateways] == [True, True]
    assert site.command(*words, cwd=folder).changed == []


def open_with_the_last_gateway(site: Site, folder: Path) -> None:
    """Tear the gateways of closed ports down: direct clients get in again."""
    closed = site.command(BIN / "pyinfra", "inventory/lab_gateway.py", "deploy.py", "-y", cwd=folder)
    assert closed.status == 0, closed.output
    assert not reaches(site.lab.host("bare2"), site.lab.host("bare1"))
    words = ("teardown", "inventory/lab_gateway.py", "--limit", "gateway", "-y")
    gone = site.command(BIN / "rackwright", *words, cwd=folder)
    assert gone.status == 0, gone.output
    assert reaches(site.lab.host("bare2"), site.lab.host("bare1"))


@in_proof("four hosts from bare take ten minutes; tests/programs holds the configuration, the test above the host")
def test_two_gateways_in_front_of_two_hosts(tmp_path: Path) -> None:
    with own_lab("x", hosts=4, bare=4) as lab:
        site = Site(lab)
        words = (BIN / "pyinfra", "inventory/lab_gateway.py", "deploy.py", "-y")
        first = site.command(*words, timeout=1800)
        assert first.status == 0, first.output
        gateways = [lab.host(name) for name in ("bare3", "bare4")]
        assert [answer(host, "/healthz")[0] for host in gateways] == ["200", "200"]
        assert site.command(*words).changed == []
        refuse_direct_clients(site, closing(tmp_path), gateways)
        assert site.command(*words).status == 0
        assert reaches(lab.host("bare2"), lab.host("bare1")), "the setting is gone"
        reboot = site.rackwright("reboot", "inventory/lab_gateway.py", "--limit", "gateway", "-y", "--bake", "1")
        assert reboot.status == 0, reboot.output
        assert [answer(host, "/healthz")[0] for host in gateways] == ["200", "200"]
        open_with_the_last_gateway(site, tmp_path)
