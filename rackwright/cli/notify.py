"""`rackwright notify --test INVENTORY`: a test message from each host and from here, and the receiver's answers."""

from __future__ import annotations

import argparse
from pathlib import PurePath

from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.inventories import add_limit
from rackwright.concerns.watch.notify import SENDER
from rackwright.exit_codes import done_if
from rackwright.hostside import host_script
from rackwright.inspect.run_script import HostOutput, show, spread
from rackwright.messages import RackwrightError
from rackwright.notify.message import Message
from rackwright.notify.send import Delivery, send
from rackwright.notify.targets import targets
from rackwright.plan.change import Shell

HERE = "this machine"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("notify", help="send a test message from each host and from here")
    add_limit(parser)
    parser.add_argument("--test", action="store_true", required=True, help="send it, and print each answer")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Send the messages; 0 when every one was taken. Raises RackwrightError where the settings name no one."""
    settings = [entry.settings for entry in chosen_hosts(args.inventory, args.limit, args.only)]
    to = targets(settings)
    if not to:
        raise RackwrightError(
            "no host's settings have `notify:`, so the message has no receiver; nothing was sent; next: "
            "write notify.url or notify.command into group_vars, then: rackwright notify --test INVENTORY",
            code="RW1034",
        )
    message = Message("test", "test", PurePath(args.inventory).stem, "a test message of Rackwright")
    here = [_output(answer) for answer in send(message, to)]
    script = Shell(host_script("notify_test", sender=SENDER), timeout=90)
    on_hosts = spread(args.inventory, args.limit, lambda _: script, args.only)
    ended = [*(show({HERE: one}) for one in here), show(on_hosts)]
    return done_if(not any(ended))


def _output(answer: Delivery) -> HostOutput:
    text = (f"{answer.target}: {answer.text}",)
    return HostOutput(True, out=text) if answer.ok else HostOutput(False, err=text)
