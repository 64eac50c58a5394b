"""Parts of a plan: changes, and the steps that carry them out. Plain values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright.messages import coded
from rackwright.settings.secret import Secret


class Step:
    """One step of a change; `rackwright.concerns.apply` carries each kind out."""


@dataclass(frozen=True)
class Shell(Step):
    """A POSIX sh script, run as root. It must be safe to run twice.

    `stdin` carries secrets; `timeout` (seconds) ends the script on the host itself.
    `unseen`: the script itself holds what `ps` must not show, such as a proxy's password, so the script goes there too.
    """

    script: str
    stdin: Secret | str | None = None
    timeout: int = 300
    unseen: bool = False
    title: str = ""
    """Begins the message when it fails, before the errors that it printed; without it the last of them stands alone."""
    code: str = "RW0714"
    """Code of the error when it fails."""


@dataclass(frozen=True)
class WriteFile(Step):
    """A whole file, replaced atomically; its content travels by standard input."""

    path: str
    content: str | Secret
    mode: str = "0644"
    owner: str = "root:root"


@dataclass(frozen=True)
class Job(Step):
    """A long script that the host runs on its own, as a transient systemd unit.

    It keeps running when the connection or the control process dies, and the next run joins it instead of starting
    another. Its output is shown as progress. `secrets` are, as long as it runs, in files readable only by
    root; the script finds their folder in `$SECRETS`, and a folder for its own files in `$JOB`.
    """

    name: str
    title: str
    script: str
    timeout: int = 3600
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    aim: str | None = None
    """Its goal: a run joins a job of the same name and aim. None: only one of the identical script."""
    alone: str = (
        "the job keeps running on the host; the next run reattaches, or after a power loss continues from what is there"
    )
    """Message when the connection is lost while it runs."""
    waits: bool = False
    """True when it only waits for a running job, so that the writer of the host may continue at the same time."""
    trial: str = ""
    """File on the host that undoes the job's trial when the host finds it after the job was interrupted."""
    code: str = "RW0510"
    """Code of the error when it fails."""
    at_once: int | None = None
    """Hosts of a run that may have such a job under way at the same time; None: any number."""
    helps: bool = False
    """True when it is for other hosts of the run: a failure is reported, and its own host continues."""
    outside: bool = False
    """True on a host that the run was not begun for: the run's record says nothing of it."""
    after: tuple[str, ...] = ()
    """Jobs of the same host that must have ended before this one begins; one that never began counts as ended."""
    transfer: str = ""
    """Name of the model or image that hosts of the run hand on by it; empty: it has no part in that."""
    takers: tuple[str, ...] = ()
    """Hosts of the run that may take it from this one: once none of them will, the job is released."""


@dataclass(frozen=True)
class Guarded(Step):
    """A script that could lock Rackwright out: the host runs `undo` unless a new connection confirms in time."""

    name: str
    script: str
    undo: str
    seconds: int
    trial: str = ""
    """The part of `undo` that must run at boot if the host goes down before then, as a trial script; empty: none."""
    before: str = ""
    """A script that ends the change before it begins where it could not succeed."""


@dataclass(frozen=True)
class Refuse(Step):
    """A refusal: the problem, its location, and the next command to type.

    `final` is False when earlier steps of the same run may still fix it, so that a dry run must not fail.
    """

    text: str
    code: str
    """Argument of `rackwright explain`."""
    final: bool = True
    mistake: str = ""
    """The remedy, where a resume would end here again: only other settings help, or something that no run does."""

    @property
    def message(self) -> str:
        """The text with its code, for people."""
        return coded(self.code, self.text)


@dataclass(frozen=True, order=True)
class Owned:
    """Something on the host that exists because of Rackwright: the basis of teardown."""

    kind: str
    """package, hold, group_member, daemon_key, file, directory, unit, rule, login, image, model, apt_source, drop_in"""
    name: str


@dataclass(frozen=True)
class Change:
    """One difference between the wanted and the read state, as a sentence, with its reason and its steps."""

    what: str
    """Imperative sentence without a full stop: "write /etc/docker/daemon.json"."""
    why: str
    steps: tuple[Step, ...]
    owns: tuple[Owned, ...] = ()
    disowns: tuple[Owned, ...] = ()
    size: int = 0
    """Bytes to download, when known."""
    about: int = 0
    """Bytes of the whole of what it downloads, by the lock file: a run that was cut may have left some of them."""
    diff: str = ""
    """Unified diff of files without secrets."""
    endpoint: str = ""
    """The endpoint whose release it changes, if any."""
    restarts: str = ""
    """The service that it restarts in addition to endpoints: `dockerd`."""
    fetches: str = ""
    """Repository of the image or model that it downloads."""
    by_itself: bool = False
    """True when no settings can have caused it: the host changed on its own."""

    @property
    def sentence(self) -> str:
        """The change and its reason, for people."""
        return f"{self.what} ({self.why})" if self.why else self.what
