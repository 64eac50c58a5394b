"""Questions to a host while its endpoint is measured: container, engine's counters, GPUs. Reads only."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rackwright.adapter.run.session import Connected
from rackwright.adapter.ssh.forward import NoForwardError, forwarded
from rackwright.concerns.encodings.concern import ENCODING_FILES
from rackwright.concerns.endpoint import full_gate
from rackwright.concerns.endpoint.container import local_url, served_name
from rackwright.concerns.endpoint.proof.asking import listener_script
from rackwright.concerns.lease import parse_seen, read_script
from rackwright.concerns.lease.take_lease import LeaseHeldError, refusal
from rackwright.concerns.lease.this_process import is_gone
from rackwright.engines.exported import exported
from rackwright.messages import RackwrightError
from rackwright.paths import ENCODINGS_MOUNT, container_name
from rackwright.plan.change import Shell
from rackwright.plan.reach import client_port_of, in_url
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.local_probe import probe
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.aiperf.tokenizer import in_cache
from rackwright_bench.figures.acceptance import counters_path, counts_of, drafting_of, why_not
from rackwright_bench.figures.figures import Drafting
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.options.schema import line_for
from rackwright_engines.version import bare

VOCABULARY = ENCODING_FILES[0]
VOCABULARY_AS = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""tiktoken's name for it in its cache: the SHA-1 of the address that it would be fetched from."""
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json", "chat_template.jinja")
GPU_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""One field by its name of today, and by that of drivers before 535."""
SECONDS = 60


@dataclass(frozen=True)
class Serving:
    """The data of a running endpoint's container."""

    release: str
    image: str
    environment: Mapping[str, str]
    mounts: Mapping[str, str]
    """Folder of the host by folder in the container."""


@dataclass(frozen=True)
class GpuSample:
    """All GPUs of a host at one moment: the bits of what slows them, watts of all, the mean clock in MHz.

    None for what one of them does not say: some have no figure for their power.
    """

    reasons: int | None
    watts: float | None
    mhz: float | None


