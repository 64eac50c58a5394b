"""The secrets that hosts' settings have: where each stands, how it is kept, and what a new one does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from rackwright.loading.host import InventoryHost
from rackwright.loading.load import CLEAR
from rackwright.loading.vault import VAULT, VAULT_FILE
from rackwright.loading.wording import SECRET_PATHS
from rackwright.messages import counted, shortest
from rackwright.settings.origin import origin_of
from rackwright.settings.secret import Secret
from rackwright_engines.key_path import KeyPath, dotted

API_KEY = "api_key"
ARGUMENT = "an argument of deploy.py"


@dataclass(frozen=True)
class UsedSecret:
    """A secret of the settings, and the hosts that have it from one origin."""

    path: KeyPath
    origin: str
    """File and line."""
    source: str
    """Its form there: ansible-vault, a command in backticks, in clear."""
    hosts: tuple[InventoryHost, ...]

    @property
    def name(self) -> str:
        """The key, as `registry.key`."""
        return dotted(self.path)

    @property
    def first(self) -> InventoryHost:
        """One host that stands for all."""
        return self.hosts[0]


def used_secrets(hosts: Sequence[InventoryHost]) -> list[UsedSecret]:
    """Return the secrets of hosts in the order of the settings, each origin once."""
    found: dict[tuple[KeyPath, str, str], list[InventoryHost]] = {}
    for host in hosts:
        for path in _paths(host):
            origin = shortest(str(origin_of(host.origins, path) or ""))
            found.setdefault((path, origin, _source(host, path)), []).append(host)
    order = {one[-2:]: index for index, one in enumerate(SECRET_PATHS)}
    used = [UsedSecret(*key, tuple(on)) for key, on in found.items()]
    return sorted(used, key=lambda one: (order.get(one.path[-2:], len(order)), one.name, one.origin))


def _paths(host: InventoryHost) -> Iterator[KeyPath]:
    """Yield the paths at which a host has a secret."""
    settings: Any = host.settings
    for path in SECRET_PATHS:
        if len(path) == 2 and reduce(lambda value, key: getattr(value, str(key), None), path, settings):
            yield path
    for name, endpoint in host.settings.all_endpoints.items():
        at_endpoint: KeyPath = ("endpoints", name, API_KEY)
        if endpoint.api_key:
            yield at_endpoint if at_endpoint in host.origins else (API_KEY,)


def _source(host: InventoryHost, path: KeyPath) -> str:
    value: Any = host.data
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return (value.source or CLEAR) if isinstance(value, Secret) else ARGUMENT


@dataclass(frozen=True)
class Rotation:
    """The effect of a new value on hosts, and the steps to it. `INVENTORY` stands for the inventory."""

    restarts: str
    steps: tuple[str, ...]


def rotation_of(secret: UsedSecret) -> Rotation:
    """Return what a new value of a secret restarts, and the steps in their order."""
    store, key = _store(secret), secret.path[-1]
    if secret.path == ("registry", "key"):
        return _of_registry(secret, store)
    if secret.path == ("models", "hub_token"):
        made, tried = "make a new token at the hub; the old one stays valid", "rackwright pin INVENTORY"
        steps = (made, store, tried, "end the old token")
        return Rotation("nothing; no host keeps it, and there is nothing to deploy", steps)
    if secret.path[0] == "notify":
        sent = ("pyinfra INVENTORY deploy.py", "rackwright notify --test INVENTORY")
        return Rotation("nothing; the watch sends its next message with it", (store, *sent))
    if key == "certificate_key":
        issued = (
            "have a certificate issued for a new key",
            f"{store}; its certificate goes where gateway.certificate says",
        )
        deploy = ("rackwright check INVENTORY", "pyinfra INVENTORY deploy.py --limit gateway")
        return Rotation("nothing; the gateways reload, and open streams end on the old one", (*issued, *deploy))
    return _of_endpoint(secret, store)


def _of_registry(secret: UsedSecret, store: str) -> Rotation:
    registry = secret.first.settings.registry
    stored, not_stored = "root's Docker login is written again", "the hosts keep none, and the next pull takes it"
    effect = stored if registry.keep else not_stored
    return Rotation(
        f"nothing; {effect}",
        (
            f"make a new key at {registry.host}; the old one stays valid",
            store,
            "rackwright plan INVENTORY",
            "pyinfra INVENTORY deploy.py --data registry.check_key=true",
            "end the old key once every host is through",
        ),
    )


BEHIND = (
    "clients of the gateways need not change; while a host and the gateways have different keys, what the host would "
    "have answered is 502 engine_key"
)
DIRECT = "give clients the new key beside the old one: from its switch on a host takes the new one alone"


def _of_endpoint(secret: UsedSecret, store: str) -> Rotation:
    endpoints = [one for host in secret.hosts for one in host.settings.all_endpoints.values() if one.api_key]
    clients = BEHIND if any(host.settings.gateways for host in secret.hosts) else DIRECT
    return Rotation(
        f"{counted(len(endpoints), 'endpoint')}, host after host within rollout.max_unavailable: an engine reads its "
        "key at the start",
        (clients, store, "rackwright plan INVENTORY", "rackwright rollout INVENTORY"),
    )


def _store(secret: UsedSecret) -> str:
    """Return where the new value goes."""
    file = secret.origin.partition(":")[0]
    match secret.source:
        case source if source.startswith("`"):
            return f"let {source} print the new one"
        case source if source == VAULT:
            return (
                f"ansible-vault encrypt_string --stdin-name {secret.path[-1]}; paste what it prints at {secret.origin}"
            )
        case source if source == VAULT_FILE:
            return f"ansible-vault edit {file}"
        case source if source == CLEAR:
            return f"write the new one at {secret.origin}, encrypted or by a command: the old one is in clear there"
        case _:
            return f"let {file} have the new one"
