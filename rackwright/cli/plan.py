"""`rackwright plan INVENTORY`: what a deploy would change, host by host, without changing anything."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rackwright.cli.inventories import add_limit, add_shared
from rackwright.inspect.grouping import exit_code
from rackwright.inspect.handed_on import HandedWay, settings_of_fleet, with_ways
from rackwright.inspect.headline import NO_WAVES, Waves, headline, with_restart_notes
from rackwright.inspect.left_hosts import left_hosts
from rackwright.inspect.plan import HostPlan, plan_host
from rackwright.inspect.plan_text import as_wide, next_step, plan_text, plan_values
from rackwright.inspect.read_hosts import Surveyed, survey
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError, paragraph
from rackwright.record.durations import switch_time
from rackwright.record.journal import records
from rackwright.rollout.waves import amount
from rackwright.sources.profile_lock import named_profiles, unlocked_lines, waiting_lines
from rackwright.tables import shown_width


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("plan", help="what a deploy would change; 0 nothing, 2 something, 1 not known")
    add_limit(parser)
    # `rackwright rollout` reads its own plan by this, before it asks.
    parser.add_argument("--in-waves", action="store_true", help=argparse.SUPPRESS)
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, plan, print; the exit code says whether changes are pending."""
    hosts, ways = _with_ways(arguments, survey(arguments.inventory, arguments.limit, only=arguments.only))
    plans = with_restart_notes([plan_of(one) for one in hosts])
    typical = switch_time(records(site_root(Path(arguments.inventory).expanduser())))
    first = headline(plans, typical, _at_once(hosts), _drain(hosts), _waves(hosts) if arguments.in_waves else NO_WAVES)
    left_behind = [] if arguments.limit or arguments.only else _left_behind(arguments.inventory, hosts)
    profiles = _profiles(arguments.inventory, hosts)
    if arguments.json:
        more = {"handed_on": [way.values for way in ways], "left_behind": left_behind, "profiles": profiles}
        print(json.dumps({**plan_values(plans, first), **more}, indent=1))
    else:
        lines = [*(way.text for way in ways), *profiles, *left_behind, *next_step(plans, first)]
        text = "\n".join([plan_text(plans, first), *lines])
        print(as_wide(paragraph(text), shown_width()))
    return exit_code(plans)


def _with_ways(
    arguments: argparse.Namespace, hosts: Sequence[Surveyed]
) -> tuple[Sequence[Surveyed], Sequence[HandedWay]]:
    """Return the hosts with what they take from each other, and the way of each model and image that is handed on."""
    if not any(one.settings.downloads.hand_on for one in hosts):
        return hosts, ()

    def read(names: Sequence[str]) -> Sequence[Surveyed]:
        # One that cannot be reached has said so: the plan is that of the hosts that it is for.
        with suppress(RackwrightError):
            return survey(arguments.inventory, names) if names else ()
        return ()

    return with_ways(hosts, settings_of_fleet(arguments.inventory, arguments.limit, arguments.only), read)


def _profiles(inventory: str, hosts: Sequence[Surveyed]) -> list[str]:
    """Return a line for each profile that the next deploy keeps, or that waits for `pin`."""
    named = named_profiles(site_root(Path(inventory).expanduser()), [one.settings for one in hosts])
    return [*unlocked_lines(named), *waiting_lines(named, f"rackwright pin {inventory}")]


def _left_behind(inventory: str, hosts: Sequence[Surveyed]) -> list[str]:
    path = Path(inventory).expanduser()
    return left_hosts(site_root(path), path, {one.name: one.address for one in hosts}, datetime.now(UTC))


def _at_once(hosts: Sequence[Surveyed]) -> int:
    return min((amount(one.settings.rollout.max_unavailable, len(hosts)) for one in hosts), default=1)


def _waves(hosts: Sequence[Surveyed]) -> Waves:
    sizes = (amount(one.settings.rollout.wave, len(hosts)) for one in hosts)
    return Waves(min(sizes, default=1), max((one.settings.rollout.bake for one in hosts), default=0))


def _drain(hosts: Sequence[Surveyed]) -> int:
    """Return the longest wait for open requests behind a gateway."""
    behind = (one.settings.all_endpoints.values() for one in hosts if one.settings.gateways)
    return max((endpoint.drain_timeout for endpoints in behind for endpoint in endpoints), default=0)


def plan_of(one: Surveyed) -> HostPlan:
    """Return the plan of one host, or why it is missing."""
    if one.reading is None:
        return HostPlan(one.name, "unreadable" if one.reached else "unreachable", error=one.trouble)
    return plan_host(one.name, one.settings, one.reading, one.declared)
