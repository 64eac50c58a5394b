"""The hosts of a run that take part in its switches, and the queue in which each has its turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rackwright.adapter.host import Host, logger
from rackwright.adapter.run_context import part_of
from rackwright.record.journal import current_record, note
from rackwright.rollout.run_hooks import FAILURE, SWITCH, WAVE, merged, run_hooks
from rackwright.rollout.run_hosts import BakeCheck, RunHost, baking, in_rollout, limits_of
from rackwright.rollout.turn_queue import Begin, Outcome, TurnQueue
from rackwright.settings.sections import Hooks


@dataclass
class SwitchQueue:
    """The turns of one run, and who takes part."""

    turns: TurnQueue = field(default_factory=TurnQueue)
    members: dict[str, RunHost] = field(default_factory=dict)
    """By host name, whether they must switch or not."""
    keepers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By host, what lets it keep what became of it: others may switch for minutes before the run ends."""
    bake_checks: dict[str, BakeCheck] = field(default_factory=dict)
    """The watch over a host that has switched, while its wave bakes."""

    hosts: dict[str, Host] = field(default_factory=dict)
    """Hosts that take part, by name, so that one can be looked at while another one has its turn."""

    def add(self, member: RunHost) -> None:
        """Let a host count for the limits."""
        self.members[member.name] = member
        self.turns.limits = limits_of(self.members.values(), in_rollout())

    def bake(self, host: str, check: BakeCheck) -> None:
        """Check a host after its wave, and let the site's hooks hear of waves and of ends of switches."""
        self.bake_checks[host] = check
        self.turns.bake = baking(self.turns.limits.bake, self.bake_checks)
        self.turns.on_wave, self.turns.on_end = self._ask_for_wave, self._report_end

    def _ask_for_wave(self, task: Begin) -> str:
        hooks = merged(member.settings.rollout.hooks for member in self.members.values())
        why = self._hook(hooks, WAVE, wave=task.wave, hosts=list(task.hosts))
        if why:
            note("held", wave=task.wave, text=why)
        return why

    def _report_end(self, name: str, outcome: Outcome) -> None:
        if not outcome.is_well and name in self.keepers:
            self.keepers[name]()
        hooks = self.members[name].settings.rollout.hooks
        if outcome.is_well:
            self._hook(hooks, SWITCH, host=name)
        for reason in outcome.reasons[:1]:
            self._hook(hooks, FAILURE, host=name, cause=reason.cause, check=reason.check)

    def _hook(self, hooks: Hooks, event: str, **more: Any) -> str:
        record, site = current_record(), next(iter(self.members.values())).settings.site
        return run_hooks(hooks, event, record, site, logger.info, **more) if record else ""


def switch_queue_of(host: Host) -> SwitchQueue:
    """Return the turns of the run that a host is in."""
    return part_of(host.state, SwitchQueue)
