"""The peers of a canary: hosts of its shape in the same run, which wait for their turn and serve the release before."""

from __future__ import annotations

from rackwright.adapter.host import Host
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.peers.beside_peers import Peer
from rackwright.concerns.endpoint.peers.peer_check import PeerCheck, peer_release
from rackwright.operations.hostrun import state_of
from rackwright.operations.switch_queue import switch_queue_of
from rackwright.rollout.turn_queue import Turn
from rackwright.rollout.waves import in_order


def peers_of(canary: Host, check: PeerCheck) -> list[Peer]:
    """Return a canary's peers for one of its endpoints, in inventory order."""
    queue = switch_queue_of(canary)
    entries = queue.turns.entries
    shape = entries[canary.name].node.shape
    waiting = [entry.node for entry in entries.values() if entry.turn is Turn.WAITING and entry.node.shape == shape]
    found = (_peer(queue.hosts[node.name], check) for node in in_order(waiting) if node.name in queue.hosts)
    return [peer for peer in found if peer is not None]


def _peer(host: Host, check: PeerCheck) -> Peer | None:
    """Return a host as a peer, by the reading that queued it; None where it has no clients, or another release."""
    reading = state_of(host).reading
    if reading is None or reading[DRAINED].drained is not None or reading[DRAINED].marks:
        return None
    name = check.now.endpoint
    of = peer_release(settings_of(host).all_endpoints.get(name), reading[ENDPOINT].endpoints.get(name))
    return Peer(host, of) if of is not None and check.is_peer(of) else None
