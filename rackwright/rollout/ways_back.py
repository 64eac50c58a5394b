"""The release that each endpoint would roll back to, as its hosts keep them: read before anybody is asked for yes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rackwright.adapter.run.poll import Reply, poll
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.rollback import WayBack, parse_kept, read_script, target_of
from rackwright.inspect.host_names import hosts_text
from rackwright.loading.host import InventoryHost
from rackwright.messages import counted


def ways_back(entries: Sequence[InventoryHost], to: str) -> list[str]:
    """Ask the hosts, and return what a rollback would do there. to: a release, or LAST."""
    script = read_script()
    leading = [entry for entry in entries if not entry.settings.follows]
    return [*way_texts(poll(leading, lambda _: script), to)]


def way_texts(replies: Mapping[str, Reply], to: str) -> Iterator[str]:
    """Yield a line for hosts that roll back alike, and one for those of which nothing is known."""
    alike: dict[str, list[str]] = {}
    unknown = []
    for host, reply in replies.items():
        try:
            ways = parse_kept(list(reply.lines)) if not reply.trouble else None
        except (ValueError, KeyError, IndexError):
            ways = None
        if ways is None:
            unknown.append(host)
        for name, way in (ways or {}).items():
            alike.setdefault(_text(name, way, to), []).append(host)
    yield from (f"{text} on {hosts_text(hosts)}" for text, hosts in alike.items())
    if unknown:
        yield f"not known of {hosts_text(unknown)}: {counted(len(unknown), 'host')} could not be read"


def _text(name: str, way: WayBack, to: str) -> str:
    now = way.history[-1] if way.history else None
    target = target_of(SeenEndpoint(proven=now), way, to)
    if target is None:
        return f"endpoint {name} has no such release, and stays at {now or 'none'}"
    if target == now:
        return f"endpoint {name} stays at release {now}"
    return f"endpoint {name} from release {now} to {target}" if now else f"endpoint {name} to release {target}"
