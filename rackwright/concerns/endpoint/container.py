"""The serving part of one endpoint, as plain values: image, argv, environment, mounts, YAML, and a hash over them.

It is the same on every host: what differs is the endpoint's binding. Sources: the guides' `docker run` lines, and
DECISIONS 2, 6 to 11 and 40 for what differs from them and why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from rackwright.concerns.endpoint.group.files import RUN_MEMBER
from rackwright.concerns.endpoint.group.words import launch_words, member_place, member_words
from rackwright.engines.host import SIZES
from rackwright.paths import (
    ENCODINGS_MOUNT,
    KEYED_MOUNT,
    RELEASE_MOUNT,
    SCRATCH_MOUNT,
    container_name,
    endpoint_dir,
    keyed_dir,
    release_dir,
)
from rackwright.plan.render import Expanded
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Container

FORMAT = 2
"""Of spec.json."""
SGLANG_SERVER = "sglang.launch_server"
"""The word of SGLang's argv that no other engine's has."""


@dataclass(frozen=True)
class Mount:
    """A bind: host path, container path, and whether the container may write there."""

    source: str
    target: str
    writable: bool = False

    @property
    def argument(self) -> str:
        """As `docker run --volume` takes it."""
        return f"{self.source}:{self.target}:{'rw' if self.writable else 'ro'}"

    @property
    def as_json(self) -> dict[str, str | bool]:
        """As spec.json says it."""
        return {"source": self.source, "target": self.target, "writable": self.writable}


@dataclass(frozen=True)
class Resolved:
    """Answers of the lock file, the registry and the hub about an endpoint's names."""

    image_digest: str
    model_commit: str
    model_path: str
    draft_commit: str | None
    draft_path: str | None


@dataclass(frozen=True)
class Added:
    """Values that the engines' tables add to an endpoint's settings."""

    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """More files of the release, by name."""
    key_option: str = ""
    """The name of the endpoint's key in the engine's YAML."""
    rights: tuple[str, ...] = ()
    """Words of `docker run` for what the container may do."""
    pids_limit: int = 0


NOTHING_ADDED = Added()


