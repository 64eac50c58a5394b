"""Values that a command hands to its pyinfra process: one frozen value, as JSON in one environment variable.

It holds no secret, and it is this process's alone: whatever pyinfra starts in turn belongs to the same run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache

VARIABLE = "RACKWRIGHT_HANDOVER"


@dataclass(frozen=True)
class Handover:
    """The run, and the request behind it. By default what a plain `pyinfra` command has: nothing."""

    record: str = ""
    """The file of the run's record; without one nothing is noted."""
    inventory: str = ""
    """The Ansible inventory, where pyinfra was handed `rackwright/ansible_inventory.py` in its place."""
    in_waves: bool = False
    """Of `rackwright rollout` and `rollback`: waves and bakes, which a plain deploy has not."""
    parent: int = 0
    """The process that pyinfra must not outlive."""
    first: Sequence[str] = ()
    """Hosts that go first of their shape, because they were found in the middle of their switch."""
    last: Sequence[str] = ()
    releases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Releases to roll back, by endpoint by host; `*` stands for any of them."""
    mark: Mapping[str, str] | None = None
    """The reason, the operator and the time of hosts' drains, where that is asked for."""
    boots: Mapping[str, str] = field(default_factory=dict)
    """By host, the boot in which an earlier run found it, which has asked for its restart."""
    back_within: int = 0
    """Seconds within which a restarted host must be back."""
    purge: bool = False
    """A teardown removes models and images too."""
    purpose: str = ""
    """The purpose of a question about a host's caches: one of record.py."""
    level: int = 0
    """Level of the diagnosis that is asked for."""
    agreed: Sequence[str] = field(default_factory=list)
    """Removals that an operator has agreed to, from hosts that do not need them: a path or an image's name.

    `HOST:PATH` for an unfinished download, which is one host's alone.
    """
    steps: Mapping[str, Sequence[str]] | None = None
    """By host, the steps that deploy.py calls, when a teardown removes only what other steps have left."""

    @property
    def text(self) -> str:
        """As the variable has it."""
        return json.dumps(asdict(self))

    @property
    def environment(self) -> dict[str, str]:
        """The environment for the process that it is for."""
        return {**os.environ, VARIABLE: self.text}


def received() -> Handover:
    """Return what this process was handed."""
    return _parsed(os.environ.get(VARIABLE, ""))


@cache
def _parsed(text: str) -> Handover:
    return Handover(**json.loads(text)) if text else Handover()
