"""Typed settings: what `group_vars`, `host_vars` and `--data` may say, one frozen object a host.

Every key below is a key of the YAML files. Two classes: what an endpoint is (`EndpointSettings`) and what a
host is (`HostSettings`, which takes the endpoint's keys at top level too, as the defaults of its endpoints).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from rackwright.addresses import is_loopback
from rackwright.paths import reserved
from rackwright.settings.allow_from import AllowFrom, allowed_networks
from rackwright.settings.backend import Backend, GatewayHost
from rackwright.settings.driver import Driver
from rackwright.settings.gateway import Gateway
from rackwright.settings.group import Group
from rackwright.settings.image_file import ImageFile
from rackwright.settings.misfit import MisfitError
from rackwright.settings.notify import Notify
from rackwright.settings.peer_host import PeerHost
from rackwright.settings.secret import Secret
from rackwright.settings.sections import (
    IMAGE,
    MOST_GPUS,
    NAME,
    VARIABLE,
    YAML_FILE,
    Address,
    Bundle,
    Container,
    Diagnosis,
    Digest,
    Docker,
    Downloads,
    Encodings,
    FabricAddress,
    Firewall,
    Frozen,
    Gate,
    Gpus,
    Hardware,
    HostsOf,
    Line,
    Mirrors,
    Models,
    ModelSource,
    Paths,
    Pause,
    Port,
    Proxy,
    Registry,
    Releases,
    Rollout,
    Seconds,
    Watch,
    Word,
)

SITE = "site"
"""In the context of a validation: the site's folder."""
NOWHERE = Path("/")
"""The folder of settings that come from no site: a host of an inventory that does not call build()."""


BEHIND_GATEWAY = 600
"""Seconds that a drain waits for open requests with a gateway in the inventory, unless the settings say it."""
API_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~+/=-]{15,511}\Z")


