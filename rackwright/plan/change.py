"""What a plan is made of: changes, and the steps that carry them out. Plain values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackwright.messages import coded
from rackwright.settings.secret import Secret

if TYPE_CHECKING:
    from rackwright.plan.reach import Door
    from rackwright.proof.basic import Question


@dataclass(frozen=True)
class Shell:
    """A POSIX sh script, run as root. It must be safe to run twice.

    `stdin` is where secrets go; `timeout` (seconds) ends the script on the host itself.
    `unseen`: the script itself holds what `ps` must not show, such as a proxy's password, so it goes there as well.
    """

    script: str
    stdin: Secret | str | None = None
    timeout: int = 300
    unseen: bool = False


@dataclass(frozen=True)
class WriteFile:
    """A whole file, replaced atomically; its content travels by standard input."""

    path: str
    content: str | Secret
    mode: str = "0644"
    owner: str = "root:root"


@dataclass(frozen=True)
class Job:
    """A long script that the host runs by itself, as a transient systemd unit.

    It goes on when the connection or the control process dies, and the next run joins it instead of starting
    another. Lines that it prints are shown as progress. `secrets` lie, as long as it runs, in files
    readable by root only; the script finds their folder in `$SECRETS`, and a folder for its own files in `$JOB`.
    """

    name: str
    title: str
    script: str
    timeout: int = 3600
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    aim: str | None = None
    """What it is after: a run joins a job of the same name and aim. None: only one of the very same script."""
    alone: str = (
        "the job keeps running on the host; the next run reattaches, or after a power loss continues from what is there"
    )
    """What to say when the connection is lost meanwhile."""
    waits: bool = False
    """True when it only waits for what is under way, so that whoever writes to the host may go on meanwhile."""
    trial: str = ""
    """File on the host that takes back what the job tries, when the host finds it after the job was cut."""
    code: str = "RW0510"
    """Of the error when it fails."""
    at_once: int | None = None
    """Hosts of a run that may have such a job under way at the same time; None: any number."""
    after: tuple[str, ...] = ()
    """Jobs of the same host that must have ended before this one begins; one that never began counts as ended."""


@dataclass(frozen=True)
class Guarded:
    """A script that could lock us out: the host runs `undo` by itself unless a new connection confirms in time."""

    name: str
    script: str
    undo: str
    seconds: int
    trial: str = ""
    """What of `undo` must happen at boot when the host goes down meanwhile, as a trial script; empty: nothing."""


@dataclass(frozen=True)
class Proved:
    """A switch that counts only when the endpoint then answers; otherwise the host rolls back, by itself.

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
    """What the control machine asks besides the basic proof; nothing when the host commits alone."""
    questions_before: tuple[Question, ...] = ()
    """Asked before the switch, so that rows of the same name can be compared afterwards."""
    listens: tuple[str, str, int] | None = None
    """Network, address and port of a release that is rolled back to; None where the settings say it."""
    door: Door | None = None
    """Where clients come in; None when the endpoint listens on loopback only."""


@dataclass(frozen=True)
class DaemonRestart:
    """A restart of dockerd that counts only when its endpoints then answer; otherwise the host rolls back, by itself.

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
class HostRestart:
    """A restart of the whole host; `HostReturn` waits for its end.

    `job` drains, stops and restarts on the host, which starts its endpoints again by itself.
    """

    job: Job
    proofs: tuple[Proved, ...]
    """What must answer afterwards: what it is compared by is asked before."""
    serving: bool
    """True when any endpoint serves now."""
    boot: str
    """The boot that is to end."""


@dataclass(frozen=True)
class HostReturn:
    """The end of a host's restart, which counts only when the host is back in time and its endpoints then answer."""

    proofs: tuple[Proved, ...]
    """What must answer."""
    boot: str
    """The boot that is to end."""
    seconds: int
    """Within which the host must be back."""


@dataclass(frozen=True)
class Refuse:
    """Nothing can be done here: what is wrong, where, and the next command to type.

    `final` is False when earlier steps of the same run may still fix it, so that looking ahead must not fail.
    """

    text: str
    code: str
    """What `rackwright explain` takes."""
    final: bool = True

    @property
    def message(self) -> str:
        """The text with its code, for people."""
        return coded(self.code, self.text)


Step = Shell | WriteFile | Job | Guarded | Proved | DaemonRestart | HostRestart | HostReturn | Refuse


@dataclass(frozen=True, order=True)
class Owned:
    """Something on the host that exists because of us: the base of teardown."""

    kind: str
    """package, hold, group_member, daemon_key, file, directory, unit, rule, login, image, model, apt_source, drop_in"""
    name: str


@dataclass(frozen=True)
class Change:
    """One difference between what is wanted and what was seen, as a sentence, with its reason and its steps."""

    what: str
    """Imperative sentence without a full stop: "write /etc/docker/daemon.json"."""
    why: str
    steps: tuple[Step, ...]
    owns: tuple[Owned, ...] = ()
    disowns: tuple[Owned, ...] = ()
    size: int = 0
    """Bytes to download, when known."""
    diff: str = ""
    """Unified diff of files without secrets."""
    endpoint: str = ""
    """The endpoint whose release it is about, if it is about one."""
    restarts: str = ""
    """What it stops and starts again beside endpoints: `dockerd`."""
    fetches: str = ""
    """Repository of the image or model that it downloads."""
    by_itself: bool = False
    """True when no settings can have asked for it: the host has moved by itself."""

    @property
    def sentence(self) -> str:
        """What and why, for people."""
        return f"{self.what} ({self.why})" if self.why else self.what
