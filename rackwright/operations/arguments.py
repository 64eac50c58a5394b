"""Keyword arguments of the operations: each the keys of one section of the settings, with the same types.

Made by `python scripts/arguments.py` from the types of the settings; do not edit it. Type checkers and editors read
it where a `deploy.py` calls an operation. Meanings, units and defaults are in docs/reference/operations.md. A secret
comes out of a vault, a command (`{"command": ["pass", "show", "ngc"]}`) or an environment variable, never out of a
file in clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class SiteArguments(TypedDict, total=False):
    """The sections that no single operation has to itself."""

    hardware: Mapping[str, Any]
    diagnosis: Mapping[str, Any]
    paths: Mapping[str, Any]
    driver: Mapping[str, Any]
    downloads: Mapping[str, Any]
    proxy: Mapping[str, Any]
    control_proxy: Mapping[str, Any]
    mirrors: Mapping[str, Any]
    bundle: Mapping[str, Any]
    releases: Mapping[str, Any]
    rollout: Mapping[str, Any]
    notify: Mapping[str, Any]
    word: Mapping[str, Any]
    gateway: Mapping[str, Any]
    fabric_address: str


class DockerArguments(TypedDict, total=False):
    """The section `docker`."""

    users: Sequence[str]
    source: Literal["distribution", "docker"]
    daemon: Mapping[str, Any]
    toolkit_version: str
    hold_packages: bool
    hold_existing: bool


class FirewallArguments(TypedDict, total=False):
    """The section `firewall`."""

    confirm_timeout: int


class RegistryArguments(TypedDict, total=False):
    """The section `registry`."""

    host: str
    user: str
    key: str | Mapping[str, Sequence[str]]
    keep: bool
    check_key: bool


class EncodingsArguments(TypedDict, total=False):
    """The section `encodings`."""

    folder: str


class ModelsArguments(TypedDict, total=False):
    """The section `models`."""

    folder: str
    hub_token: str | Mapping[str, Sequence[str]]
    hub_caches: Sequence[str]
    verify_deep: bool


class WatchArguments(TypedDict, total=False):
    """The section `watch`."""

    act: Literal["tell", "restart", "off"]
    after: int
    textfile: str


class EndpointArguments(TypedDict, total=False):
    """The keys of an endpoint."""

    endpoint_name: str
    endpoints: Mapping[str, Mapping[str, Any]]
    engine_kind: Literal["tensorrt-llm", "vllm", "sglang"]
    image: str
    image_digest: str
    engine_version: str
    model: Mapping[str, Any]
    draft: Mapping[str, Any]
    engine: Mapping[str, Any]
    engine_file: str
    environment: Mapping[str, str]
    arguments: Sequence[str]
    api_key: str | Mapping[str, Sequence[str]]
    sizes_on_command_line: bool
    port: int
    network: Literal["bridge", "host"]
    bind: str
    allow_from: Literal["private", "any"] | Sequence[str]
    gpus: Literal["all"] | Sequence[int]
    replicas: int
    hosts: int | Sequence[str]
    group_port: int
    group_grace: int
    group_transport: Literal["any", "rdma", "nvlink"]
    harmony: bool
    load_timeout: int
    stop_timeout: int
    drain_timeout: int
    drain_hook: Sequence[str]
    ready_hook: Sequence[str]
    hook_timeout: int
    restart_delay: int
    start_limit: int
    container: Mapping[str, Any]
    gate: Mapping[str, Any]
    accept_known_bad: bool
