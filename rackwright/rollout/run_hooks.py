"""The site's own commands around a run: each gets the run as JSON on its standard input.

They run on the control machine, in the site's folder, by argv and never through a shell. One that fails or takes too
long is shown, and changes nothing, unless it has a veto.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.messages import printable
from rackwright.record.journal import Event, append, read_record
from rackwright.record.record import record_of
from rackwright.settings.secret import without_secrets
from rackwright.settings.sections import Hook, Hooks
from rackwright.site_command import run_site_command

PLAN, WAVE, SWITCH, FINISH, FAILURE = "plan", "wave", "switch", "finish", "failure"
Say = Callable[[str], None]


def merged(all_hooks: Iterable[Hooks]) -> Hooks:
    """Return the hooks of a run from those of its hosts: equal ones once, in inventory order."""
    hooks = list(all_hooks)

    def distinct(event: str) -> tuple[Hook, ...]:
        return tuple(dict.fromkeys(hook for one in hooks for hook in getattr(one, event)))

    return Hooks(**{event: distinct(event) for event in Hooks.model_fields})


def run_hooks(hooks: Hooks, event: str, record: Path, root: Path, say: Say, **more: Any) -> str:
    """Run a site's commands for an event, one after the other.

    more: what the event is about: `host`, `wave`, `hosts`, `state`, `text`, `status`.
    Returns why a hook with a veto stops the run; empty when none does.
    """
    hooks_of: Sequence[Hook] = getattr(hooks, event)
    if not hooks_of:
        return ""
    payload = json.dumps(payload_of(event, record.stem, read_record(record), str(record), more))
    vetoes = [why for hook in hooks_of if (why := _run(hook, event, payload, record, root, say)) and hook.veto]
    return "; ".join(vetoes)


def payload_of(event: str, run: str, events: Iterable[Event], path: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a hook; docs/how-to/hooks.md describes it."""
    record = record_of(run, events)
    begin = record.begin
    facts = {key: begin.get(key) for key in ("time", "who", "what", "purpose", "inventory")}
    states = {host: record.states.get(host) for host in record.hosts}
    return {"version": 1, "event": event, "run": {"id": run, **facts, "record": path}, "states": states, **more}


def _run(hook: Hook, event: str, payload: str, record: Path, root: Path, say: Say) -> str:
    """Run one hook; returns what went wrong with it."""
    name = f"{event} hook {hook.command[0]}"
    ended = run_site_command(hook.command, payload, hook.timeout, root)
    status, output = ended.status, without_secrets(ended.output)
    for text in output.splitlines():
        say(printable(f"{name}: {text}", "\t"))
    wrong = "" if status == 0 else f"{name} {status if isinstance(status, str) else f'ended with {status}'}"
    if wrong:
        say(wrong)
    append(record, "hook", hook=event, command=hook.command[0], wrong=wrong or None)
    return f"{wrong}: {output.strip().splitlines()[-1]}" if wrong and output.strip() else wrong