@dataclass(frozen=True)
class EndpointSpec:
    """All that one endpoint serves: a running container with another serving hash must be restarted."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    network: str
    address: str
    port: int
    engine_file: str
    engine_yaml: str
    models: Mapping[str, str]
    """Commit by repository."""
    served_name: str
    """The name that /v1/models answers."""
    key_option: str = ""
    """The engine's option for the key that clients must send (which one is the binding's); empty: they need none."""
    files: Mapping[str, str] = field(default_factory=dict)
    """More files of the release that the engine reads."""
    rights: tuple[str, ...] = ()
    """Words of `docker run` for what the container may do."""
    pids_limit: int = 0
    container: Container = field(default_factory=Container)
    """The settings of that."""
    members: int = 1
    """Hosts that serve it together."""
    member_arguments: tuple[str, ...] = ()
    """Words of `docker run` by which a member has its place among them."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for spec.json and for the serving hash."""
        return {
            "name": self.name,
            "image": self.image,
            "argv": list(self.command),
            "environment": dict(sorted(self.environment.items())),
            "mounts": [mount.as_json for mount in self.mounts],
            "network": self.network,
            "address": self.address,
            "port": self.port,
            "models": dict(sorted(self.models.items())),
            "served_name": self.served_name,
            "files": {self.engine_file: self.engine_yaml, **self.files},
            # Named only where there is something to say: an upgrade of Rackwright must not restart what serves.
            **({"keyed": True} if self.key_option else {}),
            **({"container": self.container.model_dump(mode="json")} if self.container != Container() else {}),
            **({"members": self.members} if self.members > 1 else {}),
        }

    @property
    def serving_hash(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 over the canonical JSON."""
        text = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def has_options(self) -> bool:
        """True if the engine's YAML has entries."""
        return self.engine_yaml != render_engine_yaml({})

    @property
    def health_url(self) -> str:
        """The endpoint's address on the host itself."""
        return url_of(self.address, self.port, self.network)

    def docker_run(self, release: str) -> list[list[str]]:
        """Return the whole `docker run` of a release, in groups of arguments that belong on one line.

        systemd puts the host's binding in for `${GPUS}` and `${BINDING}`.
        """
        together = self.members > 1
        groups = [
            *([["/bin/bash", f"{release_dir(self.name, release)}/{RUN_MEMBER}"]] if together else []),
            ["/usr/bin/docker", "run", "--rm", "--name", container_name(self.name)],
            ["--label", f"rackwright.endpoint={self.name}", "--label", f"rackwright.release={release}"],
            [
                "--label",
                f"rackwright.serving={self.serving_hash}",
                "--label",
                Expanded("rackwright.binding=${BINDING}"),
            ],
            ["--log-driver", "none"],
            # Where dockerd maps users (userns-remap), neither host namespaces nor Rackwright's folders could be used.
            ["--userns", "host"],
            ["--runtime", "nvidia", "--env", Expanded("NVIDIA_VISIBLE_DEVICES=${GPUS}")],
            [*self._shared_memory(), "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--oom-score-adj", "500"],
            *([list(self.rights)] if self.rights else []),
            self._network_words(),
        ]
        mounts = (*self.mounts, Mount(release_dir(self.name, release), RELEASE_MOUNT))
        groups += [["--volume", mount.argument] for mount in mounts]
        groups += [["--env", f"{key}={value}"] for key, value in sorted(self.environment.items())]
        groups += [list(self.member_arguments)] if self.member_arguments else []
        return [*groups, [self.image], list(self.command)]

    def _shared_memory(self) -> list[str]:
        return ["--shm-size", self.container.shm_size] if self.container.shm_size else ["--ipc=host"]

    def _network_words(self) -> list[str]:
        if self.network == "host":
            return ["--network", "host"]
        address = f"[{self.address}]" if ":" in self.address else self.address
        return ["--publish", f"{address}:{self.port}:{self.port}"]


def url_of(address: str, port: int, network: str = "host") -> str:
    """URL at which the host itself reaches what listens on an address.

    network: Docker publishes `::` on IPv6 alone; on the host's network it is both.
    """
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1" if network == "host" else "::1"}
    host = everywhere.get(address, address)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def local_url(endpoint: EndpointSettings) -> str:
    """URL at which the host itself reaches an endpoint."""
    return url_of(endpoint.address, endpoint.port, endpoint.network)


def served_name(endpoint: EndpointSettings) -> str:
    """Return the name that /v1/models answers: the last part of the model's mount."""
    assert endpoint.model is not None
    return last_part(endpoint.model.mount)


def last_part(path: str) -> str:
    """Return the last name of a path."""
    return path.rstrip("/").rsplit("/", 1)[1]


def endpoint_spec(
    name: str, endpoint: EndpointSettings, encodings_dir: str, resolved: Resolved, added: Added = NOTHING_ADDED
) -> EndpointSpec:
    """Everything about one endpoint, from its settings, what was resolved for it, and what its engine's data add."""
    assert endpoint.model is not None
    models = {endpoint.model.repository: resolved.model_commit}
    mounts = [Mount(resolved.model_path, endpoint.model.mount)]
    if endpoint.draft is not None:
        models[endpoint.draft.repository] = resolved.draft_commit or ""
        mounts.append(Mount(resolved.draft_path or "", endpoint.draft.mount))
    if endpoint.harmony:
        mounts.append(Mount(encodings_dir, ENCODINGS_MOUNT))
    mounts.append(Mount(f"{endpoint_dir(name)}/scratch", SCRATCH_MOUNT, writable=True))
    if endpoint.api_key is not None:
        mounts.append(Mount(keyed_dir(name), KEYED_MOUNT))
    return EndpointSpec(
        name=name,
        image=f"{endpoint.image.rsplit(':', 1)[0]}@{resolved.image_digest}",
        command=tuple(server_command(endpoint)),
        environment={**added.environment, **environment(endpoint)},
        mounts=tuple(mounts),
        network=endpoint.network,
        address=endpoint.address,
        port=endpoint.port,
        engine_file=endpoint.engine_file,
        engine_yaml=render_engine_yaml(endpoint.engine),
        models=models,
        served_name=served_name(endpoint),
        key_option=added.key_option,
        files=added.files,
        rights=added.rights,
        pids_limit=added.pids_limit,
        container=endpoint.container,
        members=endpoint.size,
        member_arguments=tuple(member_place(endpoint)),
    )


def server_command(endpoint: EndpointSettings) -> list[str]:
    """Return the server's own arguments: model, host, port and the YAML; values stay in the YAML (DECISIONS 24)."""
    host = endpoint.address if endpoint.network == "host" else "0.0.0.0"
    where = ["--host", host, "--port", str(endpoint.port)]
    arguments = [*SERVERS[endpoint.engine_kind](endpoint, where), *member_words(endpoint), *endpoint.arguments]
    return [*launch_words(endpoint), *arguments]


def _whole(size: Any) -> str:
    """Write a size for the command line, whose parser refuses what the file's reader takes as a number (true, 8.0)."""
    return str(int(size)) if isinstance(size, bool | float) else str(size)


def _trtllm(endpoint: EndpointSettings, where: list[str]) -> list[str]:
    assert endpoint.model is not None
    words = ["trtllm-serve", endpoint.model.mount, *where]
    if endpoint.sizes_on_command_line:
        sizes = {key: endpoint.engine[key] for key in SIZES if endpoint.engine.get(key) is not None}
        words += [argument for key, size in sizes.items() for argument in (f"--{key}", _whole(size))]
    return [*words, "--extra_llm_api_options", f"{RELEASE_MOUNT}/{endpoint.engine_file}"]


def _vllm(endpoint: EndpointSettings, where: list[str]) -> list[str]:
    """Words after the image's own entry point, which is `vllm serve`."""
    assert endpoint.model is not None
    return [endpoint.model.mount, *where, "--served-model-name", served_name(endpoint), *_config(endpoint)]


def _sglang(endpoint: EndpointSettings, where: list[str]) -> list[str]:
    assert endpoint.model is not None
    words = ["python3", "-m", SGLANG_SERVER, "--model-path", endpoint.model.mount, *where]
    return [*words, "--served-model-name", served_name(endpoint), *_config(endpoint)]


def _config(endpoint: EndpointSettings) -> list[str]:
    if endpoint.api_key is not None:
        return ["--config", f"{KEYED_MOUNT}/{endpoint.engine_file}"]
    return ["--config", f"{RELEASE_MOUNT}/{endpoint.engine_file}"] if endpoint.engine else []


SERVERS = {"tensorrt-llm": _trtllm, "vllm": _vllm, "sglang": _sglang}


def environment(endpoint: EndpointSettings) -> dict[str, str]:
    """Return the container's environment: offline, with its caches in a folder that outlives it (DECISIONS 9, 10)."""
    ours = {
        "HF_HUB_OFFLINE": "1",
        "HF_MODULES_CACHE": f"{SCRATCH_MOUNT}/hf-modules",
        "TRITON_CACHE_DIR": f"{SCRATCH_MOUNT}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{SCRATCH_MOUNT}/inductor",
        "TMPDIR": f"{SCRATCH_MOUNT}/tmp",
    }
    if endpoint.size > 1:
        # Which network NCCL has chosen stands nowhere but in its log, which the gate reads.
        ours |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    if endpoint.harmony:
        ours["TIKTOKEN_ENCODINGS_BASE"] = ENCODINGS_MOUNT
    if endpoint.engine_kind == "vllm":
        ours["VLLM_CACHE_ROOT"] = f"{SCRATCH_MOUNT}/vllm"
    if endpoint.container.user or endpoint.container.read_only:
        # A user by number has no home, and a home in the image cannot be written to.
        ours["HOME"] = f"{SCRATCH_MOUNT}/home"
    return ours | endpoint.environment


def render_engine_yaml(engine: Mapping[str, Any]) -> str:
    """Return the engine's options as YAML that parses back equal, keys in the order of the settings.

    Characters beyond ASCII are escaped: PyYAML leaves U+0085 bare otherwise, which reads back as a line break.
    """
    return yaml.safe_dump(dict(engine), sort_keys=False, default_flow_style=False, width=1000)
