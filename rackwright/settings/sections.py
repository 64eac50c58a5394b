"""The sections of the settings, one a concern, and the kinds of values that they are made of."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rackwright.addresses import is_loopback
from rackwright.masks import keep_hidden
from rackwright.paths import IN_CONTAINER
from rackwright.settings.allow_from import Cidr
from rackwright.settings.secret import Secret, looks_secret

LOCAL = "local"
"""What stands for the commit of a model that is not fetched."""
COMMIT = re.compile(r"^[0-9a-f]{40}\Z")
DIGEST = re.compile(r"^sha256:[0-9a-f]{64}\Z")
NAME = r"^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$"
"""An endpoint's name. A dot parts Rackwright's names on a host, so an endpoint's name has none."""
FOLDER = r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"
MODEL_FOLDER = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
"""Hubs write names with capitals, and so do the folders that guides fill by hand."""
ABSOLUTE = r"^/[A-Za-z0-9._/@+-]*$"
IMAGE = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
REPOSITORY = r"^[\w.-]+/[\w.-]+$"
CACHE = r"^~?/[A-Za-z0-9._/@+*-]*$"
SHA256 = r"^[0-9a-f]{64}$"
BLOB = r"^[0-9a-f]{40}$"
"""git's hash of a file's bytes, which the hub publishes of small files."""
YAML_FILE = r"^[\w.-]+\.ya?ml$"
AMOUNT = r"^(\d+|100%|\d{1,2}%)$"
SOME = r"^([1-9]\d*|100%|[1-9]\d?%)$"
REGISTRY = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$"
HTTPS = r"^https://[^\s\"'`<>\\\x00-\x1f\x7f-\x9f]+$"
URL = r"^https?://[^\s\"'`<>\\\x00-\x1f\x7f-\x9f]+$"
DIRECT = r"^[A-Za-z0-9.*:/_-]+$"
"""What is reached without a proxy; it is a word of apt's configuration and of dockerd's unit."""
DROP_IN = r"^(/[A-Za-z0-9@._:/-]+/)?[A-Za-z0-9@._:-]+\.conf$"
"""A drop-in of a unit, as systemd takes its name."""
DEBIAN = r"^[0-9][A-Za-z0-9.+:~-]*$"
"""A version of dpkg's."""
MINISIGN = r"^RW[A-Za-z0-9+/]{54}$"
"""A public key of minisign's."""
FINGERPRINT = r"^[0-9A-F]{40}$"
CAPABILITY = r"^[A-Z][A-Z_]*$"
SHM = r"^[1-9]\d{0,6}[mg]$"
USER = r"^\d{1,10}(:\d{1,10})?$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""A name of the environment."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no value holds: it goes into units, configuration files, command lines and messages."""
ZONE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""A network interface's name, as the kernel takes it."""
INTERFACE = r"^[A-Za-z0-9._-]{1,15}$"
"""The same, as a pattern of the schema."""
SYSTEM = frozenset(["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "root", "run", "sbin", "sys", "usr"])
"""Folders at the root that belong to the system, on a host and in a container."""

SHARED = ("/var", "/var/lib", "/home", "/var/lib/rackwright")
"""Folders of a host in which others have theirs."""
OTHERS = ("/var/lib/docker/", "/var/lib/containerd/")
"""Folders of a host that are another program's, with all that is in them."""

SECTIONS = (
    "hardware",
    "paths",
    "docker",
    "driver",
    "firewall",
    "registry",
    "encodings",
    "models",
    "downloads",
    "proxy",
    "control_proxy",
    "mirrors",
    "bundle",
    "releases",
    "rollout",
    "watch",
    "notify",
    "word",
    "gateway",
    "gate",
)
"""Keys whose values are merged key by key when several files name them."""


def _plain_path(value: str) -> str:
    if {".", ".."} & set(value.split("/")) or "//" in value:
        raise ValueError("must not hold . or .. or //")
    return value


def _own_folder(value: str) -> str:
    if (first := value.strip("/").partition("/")[0]) in SYSTEM or not first:
        raise ValueError("must not be / or a folder of the system")
    return value


def _free_on_host(value: str) -> str:
    if value.rstrip("/") in SHARED or f"{value}/".startswith(OTHERS):
        raise ValueError("must not be /var, /home or a folder of Docker's or Rackwright's: choose one, as /srv/models")
    return value


def _free_mount(value: str) -> str:
    for taken in IN_CONTAINER:
        if f"{value}/".startswith(f"{taken}/") or taken.startswith(f"{value}/"):
            raise ValueError(f"{value} is taken in the container, by {taken}: choose another, as /config/models/NAME")
    return value


def _one_line(value: str) -> str:
    if CONTROL.search(value):
        raise ValueError("must hold no control character")
    return value


def _digest(value: str) -> str:
    if not DIGEST.match(value):
        raise ValueError("must be sha256: and 64 hexadecimal digits")
    return value


def _one_secret(value: Secret) -> Secret:
    if CONTROL.search(value.unmask()) or value.unmask() != value.unmask().strip():
        raise ValueError("must be one line without blanks around it")
    return value


def _token(value: Secret) -> Secret:
    if not re.fullmatch(r"[!-~]*", value.unmask()):
        raise ValueError("must be one word of ASCII letters, digits and marks")
    return value


OneLine = Annotated[Secret, AfterValidator(_one_secret)]
Token = Annotated[Secret, AfterValidator(_token)]
"""What a header carries."""
Digest = Annotated[str, AfterValidator(_digest)]
AbsolutePath = Annotated[str, Field(pattern=ABSOLUTE), AfterValidator(_plain_path)]
OwnFolder = Annotated[AbsolutePath, AfterValidator(_own_folder)]
"""A folder without files of the system."""
HostFolder = Annotated[OwnFolder, AfterValidator(_free_on_host)]
"""The same on a host, where Docker and Rackwright have folders too."""
Line = Annotated[str, AfterValidator(_one_line)]
"""Plain text."""


def _without_login(value: str) -> str:
    if "@" in value.partition("://")[2].partition("/")[0] or looks_secret(value):
        raise ValueError(
            "must hold no user, password or token: it would show in `ps` and in messages; "
            "let the server know the hosts by their address"
        )
    if not _names_a_server(value):
        raise ValueError("must be https://SERVER/FOLDER, with a number for the port where it has one")
    return value


def _names_a_server(url: str) -> bool:
    try:
        found = urlsplit(url)
        return bool(found.hostname) and found.port != 0
    except ValueError:
        return False


def _proxy(value: str) -> str:
    """Return an address that every client reads alike; its password is hidden wherever this process shows it."""
    try:
        found = urlsplit(value)
        if not found.hostname or found.port == 0 or "@" in (found.password or "") + (found.username or ""):
            raise ValueError("no address of a server")
    except ValueError:
        text = "must be http://SERVER:PORT; write :/?#[]@ in a user or a password as %3A and so on"
        raise ValueError(text) from None
    for password in (found.password, unquote(found.password or "")):
        keep_hidden(password or "")
    return value


Url = Annotated[str, Field(pattern=URL), AfterValidator(_without_login)]
HttpsUrl = Annotated[str, Field(pattern=HTTPS), AfterValidator(_without_login)]
ProxyUrl = Annotated[str, Field(pattern=URL), AfterValidator(_proxy)]
Port = Annotated[int, Field(ge=1, le=65535)]
MOST_GPUS = 128
"""GPUs of one host at most."""
WEEK = 7 * 24 * 3600
Seconds = Annotated[int, Field(ge=1, le=WEEK)]
Pause = Annotated[int, Field(ge=0, le=WEEK)]
"""Seconds, or none."""


def _amount(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Amount = Annotated[str, BeforeValidator(_amount), Field(pattern=AMOUNT)]
"""A number of hosts, or a part of them in percent."""
SomeOf = Annotated[str, BeforeValidator(_amount), Field(pattern=SOME)]
"""The same, and at least one host."""


def _bind_address(value: str) -> str:
    _, percent, zone = value.partition("%")
    try:
        ipaddress.ip_address(value)
        if percent and not ZONE.fullmatch(zone):
            raise ValueError("the zone is not an interface")
    except ValueError:
        raise ValueError("must be an address of the host, as 127.0.0.1, 0.0.0.0 for IPv4, or :: for IPv6") from None
    return value


def _gpus(value: object) -> object:
    """Two kinds of value would make two messages of one mistake."""
    numbers = isinstance(value, list | tuple) and all(type(gpu) is int and 0 <= gpu < MOST_GPUS for gpu in value)
    if value != "all" and not (numbers and value):
        raise ValueError("must be all, or a list of GPU numbers such as [0, 1]")
    return value


Address = Annotated[str, AfterValidator(_bind_address)]
Gpu = Annotated[int, Field(ge=0, lt=MOST_GPUS)]
Gpus = Annotated[Literal["all"] | tuple[Gpu, ...], BeforeValidator(_gpus)]
"""GPUs by index, or all of them."""


def _hosts(value: object) -> object:
    """Two kinds of value would make two messages of one mistake."""
    names = isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(name, str) for name in value)
    if not (type(value) is int and 1 <= value <= MOST_HOSTS) and not names:
        raise ValueError(f"must be a number of hosts, or a list of their names such as [a, b]; {MOST_HOSTS} at most")
    if isinstance(value, list | tuple) and len(set(value)) < len(value):
        raise ValueError("names a host twice")
    return value


def _fabric_address(value: str) -> str:
    try:
        found = ipaddress.IPv4Address(value)
    except ValueError:
        raise ValueError("must be an IPv4 address of this host, as 10.0.0.1; others are not supported yet") from None
    if is_loopback(value) or found.is_unspecified:
        raise ValueError("must be an address that the other hosts reach, as 10.0.0.1")
    return value


MOST_HOSTS = 64
"""Hosts of one endpoint at most."""
HostsOf = Annotated[Annotated[int, Field(ge=1, le=MOST_HOSTS)] | tuple[Line, ...], BeforeValidator(_hosts)]
"""How many hosts serve an endpoint together, or which."""
FabricAddress = Annotated[str, AfterValidator(_fabric_address)]


def _folder(value: str) -> str:
    if value.endswith(".partial"):
        raise ValueError("must not end in .partial: that is where the download of another folder lies")
    return value


class Frozen(BaseModel):
    """A section of the settings: unknown keys are refused, values never change."""

    # Built where it is used alone: most sections are only ever looked into as parts of a host's settings. A default
    # is made without a check, which would build its section once more, at every start.
    # An error of pydantic's own would quote what was written, secrets among it.
    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), defer_build=True, hide_input_in_errors=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML's `true` is 1 to Python; in a file it is a mistake."""
        field = cls.model_fields.get(info.field_name or "")
        if isinstance(value, bool) and field and int in (field.annotation, *get_args(field.annotation)):
            raise ValueError("must be a whole number")
        return value


class FilePin(Frozen):
    """One file of a model as the lock file has it: SHA-256, or git's blob hash, whichever is known."""

    path: Line
    """Name of the file in the repository."""
    size: int = Field(ge=0, lt=1 << 63)
    """Bytes"""
    sha256: str | None = Field(default=None, pattern=SHA256)
    """SHA-256, in hexadecimal digits."""
    blob: str | None = Field(default=None, pattern=BLOB)
    """git's blob hash, which the hub publishes of small files."""


class ModelSource(Frozen):
    """A model repository on the hub, and the folders of its files on the host and in the container."""

    repository: str = Field(pattern=REPOSITORY)
    """Hub repository, for example `openai/gpt-oss-120b`."""
    revision: Line = "main"
    """Branch, tag or commit. The lock file, or else the first download, pins it to a commit."""
    directory: Annotated[str, Field(pattern=MODEL_FOLDER), AfterValidator(_folder)] | None = None
    """Folder below `models.folder` on the host.

    Default: the repository's name with `/` as `--`, and the commit's first 12 characters.
    """
    path: AbsolutePath | None = None
    """Folder on the host where its files lie already, for example on a shared file system: nothing is fetched."""
    mount: Annotated[OwnFolder, AfterValidator(_free_mount)]
    """Folder in the container. Its last part is the name that /v1/models answers."""
    include: tuple[Line, ...] = ()
    """File patterns to fetch; empty means all."""
    exclude: tuple[Line, ...] = ()
    """File patterns never to fetch, for example `original/*`.

    A plain download of gpt-oss fetches the weights three times.
    """

    files: tuple[FilePin, ...] = ()
    """Size and hash of each file, as the lock file pins them; other bytes are refused."""

    @model_validator(mode="after")
    def _one_place(self) -> ModelSource:
        if self.path and self.directory:
            raise ValueError("`path` says that nothing is fetched, and `directory` where to: leave one of them out")
        return self

    @property
    def pins(self) -> dict[str, FilePin]:
        """The pinned files by their names."""
        return {pin.path: pin for pin in self.files}

    @property
    def commit(self) -> str | None:
        """The commit that the settings say; `local` for a folder of the host's own."""
        if self.path:
            return LOCAL
        return self.revision if COMMIT.match(self.revision) else None


System = Literal["debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04"]
"""Operating systems by os-release's ID and VERSION_ID."""


class Hardware(Frozen):
    """Requirements of the host: checked by preflight, never changed."""

    machine: Line = "any machine"
    """Name of the machine type in messages, for example `DGX B200`."""
    architecture: Literal["x86_64", "aarch64"] | None = None
    """Processor architecture, as `uname -m` says it."""
    system: System | None = None
    """Operating system: `rackwright bundle` brings the packages for it."""
    gpu_models: tuple[Line, ...] = ()
    """Accepted GPU product names, as parts of nvidia-smi's product name, for example `B200`."""
    gpu_count: int | None = Field(default=None, ge=1, le=MOST_GPUS)
    """GPUs that the host must have at least."""
    compute_capability: tuple[Line, ...] = ()
    """Accepted compute capabilities, for example `10.0`."""
    driver_minimum: Line | None = None
    """Oldest driver for the image, for example `575`."""
    fabric_manager: bool = False
    """True where the host itself runs nvidia-fabricmanager (HGX and DGX B200); on NVL72 the switch trays do."""
    unified_memory: bool = False
    """True on GB10: nvidia-smi reports memory as N/A, so MemAvailable counts."""
    memory_minimum_gib: int | None = Field(default=None, ge=1, le=1_000_000)
    """Host memory needed at least."""
    rack: Line | None = None
    """Failure domain of the host: `rollout.max_unavailable` counts within it, too."""


class Diagnosis(Frozen):
    """Diagnosis of GPUs by NVIDIA's DCGM, on hosts where dcgmi is installed."""

    before_serving: int = Field(default=1, ge=0, le=3)
    """Level of `dcgmi diag` on a host that serves nothing, once a boot, before it serves; 0: none.

    Level 1 takes some seconds, 2 about two minutes, 3 about fifteen. GPUs that are not for data centres are tested at
    level 1 alone. A GPU that fails stops the host, and puts it in quarantine.
    """
    rebuild: int = Field(default=2, ge=0, le=3)
    """The same for a host that `rackwright rebuild` brings back."""


class Paths(Frozen):
    """Files of the site, on the control machine."""

    private_ca: Line | None = None
    """PEM file with the site's own certificate authority, relative to the site."""
    lock_file: str = Field(default="rackwright.lock.yml", pattern=YAML_FILE)
    """Name of the lock file at the site's root.

    Another one is for hosts to which the same names of registry and hub lead to other servers, as in the lab.
    """
    presets_file: str = Field(default="rackwright.presets.yml", pattern=YAML_FILE)
    """Name of the file at the site's root in which `rackwright bench` keeps the settings that it has proven.

    Another one is for hosts whose figures say nothing of the others, as in the lab.
    """


class Docker(Frozen):
    """Docker Engine, its configuration, its users, and the NVIDIA container toolkit."""

    users: tuple[Line, ...] = ()
    """Users who may use Docker without sudo. They must exist."""
    source: Literal["distribution", "docker"] = "distribution"
    """Where Docker Engine comes from when the host has none."""
    daemon: dict[str, Any] = Field(default_factory=dict)
    """Keys merged into /etc/docker/daemon.json; foreign keys stay."""
    toolkit_version: str | None = Field(default=None, pattern=DEBIAN)
    """Debian package version of the container toolkit, for example `1.18.0-1`.

    None: the newest of NVIDIA's apt repository where the host has none, then held.
    """
    hold_packages: bool = True
    """Hold the packages that we install, so that unattended upgrades do not move them under a server."""
    hold_existing: bool = False
    """Hold a Docker Engine that was there before, and the NVIDIA driver, too."""


class Firewall(Frozen):
    """How a change of the rules, or of dockerd's configuration, is made; who may reach a port is `allow_from`."""

    confirm_timeout: Seconds = 30
    """Seconds in which a new SSH connection must confirm the change; without it, the host reverts it on its own."""


class Registry(Frozen):
    """The login for the image's registry."""

    host: str = Field(default="nvcr.io", pattern=REGISTRY)
    """Name of the registry, with its port where it has one."""
    user: Line = "$oauthtoken"
    """NGC's user is the literal text `$oauthtoken`."""
    key: OneLine | None = None
    """API key; without it the pull is tried without a login first."""
    keep: bool = True
    """True: the login stays for root only (0600). False: it exists only while an image is pulled."""
    check_key: bool = False
    """Try the key even when nothing must be pulled, for one run: `--data registry.check_key=true`."""


class Encodings(Frozen):
    """The tiktoken encodings that gpt-oss needs to chat (`harmony`)."""

    folder: HostFolder = "/srv/encodings"
    """Their folder on the host."""


class Models(Frozen):
    """How models come to the hosts; which ones is each endpoint's `model` and `draft`."""

    folder: HostFolder = "/srv/models"
    """Folder of all models on the host."""
    hub_token: Token | None = None
    """Hugging Face token for gated repositories."""
    hub_caches: tuple[Annotated[str, Field(pattern=CACHE)], ...] = ("~/.cache/huggingface/hub",)
    """Hugging Face caches on the host, `~` for any user's home: files of the wanted commit are copied and verified."""
    verify_deep: bool = False
    """Hash every file of every model again, for one run: `--data models.verify_deep=true`."""


class HandOn(Frozen):
    """One host fetches a model from the hub, and each hands it on to the next while it receives."""

    interface: Annotated[str, Field(pattern=INTERFACE)]
    """Network interface on whose address hosts hand models on, only while one takes them, and only to each other."""
    port: Annotated[int, Field(ge=1024, le=65000)] = 7461
    """Port for the first model of a host; each further one has the next."""
    seed: Line | None = None
    """Host of the inventory that fetches from the hub; default: the first that lacks the model."""
    hub: bool = False
    """True lets the others ask the hub, too, where no host hands a file on to them."""
    neighbours: bool = True
    """False: a run of some hosts (`--limit`, `rebuild`) takes models and images from those hosts alone."""
    tls: bool = False
    """True encrypts what is handed on, under a key of the run; otherwise weights travel in clear between hosts."""
    images: bool = False
    """True hands images on as well, by the list of their files in the lock file: the registry is asked for one copy."""
    keep_images: bool = False
    """True keeps an image's files (its compressed size) on the host, to hand them on where the registry is cut off."""


class Downloads(Frozen):
    """Settings of all downloads: images, models and encodings."""

    parallel: int = Field(default=8, ge=1, le=1000)
    """Hosts that pull the image or ask the hub for models at the same time; takers of `hand_on` are not counted."""
    stall_timeout: Seconds = 120
    """Seconds without a byte before a download counts as stalled."""
    rate_mib: int | None = Field(default=None, ge=1, le=1_000_000)
    """Bandwidth cap a host for model downloads, MiB/s."""
    hand_on: HandOn | None = None
    """Hosts take models from each other, and the hub is asked once; default: each asks the hub itself."""


class Proxy(Frozen):
    """Proxies for apt, Docker, downloads and preflight."""

    http: ProxyUrl | None = None
    """Address of the proxy for http, as `http://proxy.example.com:3128`."""
    https: ProxyUrl | None = None
    """Address of the proxy for https; default: the one for http."""
    no_proxy: tuple[Annotated[str, Field(pattern=DIRECT)], ...] = ("localhost", "127.0.0.1", "::1")
    """Names, suffixes, addresses and networks that are reached directly."""


Fingerprint = Annotated[str, Field(pattern=FINGERPRINT)]


class Mirrors(Frozen):
    """Where things come from when their public addresses are not to be used."""

    encodings: Url = "https://openaipublic.blob.core.windows.net/encodings"
    """Where the tiktoken encodings lie."""
    hub: Url = "https://huggingface.co"
    """The model hub, or what speaks its API."""
    container_toolkit: HttpsUrl = "https://nvidia.github.io/libnvidia-container"
    """NVIDIA's apt repository."""
    container_toolkit_keys: tuple[Fingerprint, ...] = ("C95B321B61E88C1809C4F759DDCAE044F796ECB0",)
    """Fingerprints of the keys that may sign it: a key file with any other one is not taken."""
    docker: HttpsUrl = "https://download.docker.com"
    """Docker's own apt repository, for `docker.source: docker`."""
    docker_keys: tuple[Fingerprint, ...] = ("9DC858229FC7DD38854AE2D88D81803C0EBFCD88",)
    """The same for Docker's."""
    driver: HttpsUrl = "https://developer.download.nvidia.com/compute/cuda/repos"
    """NVIDIA's apt repositories with its driver, a folder for each system, for `driver.source: nvidia`."""
    driver_keys: tuple[Fingerprint, ...] = ("EB693B3035CD5710E231E123A4B469963BF863CC",)
    """The same for these."""


class Bundle(Frozen):
    """A folder by `rackwright bundle`, from which the hosts of a closed network get everything."""

    folder: Line | None = None
    """The bundle's folder, relative to the site; with it nothing is fetched from mirrors, registry or hub."""
    public_key: str | None = Field(default=None, pattern=MINISIGN)
    """minisign's public key, its last line: a bundle without a signature of it is refused."""
    port: int = Field(default=7460, ge=1024, le=65535)
    """Port of 127.0.0.1 on each host that leads to the bundle, through the run's own SSH connection."""


def words(value: object) -> object:
    """Return a single word as a command of one word."""
    return (value,) if isinstance(value, str) else value


class Hook(Frozen):
    """A command of the site that a rollout runs on the control machine, with the run as JSON on standard input."""

    command: Annotated[tuple[Line, ...], BeforeValidator(words), Field(min_length=1)]
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


class Rollout(Frozen):
    """How a change goes over a group of hosts."""

    canary: bool = False
    """True: this host goes first among those of its shape, instead of the first one in inventory order."""
    wave: SomeOf = "25%"
    """Hosts a wave, after the canaries: a number, or a part as `25%`."""
    bake: Pause = 300
    """Seconds for which a wave is watched before the next one."""
    max_unavailable: SomeOf = "1"
    """Serving hosts of a group, and of a rack, that may be down at the same time: a number, or a part as `10%`."""
    error_budget: Amount = "0"
    """Hosts with a fault of their own that a run may skip while the others continue: a number, or a part as `5%`."""
    adopt: bool = False
    """Restart also for what differs in the unit or its scripts alone, for one run: `rackwright rollout --adopt`."""
    hooks: Hooks = Hooks.model_construct()
    """Commands of the site around a run; hosts that share one run it once."""


class Word(Frozen):
    """The port at which a host says whether its endpoints may get requests, where deploy.py calls `watch()`."""

    port: Port = 8010
    """TCP port of the word."""
    allow_from: tuple[Cidr, ...] = ()
    """Networks that may ask, for example of the gateways; hosts that serve the same model may ask always."""


class Watch(Frozen):
    """A host's watch of its endpoints between two deploys, where deploy.py calls `watch()`."""

    act: Literal["tell", "restart", "off"] = "tell"
    """The act on an endpoint that hangs or has died.

    `tell` reports it and changes nothing; `restart` restarts it once, with proof; `off` does not look.
    """
    after: Seconds | None = None
    """Seconds without an engine step, and without an answer to a probe, after which an endpoint counts as hung.

    Default: by engine, 120 for vLLM, 330 for SGLang and TensorRT-LLM, which have a detector of their own.
    """
    textfile: AbsolutePath | None = None
    """Folder of node_exporter's textfile collector, where the host writes its state as metrics; it must exist.

    Default: /var/lib/prometheus/node-exporter, the folder of Debian's package, on hosts that have it.
    """


class Releases(Frozen):
    """Releases that stay on a host, and the treatment of what was there before."""

    keep: int = Field(default=2, ge=1, le=100)
    """Proven releases that stay on the host."""
    foreign_units: Literal["refuse", "aside"] = "refuse"
    """How a deploy treats a unit or container made by hand under one of Rackwright's names.

    `refuse` stops the deploy before anything is written. `aside` stops it, keeps it in /var/lib/rackwright/aside, and
    a teardown puts it back as it was found.
    """
    drop_ins: tuple[Annotated[str, Field(pattern=DROP_IN)], ...] = ()
    """Drop-ins of Rackwright's units that are meant, by file name (`override.conf`) or by path.

    All others are drift, and one that changes what is started stops a deploy. A deploy records the SHA-256 of those
    in this list, so that a later edit is drift, too.
    """


class Container(Frozen):
    """Rights of an endpoint's container; its engine's further needs are data, and are granted."""

    capabilities: Literal["default", "none"] = "default"
    """`default`: Docker's own less NET_RAW, MKNOD, AUDIT_WRITE and SETFCAP, with what the engine's backend needs.

    `none` gives none but `add_capabilities`.
    """
    add_capabilities: tuple[Annotated[str, Field(pattern=CAPABILITY)], ...] = ()
    """More capabilities, for example `SYS_PTRACE`."""
    pids_limit: int | None = Field(default=None, ge=1024, le=4194304)
    """Processes and threads that it may have together; default: 32768."""
    shm_size: str | None = Field(default=None, pattern=SHM)
    """Size of a /dev/shm of its own, for example `16g`, instead of the host's (`--ipc=host`)."""
    user: str | None = Field(default=None, pattern=USER)
    """User and group by number, for example `1000:1000`, instead of the image's; models must be readable for it."""
    read_only: bool = False
    """True: nothing of the image can be written to; /scratch and /tmp remain."""


WINDOWS = 21
"""Windows in which a canary is looked at beside its peers: one in which both warm up, and those that count."""
BESIDE_LEAST = 2 * WINDOWS
"""Seconds of `gate.beside_peers` at least: a look at all peers takes most of a second."""


class Gate(Frozen):
    """The proof that an endpoint must give after a switch."""

    level: Literal["basic", "full"] = "basic"
    """`basic`: the release, its GPUs, its name, a chat answer. `full` adds tool calls, channels, streaming, loops,
    drafts and speed, compared with the release before; a rollout asks it in full.
    """
    plain_text: bool = False
    """True asks `/v1/completions` in a full gate, too: NVIDIA's question on a train, of its guide for DGX Spark.

    A text that is missing, endless or nonsense is refused; one without the right distance is a warning.
    """
    commit_deadline: Seconds = 300
    """Seconds after the basic proof in which the control machine must approve a release by the rest of the full gate.

    Otherwise the host rolls back automatically.
    """
    questions: Line | None = None
    """JSONL file in the site with questions that the first host of each shape is asked in a full gate, or `shipped`
    for Rackwright's own; a release that answers worse than the one before is rolled back. Default: none.
    """
    worse_by: Annotated[float, Field(ge=0, le=100)] = 2
    """Points of a hundred by which answers may get worse: refused only when even the better end of the interval is
    beyond it.
    """
    questions_limit: Seconds = 120
    """Seconds for the answer to one question; it must leave 60 s of `commit_deadline`."""
    slower_by: Annotated[float, Field(gt=0, lt=100)] | None = None
    """Per cent by which the first host of each shape may be slower than its peers, to the first token or in tokens a
    second of a stream, while it serves clients beside them before its commit. Default: no such look.
    """
    beside_peers: Annotated[int, Field(ge=BESIDE_LEAST, le=86400)] = 300
    """Seconds for which it serves beside them; a 21st part of it must leave 60 s of `commit_deadline`."""

    @model_validator(mode="after")
    def _answers_in_time(self) -> Gate:
        if self.questions and self.questions_limit + HOLDING > self.commit_deadline:
            raise ValueError(
                f"`questions_limit` must leave {HOLDING} s of `commit_deadline`, which is {self.commit_deadline} s: "
                "the waiting host hears nothing while an answer is awaited"
            )
        if self.slower_by is not None and self.beside_peers // WINDOWS + HOLDING > self.commit_deadline:
            raise ValueError(
                f"`beside_peers` must leave {HOLDING} s of `commit_deadline`, which is {self.commit_deadline} s, after "
                f"each {WINDOWS}st part of it: the waiting host hears nothing in between"
            )
        return self


HOLDING = 60
"""Seconds beside one answer within which the waiting host is asked again to hold."""
