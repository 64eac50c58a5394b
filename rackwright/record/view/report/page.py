"""A timeline as one HTML page: every text of the record is escaped, and the page's own rules allow no request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from rackwright import __version__
from rackwright.exit_codes import ExitCode
from rackwright.record.fault import judged
from rackwright.record.view import blame
from rackwright.record.view.critical_path import critical_path, own_part
from rackwright.record.view.report import downloads, figures
from rackwright.record.view.timeline import PHASES, Timeline, wave_name

VERDICTS: dict[int, str] = {ExitCode.DONE: blame.GOOD, ExitCode.ROLLED_BACK: blame.WARN, ExitCode.MIXED: blame.WARN}


def page(timeline: Timeline, run: str, logs: Mapping[str, str] | None = None) -> str:
    """Return the whole page.

    run: the run's name. logs: what the failed releases said last, by host.
    """
    return template_of(_file_text("page.html.j2")).render(
        frame(),
        run=run,
        logs=logs or {},
        timeline=timeline,
        phases=PHASES,
        hosts=blame.worst_first(timeline),
        culprits=blame.culprits(timeline),
        consequences=blame.consequences(timeline),
        failures={one.host: [of for of in timeline.failures if of.host == one.host] for one in timeline.failures},
        judgement=judged(timeline.failures),
        states=blame.states(timeline),
        verdict=_verdict(timeline),
        rows=figures.row_sums(timeline),
        changed=figures.changed(timeline),
        charts=downloads.charts(timeline),
        downloads=downloads.rows(timeline),
        chart_width=downloads.WIDTH,
        chart_height=downloads.HEIGHT,
        ticks=figures.ticks(timeline),
        wave_marks=figures.wave_marks(timeline),
        lanes=1 + max((mark.lane or 0 for mark in figures.wave_marks(timeline)), default=0),
        tone=lambda state: blame.tone(timeline, state),
        tone_of=lambda host: blame.tone_of(timeline, host),
        bars=lambda host: figures.bars(timeline, host),
        path=lambda host: critical_path(timeline, host),
        own_part=own_part,
        marks=figures.MARKS,
        clock=blame.clock,
        figure=figures.figure,
        wave_name=wave_name,
        at=_at,
        version=__version__,
    )


def frame() -> dict[str, str]:
    """Return what every page of this look has: its style, its script, and the rules that allow no request."""
    style, script = _file_text("page.css"), _file_text("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return {"style": Markup(style), "script": Markup(script), "policy": policy}


def _verdict(timeline: Timeline) -> str:
    """Return how good the run's end is; not well while a release serves that nothing has proven."""
    if timeline.status is None:
        return blame.BUSY
    unproven = any(blame.tone_of(timeline, host) == blame.WARN for host in timeline.hosts.values())
    return blame.WARN if timeline.status == ExitCode.DONE and unproven else VERDICTS.get(timeline.status, blame.BAD)


def _file_text(name: str) -> str:
    return (files(__package__) / name).read_text()


@cache
def template_of(text: str) -> Template:
    """Return a page's template, in which every value is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text)


def _at(seconds: float | None) -> str:
    """Return a time for people, in UTC."""
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
