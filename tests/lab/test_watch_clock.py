"""A wall clock that jumps, an hour ahead and an hour back: the watch finds no hang in it, and misses none.

Lab hosts share this machine's clock, so only the watch's own processes see the jump, by Debian's libfaketime. Nothing
else of a host is asked for the time by the watch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.profiles.groups import ONE
from tests.lab.test_profiles import Bench

pytestmark = [
    pytest.mark.lab,
    pytest.mark.hangs,
    in_proof("two hangs of two minutes each; tests/programs/test_watch_act.py has a clock that was put back"),
]
CLOCK = "/run/clock-of-the-watch"
UNITS = ("rackwright-watch.service", "rackwright-act@.service")
FAKED = """
apt-get -qq install -y libfaketime >/dev/null
library=$(dpkg -L libfaketime | grep 'libfaketime.so.1$')
for unit in UNITS; do
  mkdir -p "/run/systemd/system/$unit.d"
  cat >"/run/systemd/system/$unit.d/clock.conf" <<END
[Service]
Environment=LD_PRELOAD=$library FAKETIME_TIMESTAMP_FILE=CLOCK FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
END
done
systemctl daemon-reload
"""
LOOKED = "cat /run/rackwright/watch/llm 2>/dev/null | sed -n s/^looked=//p"
HOUR = 3600
PROMISED = 255
"""Seconds within which docs/how-to/watch.md promises a hang to be found."""
PROVEN = 120
"""Seconds more for the restart and its proof, on a crowded machine."""
AGE = 45
"""Seconds after its start at which the engine's core hangs: the one that was restarted proves itself before."""


@pytest.fixture
def jumping(site: Site, worker_lab: Lab) -> Iterator[Host]:
    """Return a host with a watch that restarts, whose clock is what `jump` says."""
    bench = Bench(site, worker_lab.host("lived2"))
    run = bench.deploy("rtx_pro_6000_vllm", **ONE, watch={"act": "restart"})
    assert run.status == 0, run.output
    host = bench.host
    jump(host, 0)
    host.run(FAKED.replace("UNITS", " ".join(UNITS)).replace("CLOCK", CLOCK), timeout=300)
    host.run("sed -i 's/^fresh=.*/fresh=0/' /etc/rackwright/watched/llm; rm -f /var/lib/rackwright/watch/acts-llm")
    yield host
    host.set_engine_faults()
    host.run(f"rm -rf {' '.join(f'/run/systemd/system/{unit}.d' for unit in UNITS)} {CLOCK}; systemctl daemon-reload")


def jump(host: Host, seconds: int) -> None:
    """Put the watch's clock so many seconds ahead of the right time."""
    host.run(f"cat >{CLOCK}.new && mv {CLOCK}.new {CLOCK}", stdin=f"{seconds:+d}\n")


def looks(host: Host, number: int) -> list[str]:
    """Return the states of so many looks that come from now on."""
    states = list[str]()
    for _ in range(number):
        before = host.run(LOOKED).stdout
        again = f"[ \"$({LOOKED})\" != '{before.strip()}' ]"
        host.run(f"until {again}; do sleep 1; done", timeout=120)
        states.append(host.run("sed -n 's/^state=//p' /run/rackwright/watch/llm").stdout.strip())
    return states


def acts(host: Host) -> list[str]:
    rows = host.run("cat /var/lib/rackwright/watch/acts-llm 2>/dev/null || true").stdout.splitlines()
    return [" ".join(row.split()[1:3]) for row in rows]


def test_a_clock_that_jumps_hides_no_hang_and_makes_none(jumping: Host) -> None:
    for number, ahead in enumerate((HOUR, -HOUR), 1):
        jump(jumping, ahead)
        assert set(looks(jumping, 3)) <= {"serving", "idle"}
        assert acts(jumping) == ["restart proven"] * (number - 1)
        jumping.set_engine_faults({"fault": "hang_after_seconds", "value": AGE})
        # In the middle of the finding it jumps back to the right time.
        looks(jumping, 2)
        jump(jumping, 0)
        deadline = time.monotonic() + PROMISED + PROVEN
        while acts(jumping) != ["restart proven"] * number:
            assert time.monotonic() < deadline, jumping.run("cat /run/rackwright/watch/llm").stdout
            time.sleep(2)
        jumping.set_engine_faults()
    assert jumping.run("ls /var/lib/rackwright/marks").stdout == ""
