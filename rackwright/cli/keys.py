"""`rackwright keys add|list|rotate|revoke`: who may ask through the gateways.

A key is made here, printed once, and kept nowhere: the site's file and the gateways have its SHA-256. A change is in
the file first, then on each gateway, in its files and in its running process.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rackwright.cli.gateway_hosts import Gateways, gateways_of
from rackwright.cli.inventories import add_columns, add_inventory
from rackwright.cli.lengths import seconds_of
from rackwright.concerns.gateway.key_change import KeyAnswer, Rows, change_script, parse_answer, put_rows, revoked_rows
from rackwright.exit_codes import ExitCode, done_if
from rackwright.inspect.run_script import HostOutput
from rackwright.loading.gateway_keys import change_keys, load_keys
from rackwright.masks import keep_hidden
from rackwright.messages import RackwrightError, coded, printable
from rackwright.settings.gateway_keys import CLIENT, MOST, GatewayKey, GatewayKeys, new_key, sha256_of
from rackwright.tables import Column, drawn, only, shown_width
from rackwright_engines.nearest import nearest

LONGEST_GRACE = 30 * 24 * 3600
COLUMNS = (
    Column("client"),
    Column("created", 3),
    Column("expires"),
    Column("models", 1, 20),
    Column("per minute", 4),
    Column("in flight", 5),
    Column("sha256", 2),
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("keys", help="keys of the gateway's clients: add, list, rotate, revoke")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    added = verbs.add_parser("add", help="make a key for a client; it is printed once, alone, and stored nowhere")
    shown = verbs.add_parser("list", help="show the clients and their limits, from the site's file")
    rotated = verbs.add_parser("rotate", help="make a client's next key; the one before counts for a while")
    revoked = verbs.add_parser("revoke", help="end all keys of a client, at once, on every gateway")
    for each, handler in ((added, _add), (shown, _list), (rotated, _rotate), (revoked, _revoke)):
        add_inventory(each)
        each.set_defaults(handler=handler)
    for each in (added, rotated, revoked):
        each.add_argument("name", metavar="NAME", type=_client, help="the client's name, as logs and usage show it")
    _add_limits(added)
    add_columns(shown, COLUMNS)
    rotated.add_argument(
        "--grace", default="24h", metavar="24h", help="how long the key before still counts: 0, 90s, 30m, 24h, 7d"
    )


def _add_limits(added: argparse.ArgumentParser) -> None:
    added.add_argument("--model", action="append", metavar="MODEL", help="a model it may ask, repeatable; else all")
    what = "of the client; 0 for none; else the gateway's own limit"
    added.add_argument("--requests-per-minute", type=_limit, metavar="N", help=f"limit {what}")
    added.add_argument("--requests-in-flight", type=_limit, metavar="N", help=f"limit at the same time {what}")


def _client(text: str) -> str:
    if not re.match(CLIENT, text):
        raise argparse.ArgumentTypeError(f"{text!r} must be small letters, digits and ._@-, at most 63")
    return text


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 to {MOST}")
    return int(text)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _add(args: argparse.Namespace) -> int:
    """Make a client's first key; the exit status is 1 where a gateway did not take it."""
    gateways, key, now = gateways_of(args.inventory), _secret(), _now()
    _refuse_unknown_models(args.model or (), gateways.models)
    new = GatewayKey(
        name=args.name,
        sha256=sha256_of(key),
        created=now,
        models=tuple(args.model) if args.model else None,
        requests_per_minute=args.requests_per_minute,
        requests_in_flight=args.requests_in_flight,
    )

    def with_new(keys: GatewayKeys) -> GatewayKeys:
        if any(one.counts(now) for one in keys.of(args.name)):
            raise RackwrightError(
                f"{args.name} has a key already; nothing was done; next: rackwright keys rotate INVENTORY "
                f"{args.name}, or another name",
                code="RW1036",
            )
        return _joined(keys, now, new)

    before, _ = change_keys(gateways.key_file, with_new)
    print(key, flush=True)
    rows = [*revoked_rows((), before.expired(now)), *put_rows(gateways.settings, new)]
    return _send(gateways, args, rows)


def _rotate(args: argparse.Namespace) -> int:
    """Make a client's next key; the exit status is 1 where a gateway did not take it."""
    gateways, key, now = gateways_of(args.inventory), _secret(), _now()
    grace = 0 if args.grace == "0" else seconds_of(args.grace, "--grace", LONGEST_GRACE)
    end = now + timedelta(seconds=grace)

    def rotated(keys: GatewayKeys) -> GatewayKeys:
        if not keys.of(args.name):
            raise _no_key(args.name, keys)
        ending = tuple(_ending(one, end) if one.name == args.name else one for one in keys.keys)
        new = keys.of(args.name)[-1].model_copy(update={"sha256": sha256_of(key), "created": now, "expires": None})
        return _joined(GatewayKeys(keys=ending), now, new)

    before, after = change_keys(gateways.key_file, rotated)
    print(key, flush=True)
    gone = {one.sha256 for one in before.keys} - {one.sha256 for one in after.keys}
    rows = [*revoked_rows((), sorted(gone)), *put_rows(gateways.settings, *after.of(args.name))]
    return _send(gateways, args, rows)


