"""The live view of a run at this moment: a header, and one line a host as long as the terminal has room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rackwright.messages import NAMED, counted, printable
from rackwright.record.record import BACKWARD, CACHE_REPAIR, CACHE_VERIFY, DIAGNOSE
from rackwright.record.states import UNRECOVERED, RunState
from rackwright.record.view.blame import BAD, BUSY, GOOD, IDLE, RANK, WARN, clock, tone
from rackwright.record.view.downloads import fleet_downloads, stalled_for, to_go
from rackwright.record.view.estimate import remaining
from rackwright.record.view.timeline import HostTimeline, Timeline, wave_name

STYLES = {GOOD: "green", BAD: "bold red", WARN: "yellow", BUSY: "cyan", IDLE: "dim"}
AROUND = 3
"""Lines of the view that are neither a host's nor the head's."""
HEAD = 2
"""Lines that the title may take, and the facts below it."""
ROOMY = 12
"""Lines of a terminal whose head may take more than two of them."""
WIDEST = 10_000
WATCHED = "watching"
"""Words of a host's line while its wave is watched."""
WITHOUT_WAVES = {
    CACHE_VERIFY: "hashing what hosts keep",
    CACHE_REPAIR: "fetching what is broken",
    DIAGNOSE: "testing GPUs",
}
"""Title of a run that has no waves and no estimate, by its phase."""
BAR = 12
"""Columns of a download's bar."""


def draw(timeline: Timeline, now: float, height: int, width: int) -> RenderableType:
    """Return the view. now: seconds since 1970. height, width: lines and columns of the terminal."""
    room = width if height >= ROOMY else WIDEST
    head = [*_title(timeline, room), *_sums(timeline, now, room)]
    shown, others = chosen(timeline, max(1, height - AROUND - len(head) - 1))
    parts: list[RenderableType] = [*head, Text(""), _table(timeline, shown, now)]
    if others:
        counts = Counter(host.state for host in others)
        parts.append(
            line_of(f"and {len(others)} more: " + ", ".join(f"{n} {state}" for state, n in counts.items()), "dim")
        )
    # The terminal echoes ^C where the cursor is: at the end of a full line it would push the picture up.
    return Group(*parts, Text(""))


def chosen(timeline: Timeline, room: int) -> tuple[list[HostTimeline], list[HostTimeline]]:
    """Return the hosts that get a line, and the others; both in inventory order.

    Where not all have room, failed hosts go before those under way, and these before those that wait or are done.
    """
    hosts = list(timeline.hosts.values())
    if len(hosts) <= room:
        return hosts, []
    urgent = sorted(hosts, key=partial(_urgency, timeline))[: max(1, room - 1)]
    names = {host.name for host in urgent}
    return [host for host in hosts if host.name in names], [host for host in hosts if host.name not in names]


def _urgency(timeline: Timeline, host: HostTimeline) -> tuple[int, int]:
    active = 0 if host.state in (RunState.SWITCHING, RunState.STAGING) else 1
    kind = tone(timeline, host.state)
    return (RANK.index(kind) if kind in (BAD, WARN) else len(RANK)), active


def headline(timeline: Timeline) -> str:
    """Return where the run is: its phase, its wave, and how many hosts are through."""
    over = [host for host in timeline.hosts.values() if not host.is_open]
    through = f"{len(over)} of {len(timeline.hosts)} hosts are through"
    if timeline.phase == BACKWARD:
        return f"rolling back · {through}"
    if timeline.phase in WITHOUT_WAVES:
        return f"{WITHOUT_WAVES[timeline.phase]} · {through}"
    if timeline.wave is None:
        return f"{'staging' if not timeline.waves else 'all waves are through'} · {through}"
    last = len(timeline.waves) - 1
    where = (
        f"{wave_name(timeline.wave)} of {last}"
        if timeline.wave
        else "canaries" + (f", then {counted(last, 'wave')}" if last else "")
    )
    return f"{where} · {through}"


