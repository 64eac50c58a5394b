"""Alarms of the hosts' own watches during a test: only a test that lets an engine hang may cause one."""

from __future__ import annotations

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab

EVENTS = r"""
for file in /var/lib/rackwright/events/[0-9]* /run/rackwright/events/[0-9]*; do
  name=${file##*/}
  [ -f "$file" ] && [ "${name%%.*}" -ge SINCE ] && grep -q '^state=firing' "$file" || continue
  grep -qE 'has died: it(s unit has failed| has ended with exit 0)' "$file" ||
    sed -nE "s/^text=(endpoint [^ ]+ (hangs|has died): .*)/\1/p" "$file"
done
true
"""
"""Prints what was found since a second of the epoch, but for engines whose unit has truly ended."""


def alarms_since(lab: Lab, epoch: int) -> dict[str, list[str]]:
    """Return by host which engines its watch took for hung or dead since then; units that ended did so."""
    found = {host.name: _alarms(host, epoch) for host in lab.hosts if not host.machine.is_off()}
    return {host: texts for host, texts in found.items() if texts}


def _alarms(host: Host, epoch: int) -> list[str]:
    return host.run(EVENTS.replace("SINCE", str(epoch)), check=False).stdout.splitlines()
