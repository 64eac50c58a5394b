"""Danger zone: has a host serve a variant for as long as it is measured, and never longer.

The host's own transaction switches to it, drains by the site's hooks, and waits for a word. The word is `hold` while we
measure and `over` when we are done: it is never `commit`. Without a word, by Ctrl-C, kill -9 or a lost line, the host
rolls back once its commit deadline is over; after a reboot what was proven starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from rackwright.adapter.run.session import Connected
from rackwright.concerns.apply import perform, perform_all
from rackwright.concerns.encodings import ENCODINGS
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.release.concern import RELEASE
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.events import VARIANT, SwitchProgress
from rackwright.concerns.endpoint.switch.follow import ending
from rackwright.concerns.endpoint.switch.measurement_window import window
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.switch.transaction import word_script
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.concerns.options import OPTIONS
from rackwright.concerns.read_host import read_host
from rackwright.messages import RackwrightError, ReadingError
from rackwright.paths import TRIALS, trials_dir
from rackwright.plan.change import Change, Refuse, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.jobstream import Event, Heard, text_of
from rackwright.plan.ownership import RECORD, OwnershipRecord
from rackwright.remote.commands import run_simple
from rackwright.remote.errors import NotStartedError, StepFailedError
from rackwright.remote.jobs import follow_job
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.names import Names

STAGED = (IMAGE, ENCODINGS, MODELS, RELEASE, OPTIONS)
"""Concerns that bring what a release needs; what serves is untouched by them."""
ROLLED_BACK = 3
"""Exit status of a host's transaction that received the message `over`."""
MEASURED = "it was measured, and never to be kept"
OVER = f"over {MEASURED}"


@dataclass
class Beat:
    """Tells the waiting host, now and then, that the bench still measures."""

    say: Callable[[str], None]
    every: float
    """Seconds."""
    last: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        """Say `hold` when the last one is old enough."""
        if time.monotonic() - self.last >= self.every:
            self.say("hold")
            self.last = time.monotonic()


@dataclass(frozen=True)
class TrialEndpoint:
    """The place of the trials: one endpoint of a connected host, under its lease."""

    one: Connected
    endpoint: str
    steps: Collection[str]
    """Those that the site's deploy.py calls."""
    say: Callable[[str], None]
    """Shows a line of progress."""
    names: Names = field(default_factory=Names)

    def read(self, settings: HostSettings) -> HostReading:
        """Return the host as it is. Raises ReadingError."""
        reading, _ = read_host(self.one.host, settings, steps=self.steps)
        return self.names.complete(settings, reading)

    def stage(self, settings: HostSettings) -> None:
        """Put there what a variant needs. Raises StepFailedError."""
        reading = self.read(settings)
        for concern in STAGED:
            if concern.name in self.steps and (changes := concern.pending(settings, reading)):
                self._carry_out(changes, OwnershipRecord(reading[RECORD]))
                reading = self.read(settings)

    def _carry_out(self, changes: Collection[Change], record: OwnershipRecord) -> None:
        for change in changes:
            self.say(f"  {change.sentence}")
            perform_all(change, record, lambda batch: perform(self.one.host, batch))

    def observed(self, reading: HostReading) -> SeenEndpoint:
        """Return the endpoint as it is."""
        found: SeenEndpoint = reading[ENDPOINT].endpoints.get(self.endpoint, SeenEndpoint())
        return found

    def refuse_unproven(self, reading: HostReading) -> None:
        """Raise RackwrightError unless the endpoint serves what it has proven: that is what is put back."""
        observed = self.observed(reading)
        if not observed.serving or observed.proven is None or observed.proven != observed.current:
            raise RackwrightError(
                f"{self.one.entry.name} {self.endpoint}: it does not serve a proven release, so nothing could be put "
                "back after a comparison; nothing was measured; next: pyinfra INVENTORY deploy.py --limit "
                f"{self.one.entry.name}",
                code="RW1533",
            )

    def step(self, settings: HostSettings) -> Proved:
        """Switch the host to a variant. settings: on trial. Raises RackwrightError where it cannot."""
        reading = self.read(settings)
        self.refuse_unproven(reading)
        endpoint, steps = settings.all_endpoints[self.endpoint], []
        for change in ENDPOINT.pending(settings, reading):
            steps += [step for step in change.steps if _is_its(step, self.endpoint)]
        if not steps:
            return window(self.endpoint, endpoint, self.observed(reading))
        if isinstance(first := steps[0], Refuse):
            raise StepFailedError(first.text, code=first.code)
        assert isinstance(first, Proved)
        assert endpoint.gate.level == "full"
        return first

    def while_serving(self, settings: HostSettings, budget: float, work: Callable[[Beat], None]) -> None:
        """Measure a variant while it serves, then have the host put back what served.

        settings: on trial. budget: seconds at most that the work may take. Raises RackwrightError.
        """
        step = self.step(settings)
        deadline = settings.all_endpoints[self.endpoint].gate.commit_deadline
        progress = SwitchProgress(self.endpoint, trials_dir(self.endpoint), VARIANT)
        answer = OVER if step.restarts else "commit"

        def heed(heard: Heard) -> None:
            self.say(f"  {trial_line(progress, heard)}")
            if progress.waits:
                progress.waits = False
                try:
                    work(Beat(self._word, deadline / 4))
                finally:
                    self._word(answer)

        ended = follow_job(self.one.host, _on_trial(step, budget).job, heed)
        if ended.status == ROLLED_BACK and progress.waited and step.restarts:
            return
        if (error := ending(step, progress, ended)) is not None:
            raise error

    def _word(self, answer: str) -> None:
        try:
            run_simple(self.one.host, Shell(word_script(self.endpoint, answer)))
        except NotStartedError:
            raise
        except StepFailedError as error:
            name = self.one.entry.name
            raise StepFailedError(
                f"{name} {self.endpoint}: the trial ended before it was measured ({error.text}), and the host puts "
                "back what served; cells that were measured stay; next: rackwright status INVENTORY --limit "
                f"{name}, then the same command",
                code="RW1535",
            ) from error


def trial_line(progress: SwitchProgress, heard: Heard) -> str:
    """Return the host's message as a line, and add it to the progress. Of a trial nothing is committed."""
    try:
        text = progress.hear(heard).text
    except (ReadingError, ValueError):
        return text_of(heard)
    match heard:
        case Event("word"):
            return "basic proof passed: it is measured now"
        case Event("failed", outcome) if outcome.strip() == MEASURED:
            return "measured: the host puts back what served"
        case Event("end", outcome) if outcome.strip() == f"rolled-back {MEASURED}":
            return "what served serves again"
        case Event("end", outcome) if outcome.startswith("committed"):
            return "nothing was switched: what served all the time has its clients again"
    return text


def _is_its(step: object, endpoint: str) -> bool:
    return isinstance(step, Refuse) or (isinstance(step, Proved) and step.endpoint == endpoint)


def _on_trial(step: Proved, seconds: float) -> Proved:
    """Return its job with as much more time as measuring takes, and a place of its own for the logs of trials."""
    job = step.job
    script = f"export kept_in={TRIALS}\n{job.script}"
    return replace(step, job=replace(job, script=script, timeout=job.timeout + int(seconds)))
