"""A host's events reach a webhook: the deployed sender in its unit, and the test message of `rackwright notify`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.concerns.watch.notify import NOTIFY_FOLDERS, SENDER
from rackwright.concerns.watch.units import NOTIFY_STARTER
from rackwright_lab.hosts.host import Host
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.programs.webhook import Receiver, receiver

pytestmark = pytest.mark.lab


@pytest.fixture
def host(site: Site) -> Host:
    return next(host for host in site.lab.hosts if host.kind == "lived")


@pytest.fixture
def hook(host: Host) -> Iterator[Receiver]:
    """Yield a receiver at the lab's own address, which its hosts reach."""
    with receiver(f"{host.address.rpartition('.')[0]}.1") as found:
        yield found


def test_a_repair_on_a_host_reaches_the_webhook(site: Site, host: Host, hook: Receiver, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert site.rackwright("init", str(folder)).status == 0
    (folder / "inventory/lab.py").write_text((ROOT / "inventory/lab.py").read_text())
    (folder / "deploy.py").write_text("from tasks import watch\nwatch()\n")
    of_the_host = folder / "host_vars" / f"{host.name}.yml"
    of_the_host.parent.mkdir(exist_ok=True)
    of_the_host.write_text(f"notify:\n  url: {hook.url}\n")

    def run(program: str, *words: str) -> Run:
        return site.command(BIN / program, *words, "--limit", host.name, cwd=folder)

    assert run("pyinfra", "inventory/lab.py", "deploy.py", "-y").status == 0
    assert run("rackwright", "notify", "--test", "inventory/lab.py").status == 0
    assert [body["host"] for body in hook.bodies][1:] == [host.name]
    tell = (ROOT / "rackwright/hostside/tell.sh").read_text()
    host.run(f"{tell}\ntell dockerd-repair dockerd-repair 'its chains were gone'")
    # Its first minute is over, in which hosts with the same event agree on one message.
    host.run(f"sed -i 's/^time=.*/time={int(time.time()) - 100}/' {NOTIFY_FOLDERS[0]}/[0-9]* && sh {NOTIFY_STARTER}")
    host.run("systemctl start rackwright-notify.service")  # it waits for the one that the check has started
    assert hook.bodies[2]["key"] == "dockerd-repair"
    of_the_host.unlink()
    assert run("pyinfra", "inventory/lab.py", "deploy.py", "-y").status == 0
    host.run(f"test ! -e {SENDER} && rm -rf {' '.join(NOTIFY_FOLDERS)}")
