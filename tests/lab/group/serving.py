"""The hosts of one endpoint as a test sees them: deployed together, asked, and back after a fault."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import proven, running
from tests.lab.running import Running

INVENTORY = ROOT / "tests" / "lab" / "group" / "inventory.py"
ASK = (
    "curl -sS --max-time 20 -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/chat/completions",
    {"messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}], "max_tokens": 512},
)
DEPLOYS = "test_two_hosts_serve_one_model"
"""The test of a file, if any, that deploys them itself."""
SECONDS = 120
"""How long a group may take to serve again: its stand-in loads in seconds, and a restart waits for two."""


def _run(site: Site, settings: dict[str, Any], *words: str | object) -> Run:
    return site.command("env", f"GROUP_SETTINGS={json.dumps(settings)}", *map(str, words))


def deploy(site: Site, *options: str, script: str = "deploy.py", **settings: Any) -> Run:
    return _run(site, settings, BIN / "pyinfra", INVENTORY, script, *(options or ("-y",)))


def rackwright(site: Site, verb: str, *options: str, **settings: Any) -> Run:
    return _run(site, settings, BIN / "rackwright", verb, INVENTORY, *options)


def command(site: Site, verb: str, *words: str, settings: dict[str, Any] | None = None) -> Run:
    """Run a command on single hosts of the group."""
    inventory = ("-i", INVENTORY) if verb == "resume" else (INVENTORY,)
    return _run(site, settings or {}, BIN / "rackwright", verb, *inventory, *words, "-y")


def resume(site: Site, **settings: Any) -> Run:
    """Resume the run that has a record here; its inventory's settings are those of the run, by the environment."""
    return _run(site, settings, BIN / "rackwright", "resume", "-y", "--plain")


def begin_run(site: Site, verb: str, *options: str, **settings: Any) -> Running:
    """Begin a command that a test cuts, or cuts hosts off in."""
    words = ("env", f"GROUP_SETTINGS={json.dumps(settings)}", str(BIN / "rackwright"), verb, str(INVENTORY))
    return Running(site, *words, *options)


def begin_rollout(site: Site, **settings: Any) -> Running:
    """Begin a rollout of these settings, plain."""
    return begin_run(site, "rollout", "-y", "--plain", "--bake", "1", **settings)


@contextmanager
def cut_off(one: Host, other: Host) -> Iterator[None]:
    """Let nothing pass between two hosts, in either direction."""
    rules = (f"INPUT -s {other.address} -j DROP", f"OUTPUT -d {other.address} -j DROP")
    for rule in rules:
        one.run(f"iptables -I {rule}")
    try:
        yield
    finally:
        for rule in rules:
            one.run(f"iptables -D {rule}")


def wait_for(true: Callable[[], bool], seconds: int) -> bool:
    """Whether something becomes true in so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(1)
    return True


def boot(host: Host) -> str:
    """Another one after each restart."""
    return host.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()


def running_releases(site: Site) -> list[str]:
    """Return the release in each member's container."""
    return running(site.lab.hosts)


def ask(host: Host) -> str:
    command, body = ASK
    answer = host.run(command, stdin=json.dumps({**body, "model": "gpt-oss-120b"}), check=False).stdout
    try:
        return str(json.loads(answer)["choices"][0]["message"]["content"])
    except (ValueError, KeyError):
        return answer


def started(host: Host) -> str:
    return host.run("docker inspect --format '{{.State.StartedAt}}' rackwright-llm", check=False).stdout.strip()


def state(host: Host) -> str:
    return host.run("systemctl is-active rackwright-llm", check=False).stdout.strip()


def words_of(host: Host) -> str:
    """Return the command line of the host's server."""
    return host.run("docker inspect --format '{{.Args}}' rackwright-llm").stdout


def kill(host: Host) -> None:
    """End the host's server as a fault would."""
    host.run("kill -9 $(docker inspect --format '{{.State.Pid}}' rackwright-llm)")


def wait_until_all_serve(site: Site, before: list[str]) -> None:
    """Until every member runs another container than before, and the head answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        now = [started(host) for host in site.lab.hosts]
        if all(now) and not set(now) & set(before) and all(state(host) == "active" for host in site.lab.hosts):
            assert ask(site.lab.hosts[0]) == "42"
            return
        time.sleep(1)
    pytest.fail(f"they do not serve again after {SECONDS} s: {[state(host) for host in site.lab.hosts]}")


def wait_until_one_release_serves(site: Site) -> None:
    """Until every member runs the proven release, whether it was restarted or not, and the head answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        active = all(state(host) == "active" for host in site.lab.hosts)
        if active and len(set(proven(site.lab.hosts))) == 1 and ask(site.lab.hosts[0]) == "42":
            return
        time.sleep(1)
    pytest.fail(f"they do not serve after {SECONDS} s: {[state(host) for host in site.lab.hosts]}")


def prepare(site: Site, request: pytest.FixtureRequest, **settings: Any) -> None:
    """Have the group serve as the settings ask, where a file begins and after a failure that may leave any release."""
    if needs_preparing(request) and request.node.name != DEPLOYS:
        run = deploy(site, **settings)
        assert run.status == 0, run.output
