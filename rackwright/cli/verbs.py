"""The verbs in their groups, with an example each, for `--help`, docs/reference/commands.md and completion."""

from __future__ import annotations

from typing import NamedTuple

VERB_GROUPS: dict[str, dict[str, str]] = {
    "Prepare a site": {
        "init": "rackwright init site --host ops@10.0.0.7",
        "profiles": "rackwright profiles list --gpu B200",
        "check": "rackwright check inventory/b200.py --show-origin",
        "render": "rackwright render inventory/b200.py --limit b200-01 --out files",
        "pin": "rackwright pin inventory/b200.py",
        "bundle": "rackwright bundle inventory/b200.py --out /media/disk --part-size 50G",
        "engine-data": "rackwright engine-data inventory/b200.py --limit b200-01",
        "advise": "rackwright advise --gpu B200 --context 8k --concurrency 32",
        "secrets": "rackwright secrets list inventory/b200.py",
        "explain": "rackwright explain RW0705",
        "questions": "rackwright questions shipped --print",
        "schema": "rackwright schema --out settings.schema.json",
    },
    "Change what hosts serve": {
        "plan": "rackwright plan inventory/b200.py",
        "rollout": "rackwright rollout inventory/b200.py --wave 10%",
        "rollback": "rackwright rollback inventory/b200.py --limit b200-01",
        "resume": "rackwright resume",
        "teardown": "rackwright teardown inventory/b200.py --limit b200-01 --dry",
    },
    "Maintain hosts": {
        "drain": 'rackwright drain inventory/b200.py --limit b200-01 --reason "GPU 3 is swapped"',
        "undrain": "rackwright undrain inventory/b200.py --limit b200-01",
        "reboot": "rackwright reboot inventory/b200.py --all",
        "rebuild": "rackwright rebuild inventory/b200.py --limit b200-01",
        "diagnose": "rackwright diagnose inventory/b200.py --level 2 --limit b200-01",
        "quarantine": 'rackwright quarantine inventory/b200.py --add --limit b200-01 --reason "RMA 4711"',
        "firewall": "rackwright firewall pause inventory/b200.py --limit b200-01 --for 1h",
        "watch": 'rackwright watch pause inventory/b200.py --limit b200-01 --for 1h --reason "new driver"',
        "lease": "rackwright lease show inventory/b200.py",
        "notify": "rackwright notify --test inventory/b200.py",
        "cache": "rackwright cache ls inventory/b200.py",
    },
    "Serve clients by a gateway": {
        "keys": "rackwright keys add inventory/b200.py alice",
        "usage": "rackwright usage inventory/b200.py --since 7d",
    },
    "Look at hosts and runs": {
        "status": "rackwright status inventory/b200.py",
        "top": "rackwright top inventory/b200.py",
        "drift": "rackwright drift inventory/b200.py",
        "firmware": "rackwright firmware inventory/b200.py",
        "targets": "rackwright targets inventory/b200.py --out /etc/prometheus/rackwright.json",
        "logs": "rackwright logs inventory/b200.py --limit b200-01 --lines 50",
        "exec": "rackwright exec inventory/b200.py -- nvidia-smi -L",
        "chat": 'rackwright chat inventory/b200.py -- "What is the capital of France?"',
        "evaluate": "rackwright evaluate inventory/b200.py --limit b200-01",
        "bench": "rackwright bench inventory/b200.py --limit b200-01",
        "runs": "rackwright runs last",
        "report": "rackwright report last",
    },
    "On this machine": {
        "completion": "rackwright completion bash",
    },
}
EXAMPLES = {verb: example for verbs in VERB_GROUPS.values() for verb, example in verbs.items()}
BELOW = {
    "firewall show": "rackwright firewall show inventory/b200.py --limit b200-01",
    "firewall pause": EXAMPLES["firewall"],
    "firewall open": "rackwright firewall open inventory/b200.py --limit b200-01 --for 1h",
    "firewall close": "rackwright firewall close inventory/b200.py --limit b200-01",
    "firewall resume": "rackwright firewall resume inventory/b200.py --limit b200-01",
    "watch show": "rackwright watch show inventory/b200.py",
    "watch pause": EXAMPLES["watch"],
    "watch resume": "rackwright watch resume inventory/b200.py --limit b200-01",
    "profiles list": EXAMPLES["profiles"],
    "profiles show": "rackwright profiles show b200_vllm",
    "profiles add": "rackwright profiles add b200_vllm --as our_b200",
    "keys add": EXAMPLES["keys"],
    "keys list": "rackwright keys list inventory/b200.py",
    "keys rotate": "rackwright keys rotate inventory/b200.py alice --grace 7d",
    "keys revoke": "rackwright keys revoke inventory/b200.py alice",
    "secrets list": EXAMPLES["secrets"],
    "secrets rotate": "rackwright secrets rotate inventory/b200.py --secret registry.key",
    "cache ls": EXAMPLES["cache"],
    "cache verify": "rackwright cache verify inventory/b200.py --limit b200-01",
    "cache repair": "rackwright cache repair inventory/b200.py --limit b200-01",
    "cache prune": "rackwright cache prune inventory/b200.py --dry",
    "lease show": EXAMPLES["lease"],
    "lease break": "rackwright lease break inventory/b200.py --limit b200-01",
}
"""Examples of verbs of verbs."""
VERBS = tuple(EXAMPLES)
"""Each is a module of rackwright.cli with `add_parser`, or of a package beside it."""
PACKAGES = {"bench": "rackwright-bench", "lab": "rackwright-lab"}
"""The package of a verb that is not Rackwright's. Each brings its module as an entry point."""


class Behind(NamedTuple):
    """The words behind `--`: the argument that gets them, its name in the usage, and its help."""

    dest: str
    metavar: str
    help: str


BEHIND_DASHES = {
    "exec": Behind("words", "CMD", "the command to run on each host; `sh -c '...'` for a pipe"),
    "chat": Behind("question", "QUESTION", "what to ask"),
}
