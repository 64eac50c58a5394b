"""The steps that take an endpoint out of service and count only when it then answers. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.concerns.endpoint.peers.peer_check import PeerCheck
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.quality.quality_check import QualityCheck
from rackwright.plan.change import Job, Step
from rackwright.plan.reach import ClientPort


@dataclass(frozen=True)
class Proved(Step):
    """A switch that counts only when the endpoint then answers; otherwise the host rolls back alone.

    `job` does all of it on the host, up to the basic proof and the commit. With the full gate it waits for the control
    machine, which then asks `questions`.
    """

    endpoint: str
    release: str
    job: Job
    serving: bool
    """True when the endpoint serves now, so that switching it takes capacity away."""
    takes_over: tuple[str, ...] = ()
    """Endpoints of other names that it replaces: they serve again when it fails."""
    restarts: bool = True
    """False when what runs already is only to be proven."""
    questions: tuple[Question, ...] = ()
    """The control machine's questions after the basic proof; nothing when the host commits alone."""
    questions_before: tuple[Question, ...] = ()
    """Asked before the switch, so that rows of the same name can be compared afterwards."""
    listens: tuple[str, str, int] | None = None
    """Network, address and port of a release that is rolled back to; None where the settings say it."""
    client_port: ClientPort | None = None
    """The clients' address; None when the endpoint listens on loopback only."""
    quality: tuple[QualityCheck, ...] = ()
    """Questions to a canary's release, whose answers must be as good as those of the release before."""
    canary_questions: tuple[Question, ...] = ()
    """Rows of the gate that only a canary is asked, before these."""
    peers: tuple[PeerCheck, ...] = ()
    """The limit of a canary's slowness while it serves beside its peers, last of all before the commit."""


@dataclass(frozen=True)
class DaemonRestart(Step):
    """A restart of dockerd that counts only when its endpoints then answer; otherwise the host rolls back alone.

    `job` does all of it on the host, from the drain to the end.
    """

    endpoints: tuple[str, ...]
    """Those that are stopped and started with it."""
    configuration: str
    """Short name of what is tried."""
    job: Job
    serving: bool
    """True when any of them serves now."""


@dataclass(frozen=True)
class HostRestart(Step):
    """A restart of the whole host; `HostReturn` waits for its end.

    `job` drains, stops and restarts on the host, which then starts its endpoints again.
    """

    job: Job
    proofs: tuple[Proved, ...]
    """The endpoints that must answer afterwards; the questions for comparison are asked before."""
    serving: bool
    """True when any endpoint serves now."""
    boot: str
    """The boot that is to end."""


@dataclass(frozen=True)
class HostReturn(Step):
    """The end of a host's restart, which counts only when the host is back in time and its endpoints then answer."""

    proofs: tuple[Proved, ...]
    """The endpoints that must answer."""
    boot: str
    """The boot that is to end."""
    seconds: int
    """Within which the host must be back."""
