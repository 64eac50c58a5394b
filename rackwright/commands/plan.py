"""`rackwright plan INVENTORY`: what a deploy would change, host by host, without changing anything."""

from __future__ import annotations

import argparse
import json

from rackwright.commands.inventories import add_limit
from rackwright.fleet.inspect.grouping import exit_code
from rackwright.fleet.inspect.plan import HostPlan, plan_host
from rackwright.fleet.inspect.plan_text import plan_text, plan_values
from rackwright.fleet.inspect.read_hosts import Surveyed, survey
from rackwright.printable import paragraph


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("plan", help="what a deploy would change; 0 nothing, 2 something, 1 not known")
    add_limit(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, plan, print; the exit code says whether changes are pending."""
    plans = [plan_of(one) for one in survey(arguments.inventory, arguments.limit, only=arguments.only)]
    print(json.dumps(plan_values(plans), indent=1) if arguments.json else paragraph(plan_text(plans)))
    return exit_code(plans)


def plan_of(one: Surveyed) -> HostPlan:
    """The plan of one host, or why there is none."""
    if one.reading is None:
        return HostPlan(one.name, "unreadable" if one.reached else "unreachable", error=one.trouble)
    return plan_host(one.name, one.settings, one.reading, one.declared)
