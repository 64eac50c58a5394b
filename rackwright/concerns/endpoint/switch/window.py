"""A window in which nobody but us asks what serves: it is drained, left running, and let in again. Pure.

Nothing is switched: the release is the proven one before, meanwhile and afterwards. It is started anew only where the
word that closes the window does not come in time.
"""

from __future__ import annotations

from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.job import drain_script, in_turn, pointed_at_script
from rackwright.concerns.endpoint.switch.transaction import SwitchScripts, drain_hook_script, start_time, transaction
from rackwright.plan.change import Proved
from rackwright.settings.model import EndpointSettings

NOTHING_TO_COMMIT = ":"


def window(name: str, own: EndpointSettings, seen: SeenEndpoint) -> Proved:
    """The host's job that opens it, waits for the word, and closes it. seen: serves what it has proven."""
    assert seen.proven is not None
    assert seen.proven_binding is not None
    check, wait = pointed_at_script(name, seen.proven, own.load_timeout)
    hook = drain_hook_script(name, own, seen.proven)
    drain = drain_script(name, seen.spec.get("port", own.port), own.drain_timeout, hook)
    seconds = own.hook_timeout + own.drain_timeout + start_time(own)
    way = SwitchScripts(in_turn([check, drain]), wait, NOTHING_TO_COMMIT, seconds)
    tried = tried_of(name, seen.proven, seen.spec, seen.proven_binding)
    # What goes wrong meanwhile rolls back to the very same release: it is started anew, and asked.
    job = transaction(name, own, way, tried, tried, seen.proven)
    return Proved(endpoint=name, release=seen.proven, job=job, serving=True, restarts=False)
