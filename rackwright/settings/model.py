"""Typed settings: what `group_vars`, `host_vars` and `--data` may say, one frozen object a host.

Every key below is a key of the YAML files. Two classes: what an endpoint is (`EndpointSettings`) and what a
host is (`HostSettings`, which takes the endpoint's keys at top level too, as the defaults of its endpoints).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from rackwright.paths import reserved
from rackwright.settings.secret import Secret

DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
NAME = r"^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$"
"""An endpoint's name. A dot parts names of ours on a host, so none is in it."""
FOLDER = r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"
ABSOLUTE = r"^/[A-Za-z0-9._/@+-]*$"
IMAGE = r"^[^\s@]+:[\w][\w.-]{0,127}$"
REPOSITORY = r"^[\w.-]+/[\w.-]+$"
YAML_FILE = r"^[\w.-]+\.ya?ml$"
SITE = "site"
"""In the context of a validation: the site's folder."""
NOWHERE = Path("/")
"""The folder of settings that come from no site: a host of an inventory that does not call build()."""
AMOUNT = r"^(\d+|100%|\d{1,2}%)$"

AbsolutePath = Annotated[str, Field(pattern=ABSOLUTE)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=1)]


def _amount(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Amount = Annotated[str, BeforeValidator(_amount), Field(pattern=AMOUNT)]
"""A number of hosts, or a part of them in percent."""


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        raise ValueError("must be a network such as 10.0.0.0/8") from None


Cidr = Annotated[str, AfterValidator(_network)]


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        raise ValueError("must be an address of the host, as 127.0.0.1, or 0.0.0.0 for all") from None
    return value


def _gpu_list(value: object) -> object:
    """Two kinds of value would make two messages of one mistake."""
    numbers = isinstance(value, list | tuple) and all(type(gpu) is int and gpu >= 0 for gpu in value)
    if value != "all" and not (numbers and value):
        raise ValueError("must be all, or a list of GPU numbers such as [0, 1]")
    return value


def _folder(value: str) -> str:
    if value.endswith(".partial"):
        raise ValueError("must not end in .partial: that is where the download of another folder lies")
    return value


class Frozen(BaseModel):
    """A section of the settings: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


class ModelSource(Frozen):
    """A model repository on the hub, and where its files lie on the host and in the container."""

    repository: str = Field(pattern=REPOSITORY)
    """Hub repository, for example `openai/gpt-oss-120b`."""
    revision: str = "main"
    """Branch, tag or commit. The lock file, or else the first download, pins it to a commit."""
    directory: Annotated[str, AfterValidator(_folder)] | None = Field(default=None, pattern=FOLDER)
    """Folder below `models_dir` on the host.

    Default: the repository's name with `/` as `--`, and the commit's first 12 characters.
    """
    mount: AbsolutePath
    """Folder in the container. Its last part is the name that /v1/models answers."""
    include: tuple[str, ...] = ()
    """File patterns to fetch; empty means all."""
    exclude: tuple[str, ...] = ()
    """File patterns never to fetch, for example `original/*`.

    A plain download of gpt-oss fetches the weights three times.
    """


class Hardware(Frozen):
    """What the host must be: checked by preflight, never changed."""

    machine: str = "any machine"
    """Name of the machine type in messages, for example `DGX B200`."""
    architecture: Literal["x86_64", "aarch64"] | None = None
    gpu_models: tuple[str, ...] = ()
    """Accepted GPU product names, as parts of nvidia-smi's product name, for example `B200`."""
    gpu_count: int | None = Field(default=None, ge=1)
    """GPUs that the host must have at least."""
    compute_capability: tuple[str, ...] = ()
    """Accepted compute capabilities, for example `10.0`."""
    driver_minimum: str | None = None
    """Oldest driver for the image, for example `575`."""
    fabric_manager: bool = False
    """True where the host itself runs nvidia-fabricmanager (HGX and DGX B200); on NVL72 the switch trays do."""
    unified_memory: bool = False
    """True on GB10: nvidia-smi reports memory as N/A, so MemAvailable counts."""
    memory_minimum_gib: int | None = None
    """Host memory needed at least."""


class Registry(Frozen):
    """The login for the image's registry."""

    host: str = "nvcr.io"
    user: str = "$oauthtoken"
    """NGC's user is the literal text `$oauthtoken`."""
    key: Secret | None = None
    """API key; without it the pull is tried without a login first."""
    keep: bool = True
    """True: the login stays for root only (0600). False: it exists only while an image is pulled."""


class Proxy(Frozen):
    """Proxies for apt, Docker, downloads and preflight."""

    http: str | None = None
    https: str | None = None
    no_proxy: tuple[str, ...] = ("localhost", "127.0.0.1", "::1")


class Mirrors(Frozen):
    """Where things come from when their public addresses are not to be used."""

    encodings: str = "https://openaipublic.blob.core.windows.net/encodings"
    hub: str = "https://huggingface.co"
    container_toolkit: str = "https://nvidia.github.io/libnvidia-container"
    docker: str = "https://download.docker.com"


class ContainerToolkit(Frozen):
    """NVIDIA container toolkit: installed from NVIDIA's apt repository when the host has none."""

    version: str | None = None
    """Debian package version to install, for example `1.18.0-1`; none: the repository's newest, then held."""


def _words(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class Hook(Frozen):
    """A command of the site that a rollout runs on the control machine, with the run as JSON on standard input."""

    command: Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]
    """Program and arguments, never through a shell; a path is relative to the site. Secrets belong into files."""
    timeout: Seconds = 30
    """Seconds after which it is ended."""
    veto: bool = False
    """True, for `plan` and `wave` only: when it fails, the run stops there."""


class Hooks(Frozen):
    """Commands around rollouts, rollbacks, resumes and teardowns; a plain deploy runs none."""

    plan: tuple[Hook, ...] = ()
    """Before anything is done."""
    wave: tuple[Hook, ...] = ()
    """Before the canaries, and before each wave."""
    switch: tuple[Hook, ...] = ()
    """After a host has switched and answered."""
    failure: tuple[Hook, ...] = ()
    """After a host has failed."""
    finish: tuple[Hook, ...] = ()
    """After the run, however it ended."""

    @model_validator(mode="after")
    def _veto_where_it_is_heard(self) -> Hooks:
        for event in ("switch", "failure", "finish"):
            if any(hook.veto for hook in getattr(self, event)):
                raise ValueError(f"a {event} hook comes too late for a veto: only plan and wave hooks have one")
        return self


class MisfitError(ValueError):
    """Settings that are right one by one and do not fit together, with the keys where that is mended."""

    def __init__(self, text: str, *path: str) -> None:
        super().__init__(text)
        self.path = path


class EndpointSettings(Frozen):
    """One LLM endpoint: a container that serves one model on one port."""

    engine_kind: Literal["tensorrt-llm", "vllm", "sglang"] = "tensorrt-llm"
    """Which server runs in the image."""
    image: str = Field(default="nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", pattern=IMAGE)
    """Image with its tag."""
    image_digest: str | None = None
    """`sha256:...` to pull by; none: the lock file's, or else the one seen at the first pull."""
    engine_version: str | None = None
    """Version for the option checks; default: the image's tag."""
    model: ModelSource | None = None
    draft: ModelSource | None = None
    """Draft model for speculative decoding."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's own YAML, merged deep over all files; checked for the image's version."""
    engine_file: str = Field(default="engine.yaml", pattern=YAML_FILE)
    """Name of the YAML file in the release, for example `eagle.yaml`."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment of the container. No secrets: they would show in `docker inspect`."""
    arguments: tuple[str, ...] = ()
    """More words for the server's command line."""
    sizes_on_command_line: bool = False
    """True for TensorRT-LLM 1.1.0rc0, where the command line could override the YAML's three sizes."""
    port: Port = 8000
    network: Literal["bridge", "host"] = "bridge"
    """`bridge` publishes the port; `host` shares the host's network."""
    bind: Annotated[str, AfterValidator(_address)] | None = None
    """Address to publish or listen on; default 0.0.0.0 for bridge and 127.0.0.1 for host."""
    allow_from: tuple[Cidr, ...] = ()
    """Networks that may reach the port; empty: open, with a warning."""
    gpus: Annotated[Literal["all"] | tuple[int, ...], BeforeValidator(_gpu_list)] = "all"
    """GPUs by index, or all of them."""
    replicas: int = Field(default=1, ge=1)
    """N makes N endpoints of one GPU each: NAME-0 to NAME-(N-1), on this port and the next ones."""
    harmony: bool = True
    """True when chat needs the tiktoken encodings (gpt-oss)."""
    load_timeout: Seconds = 1800
    """Seconds from start to ready before the start counts as failed."""
    stop_timeout: Seconds = 60
    """Seconds from SIGTERM to SIGKILL."""
    drain_timeout: int = Field(default=30, ge=0)
    """Seconds to wait for open connections before a stop."""
    drain_hook: tuple[str, ...] = ()
    """Command that the host runs before a switch, for example to take the endpoint out of a balancer.

    A list of words, run as root without a shell; RACKWRIGHT_ENDPOINT, RACKWRIGHT_PORT and RACKWRIGHT_RELEASE are in its
    environment. When it fails, nothing is switched.
    """
    ready_hook: tuple[str, ...] = ()
    """Command that the host runs once a release is proven after a switch, or serves again, to let clients in again."""
    hook_timeout: Seconds = 60
    """Seconds that either hook may take."""
    commit_deadline: Seconds = 300
    """Seconds after the basic proof in which the control machine must approve a release by the rest of the full gate.

    Otherwise the host goes back by itself.
    """
    restart_delay: Seconds = 10
    """Seconds between a crash and the next start."""
    start_limit: int = Field(default=3, ge=1)
    """Starts that may fail before the unit gives up."""
    gate: Literal["basic", "full"] = "basic"
    """What an endpoint must prove after a switch.

    `basic`: the release, its GPUs, its name, a chat answer. `full` adds tool calls, channels, streaming, loops,
    drafts and speed, compared with the release before; a rollout asks it in full.
    """
    accept_known_bad: bool = False
    """True deploys a combination that is known not to work."""

    @field_validator("image_digest")
    @classmethod
    def _digest(cls, value: str | None) -> str | None:
        if value is not None and not DIGEST.match(value):
            raise ValueError("must be sha256: and 64 hexadecimal digits")
        return value

    @property
    def address(self) -> str:
        """Address that the endpoint is published or listens on (DECISIONS 11)."""
        if self.bind:
            return self.bind
        return "0.0.0.0" if self.network == "bridge" or self.allow_from else "127.0.0.1"

    @property
    def version(self) -> str:
        """The engine's version: stated, or else the image's tag."""
        return self.engine_version or self.image.rsplit(":", 1)[1]


class HostSettings(EndpointSettings):
    """Everything that one host is asked to be."""

    endpoint_name: str = Field(default="llm", pattern=NAME)
    """Name of the host's endpoint; its unit is `rackwright-NAME.service`."""
    endpoints: dict[Annotated[str, Field(pattern=NAME)], dict[str, Any]] = Field(default_factory=dict)
    """Several endpoints: name, and the keys in which it differs from the top-level ones."""
    foreign_units: Literal["refuse", "aside"] = "refuse"
    """What becomes of a unit or container that somebody made by hand under a name of Rackwright's.

    `refuse` stops the deploy before anything is written. `aside` stops it, keeps it in /var/lib/rackwright/aside, and
    a teardown puts it back as it was found.
    """
    hardware: Hardware = Hardware()
    docker_users: tuple[str, ...] = ()
    """Users who may use Docker without sudo. They must exist."""
    docker_source: Literal["distribution", "docker"] = "distribution"
    """Where Docker Engine comes from when the host has none."""
    docker_daemon: dict[str, Any] = Field(default_factory=dict)
    """Keys merged into /etc/docker/daemon.json; foreign keys stay."""
    container_toolkit: ContainerToolkit = ContainerToolkit()
    registry: Registry = Registry()
    hub_token: Secret | None = None
    """Hugging Face token for gated repositories."""
    proxy: Proxy = Proxy()
    control_proxy: Proxy | None = None
    """Proxies for what the control machine itself asks (`rackwright lock`); default: those of the hosts."""
    mirrors: Mirrors = Mirrors()
    private_ca: str | None = None
    """PEM file on the control machine with the site's own certificate authority, relative to the site."""
    models_dir: AbsolutePath = "/srv/models"
    encodings_dir: AbsolutePath = "/srv/encodings"
    lock_file: str = Field(default="rackwright.lock.yml", pattern=YAML_FILE)
    """Name of the lock file at the site's root.

    Another one is for hosts to which the same names of registry and hub lead to other servers, as in the lab.
    """
    rack: str | None = None
    """Failure domain of the host."""
    hold_packages: bool = True
    """Hold the packages that we install, so that unattended upgrades do not move them under a server."""
    stall_timeout: Seconds = 120
    """Seconds without a byte before a download counts as stalled."""
    stage_parallel: int = Field(default=8, ge=1)
    """Hosts that pull the image or fetch models at the same time."""
    download_rate_mib: int | None = Field(default=None, ge=1)
    """Bandwidth cap for downloads, MiB/s."""
    firewall_confirm: Seconds = 30
    """Seconds in which a new SSH connection must confirm a firewall or Docker daemon change."""
    verify_deep: bool = False
    """Hash every file of every model again, for one run: `--data verify_deep=true`."""
    adopt: bool = False
    """Restart also for what differs in the unit or its scripts alone, for one run: `rackwright rollout --adopt`."""
    check_keys: bool = False
    """Try the registry's key even when nothing must be pulled, for one run: `--data check_keys=true`."""
    max_unavailable: Amount = "1"
    """Serving hosts of a group, and of a rack, that may be down at the same time: a number, or a part as `10%`."""
    wave: Amount = "25%"
    """Hosts a wave of a rollout, after the canaries: a number, or a part as `25%`."""
    bake: int = Field(default=300, ge=0)
    """Seconds for which a rollout watches a wave before the next one."""
    hooks: Hooks = Hooks()
    """Commands of the site around a run; hosts that share one run it once."""
    canary: bool = False
    """True: this host goes first among those of its shape, instead of the first one in inventory order."""
    error_budget: Amount = "0"
    """Hosts with a fault of their own that may be left aside while the others go on: a number, or a part as `5%`."""
    keep_releases: int = Field(default=2, ge=1)
    """Proven releases that stay on the host."""
    _site: Path = PrivateAttr(default=NOWHERE)

    def model_post_init(self, context: Any) -> None:
        """Keep the site's folder, which the loader hands over; it is no key of the settings."""
        if context:
            self._site = context[SITE]

    @property
    def site(self) -> Path:
        """The site's folder: its templates, hooks and relative file names are looked for there."""
        return self._site

    @model_validator(mode="after")
    def _has_a_model(self) -> HostSettings:
        for name, endpoint in self.all_endpoints.items():
            if endpoint.model is None:
                raise ValueError(f"endpoint {name} has no model: set `model:` in group_vars or host_vars")
        return self

    @property
    def all_endpoints(self) -> dict[str, EndpointSettings]:
        """Endpoints by name: the listed ones, each over the top-level keys, or the top-level one if it has a model."""
        base = {key: getattr(self, key) for key in EndpointSettings.model_fields if key in self.model_fields_set}
        own = self.endpoints or ({self.endpoint_name: {}} if self.model else {})
        self._refuse_reserved(own)
        asked = {name: EndpointSettings.model_validate(overlay(base, keys)) for name, keys in own.items()}
        found = [pair for name, endpoint in asked.items() for pair in replicas(name, endpoint, self._replicas_at(name))]
        names = [name for name, _ in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            text = f"two endpoints are named {twice}: `replicas` numbers its own, so rename the other"
            raise MisfitError(text, "endpoints", twice)
        return dict(found)

    def _refuse_reserved(self, names: Iterable[str]) -> None:
        for name in names:
            if taken := reserved(name):
                text = f"the name {name} is Rackwright's own ({taken}): choose another"
                raise MisfitError(text, *(("endpoints", name) if self.endpoints else ("endpoint_name",)))

    def _replicas_at(self, name: str) -> tuple[str, ...]:
        """Where an endpoint's `replicas` stands: its own key, or the top-level one."""
        return ("endpoints", name, "replicas") if "replicas" in self.endpoints.get(name, {}) else ("replicas",)


def replicas(name: str, endpoint: EndpointSettings, at: tuple[str, ...]) -> list[tuple[str, EndpointSettings]]:
    """An endpoint as it is, or its `replicas`: one GPU each, numbered names, ports from its own on.

    at: where `replicas` stands, for the error. Raises MisfitError when `gpus` lists fewer GPUs, or when the ports end.
    """
    count = endpoint.replicas
    if count == 1:
        return [(name, endpoint)]
    gpus = tuple(range(count)) if endpoint.gpus == "all" else endpoint.gpus
    if len(gpus) < count:
        text = (
            f"is {count}, and endpoint {name} has {len(gpus)} in its `gpus:`, one for each: list {count}, or write all"
        )
        raise MisfitError(text, *at)
    if endpoint.port + count - 1 > 65535:
        text = f"is {count}, and endpoint {name} has too few ports from {endpoint.port} on: lower its `port:`"
        raise MisfitError(text, *at)
    return [
        (f"{name}-{i}", endpoint.model_copy(update={"replicas": 1, "port": endpoint.port + i, "gpus": (gpus[i],)}))
        for i in range(count)
    ]


def overlay(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`own` over `base` key by key; `engine` alone is merged deep (DECISIONS 37)."""
    merged = {**base, **own}
    if "engine" in base and "engine" in own:
        merged["engine"] = deep_merge(base["engine"], own["engine"])
    return merged


def deep_merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`own` over `base`, mappings merged key by key, everything else replaced."""
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = deep_merge(merged[key], value) if both else value
    return merged
