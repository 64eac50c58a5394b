"""Writes the reference pages that are made from the code: docs/reference/commands.md and preflight.md.

Run it with `python scripts/reference.py`; tests/unit/test_docs.py compares the pages with what it would write.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path

from rackwright.cli.main import Parser, parser
from rackwright.cli.verbs import BEHIND_DASHES, VERB_GROUPS
from rackwright.concerns.preflight.docker import DOCKER
from rackwright.concerns.preflight.gpu import GPU
from rackwright.concerns.preflight.machine import MACHINE
from rackwright.concerns.preflight.members import MEMBERS
from rackwright.concerns.preflight.network import NETWORK
from rackwright.concerns.preflight.rights import RIGHTS
from rackwright.concerns.preflight.row import Check, figures, gib
from rackwright.concerns.preflight.software import SOFTWARE
from rackwright.concerns.preflight.storage import STORAGE

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MADE = "Made from the code by `python scripts/reference.py`; do not edit it.\n"


def pages() -> dict[str, str]:
    """Text of each page by its file name."""
    return {"commands.md": commands_page(), "preflight.md": preflight_page()}


COMMANDS_HEAD = f"""\
# Commands

{MADE}
A deploy is pyinfra's own command: `pyinfra INVENTORY deploy.py` (see [running a deploy](../how-to/deploy.md)).
`rackwright` is for everything around it. Exit codes: [exit-codes.md](exit-codes.md).

## One form for all verbs

```
rackwright VERB [INVENTORY] [--limit HOST|GROUP]... [OPTIONS]
```

- What stands behind a verb is the **inventory**. It may be left out where the site has one: `$RACKWRIGHT_INVENTORY`,
  the one in `ansible.cfg`, or the only one. Verbs that read no inventory take what they read instead: a run's name
  (`runs`, `report`, `resume`), a code or key (`explain`), a folder (`init`), a shell (`completion`).
- **Hosts** are chosen by `--limit`, by name, pattern or group, as often as needed; `--only failed@last` takes those of
  an earlier run. Without either, a verb takes all hosts. `drain`, `undrain`, `reboot`, `rebuild`, `teardown`,
  `quarantine --add`, `quarantine --release`, `firewall pause`, `firewall resume`, `watch pause` and `watch resume`
  refuse that: there, all hosts are `--all`.
- A command or a question of your own stands behind `--`: `rackwright exec -- uptime`.
- These mean the same wherever they are: `--yes` does not ask, `--json` prints for programs, `--reason TEXT` is kept
  with what was done, `--timeout SECONDS` is the longest time on a host, `--data KEY=VALUE` is stronger than any file.
- `--columns A,B` chooses the columns of a table, and their order: `rackwright status --columns host,health,release`.
  `status` and `runs` print a table in any case; `drift`, `quarantine`, `profiles list` and `lease show` print sentences
  without it, and with it a row a finding, host or profile. The lines after the table of `status` are printed in any
  case. A verb's `--help` lists its columns. `--json` has all of them.

Forms of earlier versions still work in this one, and print the new form: `lock` (now `pin`), `unlock` (now
`lease break`), hosts behind `drain`, `undrain`, `rebuild` and `firewall pause` with the inventory in `-i`, `--host`,
`--why`, `quarantine --add HOST`, `chat INVENTORY QUESTION`, `bench compare RUN RUN`, `reboot --back-within` and
`bench --time-limit` (in minutes; now both `--timeout`, in seconds). `reboot` and `teardown` of a whole
inventory want `--all`.
"""
OVERVIEW = """\
## Without a site

`python -m rackwright_engines check --engine vllm --version 0.33.0 FILE` judges an engine's options alone: no site, no
inventory, and nothing of Rackwright but `packages/engines/README.md`, where its exit codes
and `--batch` are.

## Completion

| shell | once |
|---|---|
| bash | `rackwright completion bash > ~/.local/share/bash-completion/completions/rackwright` |
| zsh | `rackwright completion zsh > FOLDER/_rackwright`, with FOLDER in `fpath` before `compinit` |
| fish | `rackwright completion fish > ~/.config/fish/completions/rackwright.fish` |

## All verbs

