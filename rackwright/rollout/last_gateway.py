"""Refuse restarts that would leave clients no gateway: the one that answers, while another does not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rackwright.adapter.run.poll import poll
from rackwright.concerns.gateway.answer import gateway_answers
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.paths import GATEWAY_UNIT, UNITS

PATIENCE = 5
"""Seconds for a gateway's answer."""
ANSWERS = "answers"


def answering(gateways: Sequence[InventoryHost]) -> set[str]:
    """Return the gateways that answer on their own hosts; one that cannot be reached does not."""
    replies = poll(gateways, _script)
    return {name for name, reply in replies.items() if ANSWERS in reply.lines and not reply.trouble}


def _script(entry: InventoryHost) -> str:
    [step] = gateway_answers(entry.settings, seconds=PATIENCE)
    return f"(\n{step.script}\n) 2>/dev/null && [ -e {UNITS}/{GATEWAY_UNIT} ] && echo {ANSWERS}\nexit 0"


def refuse_last_gateway(
    inventory: str, gateways: Collection[str], answering: Collection[str], restarts: Collection[str]
) -> None:
    """Raise RackwrightError when a gateway that answers would restart while another one does not answer."""
    down = [name for name in gateways if name not in answering]
    last = [name for name in restarts if name in answering]
    if not (down and last):
        return
    others, those = ", ".join(down), ", ".join(last)
    raise RackwrightError(
        f"gateway {others} does not answer, so a restart of {those} would leave clients no gateway; nothing was done"
        f"\nnext: rackwright status {inventory}; when {others} answers, the same command; or take {others} out of the "
        "inventory's group gateway",
        code="RW3664",
    )