def _revoke(args: argparse.Namespace) -> int:
    """End a client's keys; the exit status is 1 where a gateway did not take it."""
    gateways = gateways_of(args.inventory)
    path = gateways.key_file
    before, _ = change_keys(path, lambda keys: keys.without([one.sha256 for one in keys.of(args.name)]))
    gone = [one.sha256 for one in before.of(args.name)]
    answers = _answers(gateways, revoked_rows((args.name,), gone))
    if not gone and all(isinstance(one, KeyAnswer) and one.had == 0 for one in answers.values()):
        raise _no_key(args.name, before)
    return _say(answers, args)


def _secret() -> str:
    key = new_key()
    keep_hidden(key)
    return key


def _joined(keys: GatewayKeys, now: datetime, new: GatewayKey) -> GatewayKeys:
    """Return the keys with a new one, without those that have expired."""
    return GatewayKeys(keys=(*keys.without(keys.expired(now)).keys, new))


def _ending(key: GatewayKey, end: datetime) -> GatewayKey:
    """Return a key that ends then, or earlier if it did anyway."""
    return key.model_copy(update={"expires": min(end, key.expires or end)})


def _refuse_unknown_models(wanted: Sequence[str], models: Sequence[str]) -> None:
    for name in wanted:
        if name not in models:
            raise RackwrightError(
                f"--model {name}: no host of the inventory serves it{nearest(name, models)}; nothing was done; "
                f"models: {', '.join(models) or 'none'}",
                code="RW1086",
            )


def _no_key(name: str, keys: GatewayKeys) -> RackwrightError:
    names = [*keys.clients]
    return RackwrightError(
        f"{name} has no key{nearest(name, names)}; nothing was done; next: rackwright keys list INVENTORY",
        code="RW1046",
    )


Answers = dict[str, KeyAnswer | str]
"""By gateway, what became of a change there, or why it did not take it."""


def _send(gateways: Gateways, args: argparse.Namespace, rows: Rows) -> int:
    return _say(_answers(gateways, rows), args)


def _answers(gateways: Gateways, rows: Rows) -> Answers:
    outputs = gateways.run(change_script(rows))
    return {name: _answer(output) for name, output in outputs.items()}


def _answer(output: HostOutput) -> KeyAnswer | str:
    answer = parse_answer(output.out) if output.ok else None
    return answer or printable(next(iter(output.err), "it gave no answer"))


def _say(answers: Answers, args: argparse.Namespace) -> int:
    """Say where the change has arrived; standard output has the key alone. Returns the exit status."""
    for name, answer in answers.items():
        text = f"{name} {answer.sentence}" if isinstance(answer, KeyAnswer) else _not_taken(name, answer, args)
        print(f"rackwright: {printable(text)}", file=sys.stderr)
    return done_if(all(isinstance(answer, KeyAnswer) for answer in answers.values()))


def _not_taken(host: str, why: str, args: argparse.Namespace) -> str:
    """Return what a gateway that did not take a change does now, and the next command."""
    deploy = f"pyinfra INVENTORY deploy.py --limit {host}"
    if args.verb == "revoke":
        now = f"where it runs, the key still counts; next: rackwright keys revoke INVENTORY {args.name}, or {deploy}"
    else:
        now = f"it refuses the new key until it has it; next: {deploy}"
    return coded("RW1066", f"{host} did not take it: {why}; the site's file has it; {now}")


def _list(args: argparse.Namespace) -> int:
    """Print the clients."""
    keys, now = load_keys(gateways_of(args.inventory).key_file), _now()
    if args.json:
        print(json.dumps([key.model_dump(mode="json", exclude_none=True) for key in keys.keys], indent=1))
    elif keys.keys:
        print(drawn(*only(COLUMNS, [_cells(key, now) for key in keys.keys], args.columns), shown_width()))
    else:
        print("no client has a key")
    return ExitCode.DONE


def _cells(key: GatewayKey, now: datetime) -> list[str]:
    expires = f"{key.expires:%Y-%m-%d %H:%M}" if key.expires else "-"
    limits = ["-" if limit is None else str(limit) for limit in (key.requests_per_minute, key.requests_in_flight)]
    end = expires if key.counts(now) else f"{expires}, over"
    return [key.name, f"{key.created:%Y-%m-%d %H:%M}", end, ",".join(key.models or ("-",)), *limits, key.sha256[:12]]
