"""Each test begins on hosts that are as it says: on, plugged in, without faults, and without an earlier test's run."""

from __future__ import annotations

import pytest

from rackwright.concerns.lease import LEASE
from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab

SECONDS = 400
"""A switch that lost its run waits for its commit deadline, and rolls back."""
REST = f"""
units() {{
  systemctl list-units --plain --no-legend --state=active,activating,deactivating "$@" | cut -d ' ' -f 1
}}
pkill -f '^sshd(-session)?: ops'
for unit in $(units 'rackwright-job-*'); do
  case $unit in
    *-switch-*|*-docker-*) ;;  # cut in its middle it would leave half of it: it ends on its own
    *) systemctl stop "$unit" ;;
  esac
done
rm -f {LEASE}
end=$(($(cut -d . -f 1 /proc/uptime) + {SECONDS}))
while left=$(units 'rackwright-job-*' 'rackwright-guard-*') && [ -n "$left" ]; do
  [ "$(cut -d . -f 1 /proc/uptime)" -lt "$end" ] || break
  sleep 0.2
done
printf '%s' "$left"
"""
"""End sessions, jobs and the lease of runs that are no more; print the units that do not end."""
_prepared = pytest.StashKey[bool]()


def settle(lab: Lab) -> None:
    """Bring all hosts of a lab to rest; costs a tenth of a second a host that is at rest. Fails the test otherwise."""
    faults.clear(lab.paths.web)
    remaining = {host.name: units for host in lab.hosts if (units := _left(host))}
    if remaining:
        pytest.fail(f"before this test, and still after {SECONDS} s, units of an earlier run are active: {remaining}")


def _left(host: Host) -> str:
    host.set_engine_faults()
    if host.machine.is_off():
        host.start()
    host.restore_network()
    return host.run(REST, timeout=SECONDS + 60).stdout


def needs_preparing(request: pytest.FixtureRequest) -> bool:
    """Whether a test must make its host what its fixture says: the first test of a file, and one after a failure."""
    stash = request.node.getparent(pytest.Module).stash
    prepared, stash[_prepared] = stash.get(_prepared, False), True
    return not prepared


def failed_before(request: pytest.FixtureRequest) -> bool:
    """Whether a test of this file has failed since its hosts were last prepared, which they are now."""
    stash = request.node.getparent(pytest.Module).stash
    prepared, stash[_prepared] = stash.get(_prepared, True), True
    return not prepared


def distrust(item: pytest.Item) -> None:
    """Have the next test prepare the hosts again: after a failure their state is unknown."""
    module = item.getparent(pytest.Module)
    if module is not None:
        module.stash[_prepared] = False
