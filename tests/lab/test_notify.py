"""A host's events reach a webhook: the deployed sender in its unit, and the test message of `rackwright notify`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.concerns.marks import MARKS, QUARANTINE
from rackwright.concerns.watch.notify import NOTIFY_FOLDERS, SENDER
from rackwright.concerns.watch.units import MENDED, NOTIFY_STARTER
from rackwright.paths import ACTS, STATE
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof
from tests.lab.scene import interval
from tests.lab.test_api_key import PORT_FAULT, squatter
from tests.programs.webhook import Receiver, receiver
from tests.refused import refusal

pytestmark = pytest.mark.lab


@pytest.fixture
def host(site: Site) -> Host:
    return next(host for host in site.lab.hosts if host.kind == "lived")


@pytest.fixture
def hook(host: Host) -> Iterator[Receiver]:
    """Yield a receiver at the lab's own address, which its hosts reach."""
    with receiver(f"{host.address.rpartition('.')[0]}.1") as found:
        yield found


@dataclass(frozen=True)
class Notified:
    """A site of its own for one lab host, whose settings name a webhook."""

    site: Site
    host: Host
    hook: Receiver
    folder: Path

    def settings(self, text: str = "") -> None:
        """Write the host's settings: the webhook, and these."""
        file = self.folder / "host_vars" / f"{self.host.name}.yml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"notify:\n  url: {self.hook.url}\n{text}")

    def run(self, program: str, *words: str) -> Run:
        return self.site.command(BIN / program, *words, "--limit", self.host.name, cwd=self.folder)

    def deploy(self, steps: str = "watch") -> None:
        """Run some steps of the deploy."""
        lines = "".join(f"from tasks import {step}\n{step}()\n" for step in steps.split())
        (self.folder / "steps.py").write_text(lines)
        run = self.run("pyinfra", "inventory/lab.py", "steps.py", "-y")
        assert run.status == 0, run.output

    def sent(self) -> list[tuple[str, str]]:
        """Key and state of each message."""
        return [(body["key"], body["state"]) for body in self.hook.bodies]

    def wait_for(self, key: str, state: str = "firing", seconds: int = 150) -> None:
        end = time.monotonic() + seconds
        while (key, state) not in self.sent():
            assert time.monotonic() < end, (self.sent(), self.host.journal("--lines", "60"))
            time.sleep(1)


@pytest.fixture
def notified(site: Site, host: Host, hook: Receiver, tmp_path: Path) -> Iterator[Notified]:
    """Yield the host; afterwards it notifies no one."""
    folder = tmp_path / "site"
    assert site.rackwright("init", str(folder), "--lab").status == 0
    (folder / "host_vars").mkdir()
    found = Notified(site, host, hook, folder)
    found.settings()
    # Events of earlier tests were for no one, and would be sent now.
    host.run(f"rm -rf {' '.join(NOTIFY_FOLDERS)}")
    yield found
    (folder / "host_vars" / f"{host.name}.yml").unlink()
    found.deploy()
    host.run(f"test ! -e {SENDER} && rm -rf {' '.join(NOTIFY_FOLDERS)}")


def test_a_repair_on_a_host_reaches_the_webhook(notified: Notified) -> None:
    host, hook = notified.host, notified.hook
    notified.deploy()
    assert notified.run("rackwright", "notify", "--test", "inventory/lab.py").status == 0
    assert [body["host"] for body in hook.bodies][1:] == [host.name]
    tell = (ROOT / "rackwright/hostside/tell.sh").read_text()
    host.run(f"{tell}\ntell dockerd-repair dockerd-repair 'its chains were gone'")
    # Its first minute is over, in which hosts with the same event agree on one message.
    host.run(f"sed -i 's/^time=.*/time={int(time.time()) - 100}/' {NOTIFY_FOLDERS[0]}/[0-9]* && sh {NOTIFY_STARTER}")
    host.run("systemctl start rackwright-notify.service")  # it waits for the one that the check has started
    assert hook.bodies[2]["key"] == "dockerd-repair"


@in_proof("two rollouts; tests/programs/test_notify_run.py has the messages, tests/unit/test_quarantine.py the list")
def test_a_stopped_rollout_a_hosts_fault_and_its_release_are_messages(notified: Notified) -> None:
    host = notified.host
    assert notified.run("pyinfra", "inventory/lab.py", "deploy.py", "-y").status == 0
    rollout = ("rollout", "inventory/lab.py", "-y", "--bake", "1", "--data", f"engine={json.dumps(interval(33))}")
    with squatter(host):
        run = notified.run("rackwright", *rollout)
    assert run.status == 4, run.output
    (body,) = [one for one in notified.hook.bodies if one["kind"] == "manual-action"]
    assert body["hosts"] == host.name
    assert texts.QUARANTINED.format(host=host.name, why=PORT_FAULT) in body["text"]
    mark = f"cat {MARKS}/{QUARANTINE}"
    assert f"reason={PORT_FAULT}" in host.run(mark).stdout
    assert "quarantined" in notified.run("rackwright", "status", "inventory/lab.py").output
    refusal(notified.run("rackwright", *rollout).output, "RW0807", host.name)
    assert notified.run("rackwright", "quarantine", "inventory/lab.py", "--release").status == 0
    assert ("quarantine-lab", "resolved") in notified.sent()
    assert host.run(mark, check=False).returncode != 0
    run = notified.run("rackwright", *rollout)
    assert run.status == 0, run.output


@in_proof("waits for looks; tests/programs/test_notify_host.py and test_watch_act.py have both scripts")
def test_a_full_disk_delays_no_message_and_a_restart_as_long_as_it_lasts(notified: Notified) -> None:
    host = notified.host
    notified.settings("watch:\n  act: restart\n")
    assert notified.run("pyinfra", "inventory/lab.py", "deploy.py", "-y").status == 0
    host.fill_disk(STATE, 1)
    try:
        host.run(f"dd if=/dev/zero of={STATE}/filler bs=1k", check=False)
        host.set_engine_faults({"fault": "die_at_end_of_load"})
        host.run("docker kill rackwright-llm")
        notified.wait_for("dead-llm")
        notified.wait_for("would-restart-llm")
        assert host.run(f"ls {MARKS}").stdout == ""
        host.set_engine_faults()
        host.run(f"rm {STATE}/filler")
        notified.wait_for("restart-llm", "firing")
        notified.wait_for("dead-llm", "resolved")
    finally:
        host.set_engine_faults()
        host.free_disk(STATE)
    assert len({key for key, _ in notified.sent()}) == 3


@in_proof("waits for looks; tests/unit/test_kept_port.py and tests/programs/test_watch_act.py have both scripts")
def test_dockers_chains_are_put_back_before_the_watch_restarts_what_could_not_start(notified: Notified) -> None:
    host = notified.host
    notified.settings("watch:\n  act: restart\n")
    assert notified.run("pyinfra", "inventory/lab.py", "deploy.py", "-y").status == 0
    acts = f"cat {ACTS}/acts-llm 2>/dev/null | grep -c ' restart '"
    before = host.run(acts, check=False).stdout
    host.run(f"rm -f {MENDED}; iptables -t nat -F; iptables -t nat -X; docker kill rackwright-llm")
    notified.wait_for("dockerd-repair")
    host.run(
        "for i in $(seq 60); do [ $(systemctl is-active rackwright-llm) = active ] && exit 0; sleep 1; done; exit 1"
    )
    assert host.run(acts, check=False).stdout == before
    assert "-A DOCKER " in host.run("iptables-save -t nat").stdout
