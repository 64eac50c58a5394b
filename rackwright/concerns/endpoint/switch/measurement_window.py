"""A window in which only Rackwright asks what serves: it is drained, left running, and let in again. Pure.

Nothing is switched: the release is the proven one all the time. It is restarted only where the
message that closes the window does not come in time.
"""

from __future__ import annotations

from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.switch.transaction import Part, endpoints_switch, switch_job
from rackwright.settings.host_settings import EndpointSettings


def window(name: str, endpoint: EndpointSettings, reading: SeenEndpoint) -> Proved:
    """Return the host's job that opens it, waits for the message, and closes it. reading: serves what it has proven."""
    assert reading.proven is not None
    assert reading.proven_binding is not None
    tried = tried_of(name, reading.proven, reading.spec, reading.proven_binding)
    # What goes wrong rolls back to the very same release: it is started again, and asked.
    part = Part(name, endpoint, tried, tried, port=reading.spec.get("port"), proven=reading.proven)
    job = switch_job(endpoints_switch([part], keep=0, kind="window"))
    return Proved(endpoint=name, release=reading.proven, job=job, serving=True, restarts=False)