def facts(timeline: Timeline, now: float) -> Iterator[str]:
    """Yield what else the header says: bake, failures, time, estimate, how many are down."""
    bake = timeline.bakes[-1] if timeline.bakes else None
    if bake is not None and bake.lasts(now):
        yield f"watching {wave_name(bake.wave)} for {clock(round(bake.start + bake.seconds - now))} more"
    bad = sum(
        tone(timeline, host.state) == BAD or host.state is RunState.ROLLED_BACK for host in timeline.hosts.values()
    )
    if bad:
        yield f"{bad} failed"
    yield f"{clock(max(0.0, now - (timeline.began or now)))} elapsed"
    if downloads := fleet_downloads(timeline, now):
        yield str(downloads)
    if timeline.phase in WITHOUT_WAVES:
        return
    seconds = remaining(timeline, now)
    yield (
        "no estimate yet"
        if seconds is None
        else f"about {clock(round(seconds))} to go"
        if seconds >= 1
        else "nearly done"
    )
    if down := tightest(timeline):
        yield down


def tightest(timeline: Timeline) -> str:
    """Return the group or rack nearest to its limit, and how many are down there; empty when none is limited."""
    down = {host.name for host in timeline.hosts.values() if host.state in UNRECOVERED}
    counts = [(len(limit.hosts & down), limit.most, domain) for domain, limit in timeline.limits.items()]
    if not counts:
        return ""
    count, most, domain = min(counts, key=lambda one: (one[1] - one[0], one[2]))
    return f"down {count} of at most {most} ({printable(domain)})"


def _title(timeline: Timeline, width: int) -> list[Text]:
    """Return what runs and where it is: below each other where a line has no room for both."""
    what, where = line_of(f"{timeline.what or 'a run'}", "bold"), line_of(headline(timeline), "bold cyan")
    if what.cell_len + where.cell_len + 3 > width:
        return [what, where]
    return [line_of("   ", "").join([what, where])]


def _sums(timeline: Timeline, now: float, width: int) -> list[Text]:
    """Return the facts, in as many lines as they take."""
    lines = [""]
    for fact in facts(timeline, now):
        longer = f"{lines[-1]} · {fact}" if lines[-1] else fact
        if cell_len(longer) > width and lines[-1] and len(lines) < HEAD:
            lines.append(fact)
        else:
            lines[-1] = longer
    return [line_of(row, "dim") for row in lines]


def line_of(text: str, style: str) -> Text:
    """Return one line of a picture that no text of a host can break."""
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _table(timeline: Timeline, hosts: Sequence[HostTimeline], now: float) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    for name, least, ratio in (("host", 8, None), ("state", 10, None), ("bar", BAR, None), ("time", 6, None)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=least, ratio=ratio)
    table.add_column("said", no_wrap=True, overflow="ellipsis", ratio=1)
    for host in hosts:
        table.add_row(*_cells(timeline, host, now))
    return table


def _is_watched(timeline: Timeline, host: HostTimeline, now: float) -> bool:
    return host.state is RunState.SWITCHED and any(
        host.name in bake.hosts and bake.lasts(now) for bake in timeline.bakes[-1:]
    )


def _cells(timeline: Timeline, host: HostTimeline, now: float) -> tuple[RenderableType, ...]:
    style = STYLES[tone(timeline, host.state)]
    label = WATCHED if _is_watched(timeline, host, now) else host.phase if host.is_open and host.phase else host.state
    bar: RenderableType = "" if host.part is None else ProgressBar(1.0, host.part, width=BAR)
    seconds = now - host.since if host.since is not None else host.took
    time = "" if seconds is None else clock(round(max(0.0, seconds)))
    return (
        line_of(host.name, ""),
        line_of(label, style),
        bar,
        line_of(time, ""),
        line_of(_message(timeline, host, now), "dim"),
    )


def _message(timeline: Timeline, host: HostTimeline, now: float) -> str:
    """Return the last message of a host; of one that waits for its turn, also whose turn it is.

    A download says how long it has got no byte, or how long it takes.
    """
    if stalled := stalled_for(host, now):
        return f"stalled, no byte for {clock(round(stalled))}: {host.message}"
    if host.fetching:
        return f"{host.message}{to_go(host)}"
    turns = [name for name, other in timeline.hosts.items() if other.state is RunState.SWITCHING]
    if host.state is not RunState.WAITING or not turns:
        return host.message
    return f"{host.message}; now: {', '.join(turns[:NAMED])}{', ...' if len(turns) > NAMED else ''}"