| verb | what it does | example |
|---|---|---|
"""


def commands_page() -> str:
    """Return the page: the form, all verbs in one table, and every verb with its arguments."""
    top = parser()
    details = [text for verb in _verbs(top) for text in _verb(*verb)]
    return "\n".join([COMMANDS_HEAD, OVERVIEW + "\n".join(_overview(top)) + "\n", *details]) + "\n"


def _overview(top: Parser) -> Iterator[str]:
    assert top.verbs is not None
    helps = {choice.dest: choice.help or "" for choice in top.verbs._choices_actions}
    for title, examples in VERB_GROUPS.items():
        yield f"| **{title}** | | |"
        yield from (_row(verb, helps[verb], example) for verb, example in examples.items())


def _row(verb: str, text: str, example: str) -> str:
    shows = dict.fromkeys(("firewall", "lease", "watch"), "show")
    first = {**shows, "keys": "add", "secrets": "list", "profiles": "list", "cache": "ls"}
    below = f"-{first[verb]}" if verb in first else ""
    return f"| [{verb}](#rackwright-{verb}{below}) | {text} | `{example}` |"


Verb = tuple[argparse.ArgumentParser, str]

USUAL = {
    "DIR": "folder to write into",
    "HOST": "a host's name",
    "INVENTORY": "inventory/*.py, or an Ansible inventory",
    "QUESTION": "what to ask",
    "CMD": "command to run there; none: log in",
}
"""Meaning of arguments whose parser leaves it to their name."""


def _verbs(above: argparse.ArgumentParser) -> Iterator[Verb]:
    """Yield the verbs that do something, those of verbs included, each with its line of help."""
    for action in above._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                inner = list(_verbs(below))
                yield from inner or [(below, helps.get(name, ""))]


def _verb(verb: argparse.ArgumentParser, text: str) -> Iterator[str]:
    yield f"## {verb.prog}\n"
    yield f"{text[:1].upper()}{text[1:]}.\n" if text else ""
    shown = [action for action in verb._actions if action.dest != "help" and action.help != argparse.SUPPRESS]
    behind = BEHIND_DASHES.get(verb.prog.rpartition(" ")[2])
    yield f"```\n{' '.join([verb.prog, *map(_usage, shown), *([f'-- {behind.metavar}'] if behind else [])])}\n```\n"
    if shown:
        yield "| argument | meaning |\n|---|---|"
        yield from (f"| {_names(action)} | {_meaning(action)} |" for action in shown)
        if behind:
            yield f"| `-- {behind.metavar}` | {behind.help} |"
        yield ""


def _usage(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        value = f"{value} ..." if action.nargs == argparse.REMAINDER else value
        return f"[{value}]" if action.nargs in (argparse.REMAINDER, argparse.OPTIONAL) else value
    usage = f"{action.option_strings[-1]} {value}".strip()
    return usage if action.required else f"[{usage}]{'...' if _repeats(action) else ''}"


def _repeats(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    return str(action.metavar or (action.dest.upper().replace("_", "-")))


def _names(action: argparse.Action) -> str:
    names = action.option_strings or [_value(action)]
    value = f" {_value(action)}".rstrip() if action.option_strings else ""
    return f"`{', '.join(names)}{value}`".replace("|", "\\|")


def _meaning(action: argparse.Action) -> str:
    text = (action.help or USUAL.get(_value(action), "")).replace("|", "\\|")
    default = action.default if isinstance(action.default, int | str) and not isinstance(action.default, bool) else None
    stated = default in (None, "") or default == argparse.SUPPRESS or "(default" in text
    return text if stated else f"{text} (default: {default})".strip()


PREFLIGHT_HEAD = f"""\
# Preflight checks

{MADE}
Preflight asks one question: is this host able to run its endpoints? It reads, and writes nothing but the report of a
[diagnosis](../how-to/diagnose.md) of the GPUs, where DCGM is installed and nothing serves. A row has a name, a verdict,
what was seen, and, when it is not ok, what to do. A run prints one line a host, its warnings, and what stops it; with
`-v` the whole table.

| verdict | meaning |
|---|---|
| `ok` | as it should be, or nothing to judge |
| `warn` | needs attention; the deploy continues |
| `stop` | the host ends here, before anything is written to it; other hosts continue |

A check prints one row for each thing that it judges (file system, endpoint, server), and none when there is nothing to
judge. `N/A` of nvidia-smi alone is never a failure: GB10 says so of memory, ECC and MIG. Servers are asked only
while something must still be fetched from them.
"""
GROUPS = {
    "The machine": MACHINE,
    "Docker": DOCKER,
    "Software": SOFTWARE,
    "GPUs": GPU,
    "File systems": STORAGE,
    "Network": NETWORK,
    "Hosts of one endpoint": MEMBERS,
    "Containers": RIGHTS,
}


def preflight_page() -> str:
    """Every check by group, and the figures that they compare with."""
    parts = [PREFLIGHT_HEAD]
    for title, checks in GROUPS.items():
        rows = "\n".join(f"| {check.code} | {check.name} | `{check.severity}` | {_judges(check)} |" for check in checks)
        parts.append(f"## {title}\n\n| code | check | when it fails | what it judges |\n|---|---|---|---|\n{rows}\n")
    return "\n".join([*parts, _figures()])


def _judges(check: Check) -> str:
    return " ".join((inspect.getdoc(check.judge) or "").split())


def _figures() -> str:
    preflight = figures()
    rows = [
        ("oldest container toolkit", preflight["toolkit"]["version_minimum"]),
        ("locked memory of containers", preflight["containers"]["memlock"]),
        ("open files of containers, at least", preflight["containers"]["open_files"]),
        ("free on every file system beyond what must come", gib(preflight["disk"]["free_minimum"])),
        ("free inodes on every file system", preflight["disk"]["inodes_minimum"]),
        *((f"about, unpacked: `{entry['repository']}`", gib(entry["about"])) for entry in preflight["images"]),
        *((f"about, as fetched: `{entry['repository']}`", gib(entry["about"])) for entry in preflight["models"]),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        "## Figures\n\nWhat a machine must be comes from [`hardware`](settings.md#hardware) in its group's file. The\n"
        f"rest is in `rackwright/data/preflight_figures.yaml`:\n\n| what | figure |\n|---|---|\n{table}\n"
    )


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
        print(REFERENCE / name)


if __name__ == "__main__":
    main()
