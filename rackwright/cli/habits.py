"""Words that people bring from Ansible, Kamal and kubectl, and what is typed here instead. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches

DEPLOY = "pyinfra INVENTORY deploy.py"
ROLLOUT = "rackwright rollout INVENTORY"
VERBS = {
    **dict.fromkeys(
        ("deploy", "apply", "install", "run", "playbook"),
        f"a deploy is pyinfra's own command; next: {DEPLOY}, or in waves behind the full gate: {ROLLOUT}",
    ),
    **dict.fromkeys(
        ("setup", "bootstrap", "provision", "up"),
        f"a deploy takes a host from its bare OS to an endpoint; next: {DEPLOY} (a fresh site: rackwright init DIR)",
    ),
    **dict.fromkeys(("redeploy", "update", "upgrade"), f"next: {ROLLOUT}"),
    **dict.fromkeys(("diff", "preview"), "next: rackwright plan INVENTORY"),
    **dict.fromkeys(("validate", "lint", "config"), "next: rackwright check INVENTORY --show-origin"),
    **dict.fromkeys(("ps", "list", "ls", "get", "details", "app", "ping"), "next: rackwright status INVENTORY"),
    **dict.fromkeys(("remove", "destroy", "uninstall", "down", "delete"), "next: rackwright teardown INVENTORY --dry"),
    **dict.fromkeys(("ssh", "shell"), "next: rackwright exec INVENTORY -- CMD"),
    "restart": "next: rackwright reboot INVENTORY --limit HOST, or for one endpoint: "
    "rackwright exec INVENTORY -- systemctl restart rackwright-NAME",
    "start": "next: rackwright exec INVENTORY -- systemctl start rackwright-NAME",
    "stop": "next: rackwright exec INVENTORY -- systemctl stop rackwright-NAME",
    **dict.fromkeys(("undo", "revert"), "next: rackwright rollback INVENTORY"),
    **dict.fromkeys(("audit", "history"), "next: rackwright runs"),
    "app logs": "next: rackwright logs INVENTORY",
    "app exec": "next: rackwright exec INVENTORY -- CMD",
    "app boot": f"next: {DEPLOY}",
    "app stop": "next: rackwright exec INVENTORY -- systemctl stop rackwright-NAME",
    "app remove": "next: rackwright teardown INVENTORY --dry",
}
"""By verb, or by verb and the word behind it."""
OPTIONS = {
    "-l": "--limit HOST|GROUP",
    "-t": "pyinfra INVENTORY tasks.STEP runs one step alone; all of a host's: leave it out",
    "--tags": "pyinfra INVENTORY tasks.STEP runs one step alone; all of a host's: leave it out",
    "--skip-tags": "take the step out of deploy.py, for the hosts that shall not have it",
    "-C": "rackwright plan INVENTORY changes nothing, and shows what would change",
    "--check": "rackwright plan INVENTORY changes nothing, and shows what would change",
    "--dry-run": "rackwright plan INVENTORY changes nothing, and shows what would change",
    "-D": "rackwright plan INVENTORY shows every difference",
    "--diff": "rackwright plan INVENTORY shows every difference",
    "-i": "the inventory is the first word behind its verb: rackwright status INVENTORY",
    "--inventory": "the inventory is the first word behind its verb: rackwright status INVENTORY",
    "-e": "--data KEY=VALUE",
    "--extra-vars": "--data KEY=VALUE",
    "logs -f": "ssh HOST journalctl -fu rackwright-NAME",
    "logs --follow": "ssh HOST journalctl -fu rackwright-NAME",
    "-f": "a rollout's waves: --wave N",
    "--forks": "a rollout's waves: --wave N",
    "--hosts": "--limit HOST|GROUP",
    "--force": "rackwright lease break INVENTORY, when another run holds the host",
    "-b": "nothing: Rackwright works as root through sudo unless the login is root",
    "--become": "nothing: Rackwright works as root through sudo unless the login is root",
}
"""By option that a verb does not have, or by verb and option."""


def verb_hint(words: Sequence[str], verbs: Collection[str]) -> str:
    """Return what to type instead of an unknown verb; empty when the first word is a verb, or an option.

    words: what was typed behind `rackwright`.
    """
    first = words[0]
    if first.startswith("-"):
        return f"options stand behind a command, and instead of {first}: {OPTIONS[first]}" if first in OPTIONS else ""
    if first in verbs:
        return ""
    advice = VERBS.get(" ".join(words[:2])) or VERBS.get(first)
    if advice:
        return f"unknown command {first}{'; ' if advice.startswith('next: ') else ': '}{advice}"
    meant = get_close_matches(first.casefold(), verbs, n=1, cutoff=0.6)
    right = shlex.join(["rackwright", *meant, *words[1:]]) if meant else "rackwright --help"
    return f"unknown command {first}; next: {right}"


def option_hints(message: str, verb: str = "", options: Collection[str] = ()) -> list[str]:
    """For each option in argparse's complaint that is somebody's habit, what is typed here.

    verb: the command that was typed; options: those that it has.
    """
    _, _, words = message.partition("unrecognized arguments: ")
    names = dict.fromkeys(argument.partition("=")[0] for argument in words.split())
    found = ((name, OPTIONS.get(f"{verb} {name}", OPTIONS.get(name))) for name in names)
    return [f"instead of {name}: {_of_verb(text, verb, options)}" for name, text in found if text]


def _of_verb(text: str, verb: str, options: Collection[str]) -> str:
    """Return a pointer to an option, unless the command does not have that one either."""
    option = re.match(r"--[a-z-]+", text)
    if not verb or option is None or option[0] in options:
        return text
    return f"{verb} has no {option[0]}; what it takes: rackwright {verb} --help"