@dataclass(frozen=True)
class Measuree:
    """One endpoint of a connected host."""

    one: Connected
    name: str
    endpoint: EndpointSettings

    @property
    def host(self) -> str:
        """The host's name."""
        return self.one.entry.name

    @property
    def model(self) -> str:
        """The name that it serves."""
        return served_name(self.endpoint)

    @property
    def repository(self) -> str | None:
        """The model's repository, whatever the name that it serves; None where its settings do not name it."""
        return self.endpoint.model.repository if self.endpoint.model else None

    @property
    def key(self) -> str:
        """The key that it asks of its clients; empty: none."""
        return self.endpoint.api_key.unmask() if self.endpoint.api_key else ""

    def url(self) -> str:
        """Return its URL for this machine. Raises RackwrightError with the next step where it cannot be reached."""
        client_port = client_port_of(self.endpoint)
        limit = f"--limit {self.host}"
        if client_port is None:
            raise RackwrightError(
                f"{self.host} {self.name}: it listens on {self.endpoint.address} alone, so this machine cannot measure "
                f"it; next: set bind and allow_from in group_vars, roll out {limit}, then again",
                code="RW1506",
            )
        if self.one.entry.settings.direct_is_closed:
            return self._url_by_ssh()
        address = client_port.address or str(self.one.host.data.get("ssh_hostname") or self.host)
        if why := probe(address, client_port.port):
            raise RackwrightError(
                f"{self.host} {self.name}: port {client_port.port} of {address} cannot be reached from this machine: "
                f"{why}; "
                f"next: rackwright status INVENTORY --limit {self.host}; allow_from must let this machine in",
                code="RW1507",
            )
        self._refuse_another_listener()
        return f"http://{in_url(address)}:{client_port.port}"

    def _url_by_ssh(self) -> str:
        """Return a port of this machine that leads there by SSH: the endpoint's own lets in the gateways alone.

        Raises RackwrightError.
        """
        self._refuse_another_listener()
        url = urlsplit(local_url(self.endpoint))
        try:
            port = forwarded(self.one.host, str(url.hostname), int(url.port or 0))
        except NoForwardError as error:
            text = f"{self.host} {self.name}: its port lets in the gateways alone, and SSH does not lead there: {error}"
            raise RackwrightError(f"{text}; next: AllowTcpForwarding of its sshd", code="RW1539") from error
        return f"http://127.0.0.1:{port}"

    def _refuse_another_listener(self) -> None:
        """Raise RackwrightError unless its container has the port: the key must reach no other process."""
        answer = self._ask(
            f"{listener_script(self.name)}if listener; then echo known; else printf '%s\\n' \"$listener_why\"; fi"
        )
        if answer != "known":
            why = answer or "its host does not say who listens on its port"
            raise RackwrightError(f"{self.host} {self.name}: it is not measured: {why}", code="RW1543")

    def serving(self) -> Serving:
        """Its container. Raises RackwrightError when none runs."""
        text = self._ask(f"docker inspect --type container {shlex.quote(container_name(self.name))}")
        try:
            return serving_of(json.loads(text or "[]"))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise RackwrightError(
                f"{self.host} {self.name}: it does not run; next: rackwright status INVENTORY --limit {self.host}",
                code="RW1508",
            ) from error

    def refuse_while_written(self) -> None:
        """Raise LeaseHeldError while another run writes to the host: a deploy beside it would be measured too."""
        lease = parse_seen(self._ask(read_script()).splitlines())
        if lease.live is not None and not is_gone(lease.live.holder):
            raise LeaseHeldError(refusal(self.host, lease))

    def counts(self) -> dict[str, float]:
        """Return the engine's counters; none of an engine whose metrics must not be read, or that has none."""
        path = counters_path(self.endpoint)
        if not path:
            return {}
        url = shlex.quote(f"{local_url(self.endpoint)}{path}")
        return counts_of(self._ask(f"curl --silent --noproxy '*' --max-time 20 {url}"))

    def drafting(self, grown: Mapping[str, float], answers: Drafting) -> Drafting:
        """Return what came of its drafts. grown: its counters; answers: what aiperf has read in its answers."""
        kind, drafts = self.endpoint.engine_kind, bool(full_gate.drafting_of(self.endpoint))
        found = drafting_of(kind, drafts, grown, answers, plan_of(self.endpoint).number("length", 0))
        if not drafts or kind == "vllm" or found.accepted is not None:
            return found
        options = exported(self.one.entry.settings, self.endpoint)
        return Drafting(why_not=why_not(self.endpoint, options or line_for(kind, bare(self.endpoint.version))[0]))

    def gpus(self) -> GpuSample | None:
        """Its host's GPUs now; None where nvidia-smi does not answer."""
        queries = (
            f"nvidia-smi --query-gpu={one},power.draw,clocks.sm --format=csv,noheader,nounits" for one in GPU_REASONS
        )
        return parse_gpu_sample(
            self._ask("said=$({}) || said=$({}) && printf '%s\\n' \"$said\"".format(*queries)).splitlines()
        )

    def gpu_names(self) -> list[str]:
        """Its host's GPUs by their product names."""
        return self._ask("nvidia-smi --query-gpu=name --format=csv,noheader").splitlines()

    def driver(self) -> str:
        """Its host's NVIDIA driver; empty where nvidia-smi does not answer."""
        versions = self._ask("nvidia-smi --query-gpu=driver_version --format=csv,noheader").splitlines()
        return versions[0].strip() if versions else ""

    def gpu_count(self, names: Sequence[str]) -> int:
        """Return the number of GPUs that the endpoint serves with, on all of its hosts. names: those of this host."""
        gpus = self.endpoint.gpus
        return (len(names) if gpus == "all" else len(gpus)) * self.endpoint.size

    def _ask(self, script: str) -> str:
        """Return what a command prints; nothing when it failed."""
        try:
            shell = command_of(Shell(script, timeout=SECONDS))
            ok, output = remote(self.one.host, shell, timeout=SECONDS + 10, quiet=True)
        except (StepFailedError, TimeoutError) as error:
            raise RackwrightError(f"{self.host} can no longer be asked: {error}", code="RW1509") from error
        return "\n".join(output.stdout_lines) if ok else ""

    # -- what counts tokens

    def tokenizer(self, serving: Serving, cache: Path) -> str:
        """Return what aiperf counts prompts with, by its name there: the host's own files, cached on this machine.

        Raises RackwrightError where the host has neither gpt-oss's vocabulary nor the model's tokenizer.
        """
        if ENCODINGS_MOUNT in serving.mounts:
            self._keep(f"{serving.mounts[ENCODINGS_MOUNT]}/{VOCABULARY.file}", cache / VOCABULARY_AS, VOCABULARY.sha256)
            return "builtin"
        assert self.endpoint.model is not None
        source = serving.mounts.get(self.endpoint.model.mount, "")
        folder = cache / hashlib.sha256(source.encode()).hexdigest()[:12]
        found = [name for name in TOKENIZER if self._keep(f"{source}/{name}", folder / name)]
        if TOKENIZER[0] not in found:
            raise RackwrightError(
                f"{self.host} {self.name}: {source or 'the model folder'} has no {TOKENIZER[0]} to make prompts with; "
                "next: the same command with --tokenizer DIR",
                code="RW1510",
            )
        return in_cache(folder, cache)

    def _keep(self, path: str, target: Path, sha256: str = "") -> bool:
        """Copy a small file of the host; whether it is there. Raises RackwrightError for other bytes than expected."""
        if sha256 and target.exists() and _sha256(target.read_bytes()) == sha256:
            return True
        content = base64.b64decode(self._ask(f"[ ! -f {shlex.quote(path)} ] || base64 {shlex.quote(path)}") or "")
        if sha256 and _sha256(content) != sha256:
            raise RackwrightError(
                f"{self.host}: {path} is not the published file; next: rackwright drift INVENTORY --limit {self.host}",
                code="RW1511",
            )
        if content:
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.{os.getpid()}")
            part.write_bytes(content)
            part.replace(target)
        return bool(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def serving_of(containers: Sequence[Mapping[str, Any]]) -> Serving:
    """Return what `docker inspect` printed of the container. Raises KeyError and the like when it does not run."""
    (container,) = containers
    if not container["State"]["Running"]:
        raise KeyError("it does not run")
    config = container["Config"]
    words = [str(variable).partition("=") for variable in config["Env"] or ()]
    return Serving(
        release=str((config["Labels"] or {}).get("rackwright.release", "")),
        image=str(config["Image"]),
        environment={name: value for name, _, value in words},
        mounts={str(mount["Destination"]): str(mount["Source"]) for mount in container["Mounts"]},
    )


def parse_gpu_sample(lines: Sequence[str]) -> GpuSample | None:
    """Return what nvidia-smi printed, a line a GPU; None where that is not a reading."""
    rows = [[field.strip() for field in row.split(",")] for row in lines if row.strip()]
    if not rows or any(len(row) != 3 for row in rows):
        return None
    bits = [_number(row[0], lambda text: int(text, 16)) for row in rows]
    watts, mhz = ([_number(row[column], float) for row in rows] for column in (1, 2))
    reasons = 0
    for one in filter(None, bits):
        reasons |= int(one)
    return GpuSample(
        None if None in bits else reasons,
        None if None in watts else sum(filter(None, watts)),
        None if None in mhz else sum(filter(None, mhz)) / len(mhz),
    )


def _number(text: str, kind: Callable[[str], float]) -> float | None:
    """Return a field as a number; None for `[N/A]` and the like."""
    try:
        return kind(text)
    except ValueError:
        return None
