"""One script on many hosts side by side, and what each of them printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.exit_codes import done_if
from rackwright.inspect.read_hosts import in_parallel
from rackwright.loading.host import InventoryHost
from rackwright.messages import ASKED_FOR, printable
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import HostSettings


@dataclass(frozen=True)
class HostOutput:
    """A script's output on one host, and whether it ended well."""

    ok: bool
    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()


def spread(
    inventory: str,
    limit: Sequence[str],
    script: Callable[[HostSettings], Shell],
    only: Sequence[str] = (),
    more: Callable[[Connected], Sequence[str]] | None = None,
) -> dict[str, HostOutput]:
    """Run each host's script; the hosts are in inventory order.

    more: lines to be shown after those that the script printed, once it has run.
    Raises RackwrightError for a wrong inventory, and when no host can be reached.
    """
    return spread_over(chosen_hosts(inventory, limit, only), script, more)


def spread_over(
    entries: Sequence[InventoryHost],
    script: Callable[[HostSettings], Shell],
    more: Callable[[Connected], Sequence[str]] | None = None,
) -> dict[str, HostOutput]:
    """Do the same on hosts that are chosen already. Raises RackwrightError when no host can be reached."""
    with connected(entries) as hosts:
        found = in_parallel(hosts, lambda one: _run(one, script(one.entry.settings), more))
    return {entry.name: found.get(entry.name, HostOutput(False, err=("cannot be reached",))) for entry in entries}


def _run(one: Connected, script: Shell, more: Callable[[Connected], Sequence[str]] | None) -> HostOutput:
    try:
        ok, output = remote(one.host, command_of(script))
    except StepFailedError as error:
        return HostOutput(False, err=(str(error),))
    return HostOutput(ok, (*output.stdout_lines, *(more(one) if more else ())), tuple(output.stderr_lines))


def show(outputs: dict[str, HostOutput], as_json: bool = False) -> int:
    """Print everything, each line behind its host's name; 0 when all ended well, else 1.

    A host's words stay as they are, but for what would act on the terminal. as_json: a row a host, for programs.
    """
    if as_json:
        print(json.dumps([{"host": host, **_values(one)} for host, one in outputs.items()], indent=1))
        return done_if(all(one.ok for one in outputs.values()))
    for host, one in outputs.items():
        for text in one.out:
            print(f"{host}: {_shown(text)}")
        for text in one.err:
            print(f"{host}: {_shown(text)}", file=sys.stderr)
    return done_if(all(one.ok for one in outputs.values()))


def _values(one: HostOutput) -> dict[str, Any]:
    return {"ok": one.ok, "out": list(map(_shown, one.out)), "err": list(map(_shown, one.err))}


def _shown(text: str) -> str:
    return printable(text, "\t", ASKED_FOR)