class EndpointSettings(Frozen):
    """One LLM endpoint: a container that serves one model on one port."""

    engine_kind: Literal["tensorrt-llm", "vllm", "sglang"] = "tensorrt-llm"
    """The server that runs in the image."""
    image: str = Field(default="nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", pattern=IMAGE)
    """Image with its tag."""
    image_digest: Digest | None = None
    """`sha256:...` to pull by; none: the lock file's, or else the one seen at the first pull."""
    engine_version: Line | None = None
    """Version for the option checks; default: the image's tag."""
    model: ModelSource | None = None
    """The model that is served."""
    draft: ModelSource | None = None
    """Draft model for speculative decoding."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's own YAML, merged deep over all files; checked for the image's version."""
    engine_file: str = Field(default="engine.yaml", pattern=YAML_FILE)
    """Name of the YAML file in the release, for example `eagle.yaml`."""
    environment: dict[Annotated[str, Field(pattern=VARIABLE)], Line] = Field(default_factory=dict)
    """Environment of the container. Secrets are refused: they would show in `docker inspect` and in the unit."""
    arguments: tuple[Line, ...] = ()
    """More words for the server's command line. Secrets are refused: they would show in `ps`."""
    api_key: Secret | None = None
    """Key that clients must send as `Authorization: Bearer KEY`; on the host it is in a file of root's (0600)."""
    sizes_on_command_line: bool = False
    """True for TensorRT-LLM 1.1.0rc0, where the command line could override the YAML's three sizes."""
    port: Port = 8000
    """Port of the endpoint on the host."""
    network: Literal["bridge", "host"] = "bridge"
    """`bridge` publishes the port; `host` shares the host's network."""
    bind: Address | None = None
    """Address to publish or listen on; default 0.0.0.0 for bridge and 127.0.0.1 for host.

    `0.0.0.0` is IPv4 alone; `::` is both with `network: host`, and IPv6 alone on Docker's bridge.
    """
    allow_from: AllowFrom = None
    """Networks that may reach the port: a list of them, `private` (no address of the internet), or `any`.

    Without it the port is closed to all but private networks. A host-network endpoint listens on 127.0.0.1 until `bind`
    or this key is written.
    """
    gpus: Gpus = "all"
    """GPUs by index, or all of them."""
    replicas: int = Field(default=1, ge=1, le=MOST_GPUS)
    """N makes N endpoints of one GPU each: NAME-0 to NAME-(N-1), on this port and the next ones."""
    hosts: HostsOf = 1
    """Hosts that serve one model together: a number, which takes neighbours in the inventory, or their names.

    Ranks follow the inventory; the first is the head, which answers. Wants `network: host`. Data parallel and
    disaggregated serving over several hosts are not supported yet.
    """
    group_port: Annotated[int, Field(ge=1, le=65534)] = 29500
    """Port at which the members of a group meet; the next one carries their lifelines.

    vLLM and SGLang meet at the head. TensorRT-LLM's mpirun comes from the head, by SSH: each other member's own sshd.
    """
    group_grace: Seconds = 15
    """Seconds for which a member's lifeline may be silent before the head asks for a token, and then gives it up."""
    group_transport: Literal["any", "rdma", "nvlink"] = "any"
    """The network between the members of a group: preflight looks for it, and the gate checks the chosen one.

    `rdma` is InfiniBand or RoCE, and gives the container /dev/infiniband; `nvlink` is NVLink between hosts (NVL72, by
    IMEX); `any` leaves it to NCCL, which takes plain TCP when it finds nothing better, and does not say so.
    """
    harmony: bool = True
    """True when chat needs the tiktoken encodings (gpt-oss)."""
    load_timeout: Seconds = 1800
    """Seconds from start to ready before the start counts as failed."""
    stop_timeout: Seconds = 60
    """Seconds from SIGTERM to SIGKILL."""
    drain_timeout: Pause = 30
    """Seconds to wait for open requests before a stop; the default is 600 with a gateway in the inventory."""
    drain_hook: tuple[Line, ...] = ()
    """Command that the host runs before a switch, for example to take the endpoint out of a balancer.

    A list of words, run as root without a shell; RACKWRIGHT_ENDPOINT, RACKWRIGHT_PORT and RACKWRIGHT_RELEASE are in its
    environment. When it fails, nothing is switched.
    """
    ready_hook: tuple[Line, ...] = ()
    """Command that the host runs once a release is proven after a switch, or serves again, to let clients in again."""
    hook_timeout: Seconds = 60
    """Seconds that either hook may take."""
    restart_delay: Seconds = 10
    """Seconds between a crash and the next start."""
    start_limit: int = Field(default=3, ge=1, le=1000)
    """Starts that may fail before the unit gives up."""
    container: Container = Container.model_construct()
    gate: Gate = Gate.model_construct()
    accept_known_bad: bool = False
    """True deploys a combination that is known not to work, and options one letter from names that are known."""

    @field_validator("api_key")
    @classmethod
    def _key(cls, value: Secret | None) -> Secret | None:
        """Return what a Bearer header carries (RFC 6750), begun as no option is, and long enough not to be guessed."""
        if value is not None and not API_KEY.match(value.unmask()):
            raise ValueError("must be 16 to 512 letters, digits and ._~+/=-, and begin with a letter or a digit")
        return value

    @property
    def address(self) -> str:
        """Address that the endpoint is published or listens on (DECISIONS 11)."""
        if self.bind:
            return self.bind
        return "0.0.0.0" if self.network == "bridge" or self.allow_from is not None else "127.0.0.1"

    @property
    def is_local(self) -> bool:
        """True if only the host itself reaches it: any address of 127.0.0.0/8, or ::1."""
        return is_loopback(self.address)

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that may reach the port; empty: all."""
        return allowed_networks(self.allow_from)

    @property
    def is_closed_by_hand(self) -> bool:
        """True if the settings themselves ask to keep clients out."""
        return self.allow_from not in (None, "any")

    @property
    def size(self) -> int:
        """Hosts that serve it together."""
        return self.hosts if isinstance(self.hosts, int) else len(self.hosts)

    @property
    def is_open(self) -> bool:
        """True if every network that reaches the host reaches the port."""
        return not self.networks and not self.is_local

    @property
    def version(self) -> str:
        """The engine's version: stated, or else the image's tag."""
        return self.engine_version or self.image.rsplit(":", 1)[1]


def _host_network(address: str) -> str:
    return str(ipaddress.ip_network(address))


class UnlistedSectionError(AttributeError):
    """A concern reads a section of the settings that it is not handed: a mistake in its code."""


class HostSettings(EndpointSettings):
    """Everything that one host is asked to be."""

    profile: Line | None = None
    """Shipped settings for its machine and model, weaker than every file of the site: `rackwright profiles list`."""
    endpoint_name: str = Field(default="llm", pattern=NAME)
    """Name of the host's endpoint; its unit is `rackwright-NAME.service`."""
    endpoints: dict[Annotated[str, Field(pattern=NAME)], dict[str, Any]] = Field(default_factory=dict)
    """Several endpoints: name, and the keys in which it differs from the top-level ones."""
    hardware: Hardware = Hardware.model_construct()
    diagnosis: Diagnosis = Diagnosis.model_construct()
    paths: Paths = Paths.model_construct()
    docker: Docker = Docker.model_construct()
    driver: Driver = Driver.model_construct()
    firewall: Firewall = Firewall.model_construct()
    registry: Registry = Registry.model_construct()
    encodings: Encodings = Encodings.model_construct()
    models: Models = Models.model_construct()
    downloads: Downloads = Downloads.model_construct()
    proxy: Proxy = Proxy.model_construct()
    control_proxy: Proxy | None = None
    """Proxies for what the control machine itself asks (`rackwright pin`); default: those of the hosts."""
    mirrors: Mirrors = Mirrors.model_construct()
    bundle: Bundle = Bundle.model_construct()
    releases: Releases = Releases.model_construct()
    rollout: Rollout = Rollout.model_construct()
    watch: Watch = Watch.model_construct()
    notify: Notify = Notify.model_construct()
    word: Word = Word.model_construct()
    gateway: Gateway = Gateway.model_construct()
    fabric_address: FabricAddress | None = None
    """Address of this host towards the others of its endpoint; default: the one that SSH reaches it by."""
    _site: Path = PrivateAttr(default=NOWHERE)
    _group: Group | None = PrivateAttr(default=None)
    _peers: Mapping[str, tuple[PeerHost, ...]] = PrivateAttr(default_factory=dict)
    _gateways: tuple[GatewayHost, ...] = PrivateAttr(default=())
    _backends: tuple[Backend, ...] | None = PrivateAttr(default=None)
    _image_files: Mapping[str, tuple[ImageFile, ...]] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any) -> None:
        """Keep the site's folder, which the loader hands over; it is not a key of the settings."""
        if context:
            self._site = context[SITE]

    @property
    def site(self) -> Path:
        """The site's folder: its templates, hooks and relative file names are looked for there."""
        return self._site

    @property
    def group(self) -> Group | None:
        """The hosts that serve its endpoint together with it; None where the endpoint is this host's alone."""
        return self._group

    @property
    def follows(self) -> bool:
        """True if it serves together with other hosts, and is not their head."""
        return self._group is not None and not self._group.is_head

    def in_group(self, group: Group | None) -> HostSettings:
        """Return the same settings, for a host with this place among others."""
        if group is None and self._group is None:
            return self
        found = self.model_copy()
        found._group = group
        vars(found)["judged"] = self.judged
        return found

    @property
    def peers(self) -> Mapping[str, tuple[PeerHost, ...]]:
        """By endpoint, all hosts of the inventory that serve its model, itself included, in the inventory's order.

        An endpoint whose model no other host serves is missing.
        """
        return self._peers

    def with_peers(self, peers: Mapping[str, tuple[PeerHost, ...]]) -> HostSettings:
        """Return the same settings, for a host with these peers."""
        if peers == self._peers:
            return self
        found = self.model_copy()
        found._peers = peers
        vars(found)["judged"] = self.judged
        return found

    @property
    def gateways(self) -> tuple[GatewayHost, ...]:
        """The gateways of its inventory, in the inventory's order."""
        return self._gateways

    @property
    def direct_is_closed(self) -> bool:
        """True if its endpoints' ports are to let in the gateways alone, and whom these name."""
        return any(gateway.closes_direct for gateway in self._gateways)

    @property
    def direct_clients(self) -> tuple[str, ...]:
        """The networks that reach closed ports: gateways, members of its group, monitors; empty where none are closed.

        A gateway without an address is missing.
        """
        if not self.direct_is_closed:
            return ()
        gateways = [_host_network(one.address) for one in self._gateways if one.address]
        members = [_host_network(member.address) for member in self._group.members] if self._group else []
        monitors = [network for one in self._gateways for network in one.monitors]
        return tuple(dict.fromkeys([*gateways, *members, *monitors]))

    @property
    def is_gateway(self) -> bool:
        """True if it is in the inventory's group `gateway`."""
        return self._backends is not None

    @property
    def is_gateway_alone(self) -> bool:
        """True if it is a gateway, and serves nothing itself."""
        return self.is_gateway and not self.all_endpoints

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The models behind this gateway; empty on other hosts."""
        return self._backends or ()

    def with_gateways(
        self, gateways: tuple[GatewayHost, ...], backends: tuple[Backend, ...] | None = None
    ) -> HostSettings:
        """Return the same settings, for a host with these gateways. backends: of a gateway."""
        if (gateways, backends) == (self._gateways, self._backends):
            return self
        found = self.model_copy(update=self._drained_slowly if gateways else None)
        found._gateways, found._backends = gateways, backends
        vars(found)["judged"] = self.judged
        return found

    @property
    def _drained_slowly(self) -> dict[str, int]:
        """A gateway sends nothing new to a host that is drained, so that waiting for what is open is worth it."""
        return {} if "drain_timeout" in self.model_fields_set else {"drain_timeout": BEHIND_GATEWAY}

    @property
    def image_files(self) -> Mapping[str, tuple[ImageFile, ...]]:
        """The files of images by digest, as far as the lock file lists them: by these hosts hand images on."""
        return self._image_files

    def with_image_files(self, files: Mapping[str, tuple[ImageFile, ...]]) -> HostSettings:
        """Return the same settings, with these files of images."""
        if files == self._image_files:
            return self
        found = self.model_copy()
        found._image_files = files
        vars(found)["judged"] = self.judged
        return found

    def placed_as(self, other: HostSettings) -> HostSettings:
        """Return the same settings, for a host with the peers and gateways of another one's."""
        return self.with_peers(other.peers).with_gateways(other._gateways, other._backends)

    def only(self, sections: frozenset[str]) -> HostSettings:
        """Return settings that have these sections alone; `ENDPOINTS` stands for all keys of endpoints.

        Reading another one raises UnlistedSectionError.
        """
        if (narrowed := self.narrowed.get(sections)) is not None:
            return narrowed
        retained = sections | (ENDPOINT_KEYS if ENDPOINTS in sections else frozenset())
        found = self.model_copy()
        for key in HostSettings.model_fields.keys() - retained:
            vars(found).pop(key, None)  # gone already, where one concern asks another
        return self.narrowed.setdefault(sections, found)

    if not TYPE_CHECKING:  # it would let every name pass

        def __getattr__(self, name: str) -> Any:
            if name in HostSettings.model_fields:
                raise UnlistedSectionError(f"it reads the settings' section {name}, which its TAKES does not list")
            return super().__getattr__(name)

    @model_validator(mode="after")
    def _has_a_model(self) -> HostSettings:
        for name, endpoint in self.all_endpoints.items():
            if endpoint.model is None:
                text = f"endpoint {name} has no model: set `model:` in group_vars or host_vars"
                raise MisfitError(text, code="RW0110")
        return self

    @model_validator(mode="after")
    def _no_token_in_clear(self) -> HostSettings:
        if self.models.hub_token and not self.mirrors.hub.startswith("https://"):
            text = "is reached without TLS, and models.hub_token would go there in clear: write https://"
            raise MisfitError(text, "mirrors", "hub", code="RW0111")
        return self

    @model_validator(mode="after")
    def _hands_on_at_free_ports(self) -> HostSettings:
        taken = {endpoint.port: f"of endpoint {name}" for name, endpoint in self.all_endpoints.items()}
        taken |= {self.word.port: "of the host's word"}
        ports = [*self.hand_on_ports, *self.hand_on_image_ports]
        clash = next((port for port in ports if port in taken), None)
        if clash is not None:
            each = "each model and image" if self.hand_on_image_ports else "each model"
            text = f"takes the ports to {ports[-1]}, one for {each}, and {clash} is that {taken[clash]}: choose another"
            raise MisfitError(text, "downloads", "hand_on", "port", code="RW0155")
        return self

    @property
    def hand_on_ports(self) -> range:
        """The ports at which it hands on models, one for each that it fetches; none where it hands on nothing."""
        if self.downloads.hand_on is None:
            return range(0)
        first = self.downloads.hand_on.port
        return range(first, first + len({key for key, _ in self.fetched_models}))

    @property
    def hand_on_image_ports(self) -> range:
        """The ports at which it hands on images, one for each; none where it hands on none."""
        hand_on = self.downloads.hand_on
        if hand_on is None or not hand_on.images:
            return range(0)
        first = self.hand_on_ports.stop
        return range(first, first + len(self.images))

    @property
    def images(self) -> tuple[str, ...]:
        """The images of its endpoints, each once."""
        return tuple(dict.fromkeys(endpoint.image for endpoint in self.all_endpoints.values()))

    @property
    def fetched_models(self) -> list[tuple[tuple[str, str, str | None], ModelSource]]:
        """The models and draft models of its endpoints that are fetched; those with one key share a folder."""
        both = [source for one in self.all_endpoints.values() for source in (one.model, one.draft)]
        found = [source for source in both if source is not None and not source.path]
        return [((one.repository, one.revision, one.directory), one) for one in found]

    def __copy__(self) -> Self:
        copied = super().__copy__()
        for cached in (
            "all_endpoints",
            "narrowed",
            "judged",
        ):  # pydantic copies what is cached as well, and a copy differs
            vars(copied).pop(cached, None)
        return copied

    @cached_property
    def narrowed(self) -> dict[frozenset[str], HostSettings]:
        """Results of `only`: each concern asks for its own sections several times, and they do not change."""
        return {}

    @cached_property
    def judged(self) -> dict[str, Any]:
        """Findings in these settings, by the check: hosts with equal ones share them, and the verdict."""
        return {}

    @cached_property
    def all_endpoints(self) -> dict[str, EndpointSettings]:
        """Endpoints by name: the listed ones, each over the top-level keys, or the top-level one if it has a model."""
        base = {key: getattr(self, key) for key in EndpointSettings.model_fields if key in self.model_fields_set}
        listed = self.endpoints or ({self.endpoint_name: {}} if self.model else {})
        self._refuse_reserved(listed)
        parsed = {name: EndpointSettings.model_validate(overlay(base, keys)) for name, keys in listed.items()}
        found = [
            pair for name, endpoint in parsed.items() for pair in replicas(name, endpoint, self._replicas_at(name))
        ]
        names = [name for name, _ in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            text = f"two endpoints have the name {twice}: `replicas` numbers its own, so rename the other"
            raise MisfitError(text, "endpoints", twice, code="RW0112")
        return dict(found)

    def _refuse_reserved(self, names: Iterable[str]) -> None:
        for name in names:
            if taken := reserved(name):
                text = f"the name {name} is Rackwright's own ({taken}): choose another"
                at = ("endpoints", name) if self.endpoints else ("endpoint_name",)
                raise MisfitError(text, *at, code="RW0113")

    def _replicas_at(self, name: str) -> tuple[str, ...]:
        """Return where an endpoint's `replicas` stands: its own key, or the top-level one."""
        return ("endpoints", name, "replicas") if "replicas" in self.endpoints.get(name, {}) else ("replicas",)


ENDPOINTS = "endpoints"
ENDPOINT_KEYS = frozenset({*EndpointSettings.model_fields, ENDPOINTS, "endpoint_name"})


def replicas(name: str, endpoint: EndpointSettings, at: tuple[str, ...]) -> list[tuple[str, EndpointSettings]]:
    """Return an endpoint as it is, or its `replicas`: one GPU each, numbered names, ports from its own on.

    at: the path of `replicas`, for the error. Raises MisfitError when `gpus` lists fewer GPUs, or when the ports end.
    """
    count = endpoint.replicas
    if count == 1:
        return [(name, endpoint)]
    gpus = tuple(range(count)) if endpoint.gpus == "all" else endpoint.gpus
    if len(gpus) < count:
        text = (
            f"is {count}, and endpoint {name} has {len(gpus)} in its `gpus:`, one for each: list {count}, or write all"
        )
        raise MisfitError(text, *at, code="RW0114")
    if endpoint.port + count - 1 > 65535:
        text = f"is {count}, and endpoint {name} has too few ports from {endpoint.port} on: lower its `port:`"
        raise MisfitError(text, *at, code="RW0115")
    return [
        (f"{name}-{i}", endpoint.model_copy(update={"replicas": 1, "port": endpoint.port + i, "gpus": (gpus[i],)}))
        for i in range(count)
    ]


def overlay(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `over` over `base` key by key.

    So are the sections `gate` and `container`, and `engine` alone is merged deep (DECISIONS 37).
    """
    merged = {**base, **over}
    if "engine" in base and "engine" in over:
        merged["engine"] = deep_merge(base["engine"], over["engine"])
    for section in ("gate", "container"):
        weaker = base.get(section)
        weaker = weaker.model_dump(exclude_unset=True) if isinstance(weaker, Frozen) else weaker
        if isinstance(weaker, dict) and isinstance(over.get(section), dict):
            merged[section] = {**weaker, **over[section]}
    return merged


def deep_merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `over` over `base`, mappings merged key by key, everything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = deep_merge(merged[key], value) if both else value
    return merged
