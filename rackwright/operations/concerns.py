"""The operations for a deploy of one's own: each applies one concern, by its own keyword arguments.

In a site they are called by tasks/, and their arguments are stronger than the settings and weaker than `--data`. In
a foreign deploy, with an inventory that knows nothing of Rackwright, arguments and defaults are all there is;
host data is never read. The whole deploy file is looked at before the first of them acts, so that a mistake in the
last call is reported before anything is written, and `models()` knows what `endpoint()` serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from rackwright.adapter.run.declaring import counts, implies, noted, say_settings
from rackwright.concerns.firewall import CLOSE_DIRECT
from rackwright.operations.arguments import (
    DockerArguments,
    EncodingsArguments,
    EndpointArguments,
    FirewallArguments,
    ModelsArguments,
    RegistryArguments,
    SiteArguments,
    WatchArguments,
)
from rackwright.operations.closing import close_direct_ports
from rackwright.operations.endpoints import switch_endpoints
from rackwright.operations.steps import (
    apply_concern,
    collect,
    collect_images,
    hash_models,
    judge_first_driver,
    try_keys,
)


def site(**arguments: Unpack[SiteArguments]) -> None:
    """Say what several operations go by: proxies, mirrors, the site's own authority, waves. It does nothing itself.

    arguments: sections of the settings, each as a mapping.
    """
    _say("", arguments)


def preflight() -> None:
    """Check the host before anything is written to it; a stopping row ends it here."""
    apply_concern("preflight", name="The host is able to run its endpoints")


def docker(**arguments: Unpack[DockerArguments]) -> None:
    """Install what is missing of Docker Engine and NVIDIA's toolkit, merge dockerd's configuration, let users in.

    arguments: keys of the section `docker`. Raises SettingsError when it is called twice for one host.
    """
    _say("docker", arguments)
    apply_concern("docker", name="Docker Engine and the NVIDIA container toolkit are installed and configured")


def driver() -> None:
    """Bring the packages of the driver that `driver.version` names, and those of the way back; nothing is installed.

    A host with another driver serves on with it: "pending" until `rackwright rollout INVENTORY --drivers`. One that has
    none gets it here with `driver.first_by_deploy`, and is checked again as by `preflight()`.
    """
    apply_concern("driver", name="The packages of the wanted NVIDIA driver are on the host")
    judge_first_driver(name="A host with its first driver is able to run its endpoints")


def firewall(**arguments: Unpack[FirewallArguments]) -> None:
    """Set the rules, IPv4 and IPv6: containers reach the host, and `allow_from` of each endpoint reaches its port.

    arguments: keys of the section `firewall`. The host takes the rules back when a login fails afterwards.
    """
    _say("firewall", arguments)
    apply_concern("firewall", name="Containers and the allowed networks reach the endpoints' ports")


def registry(**arguments: Unpack[RegistryArguments]) -> None:
    """Keep the registry's login for root only, or none at rest.

    arguments: keys of the section `registry`.
    """
    _say("registry", arguments)
    apply_concern("registry", name="Keep the login at the image's registry as the settings say")
    try_keys(name="Try the key at the registry, when registry.check_key asks for it")


def image(*, wait: bool = True) -> None:
    """Have the image of each endpoint on the host, by digest.

    wait: False begins the download and returns; `release()`, where the deploy calls it, collects it.
    """
    apply_concern("image", name="Pull the image of each endpoint", wait=wait)


def encodings(*, wait: bool = True, **arguments: Unpack[EncodingsArguments]) -> None:
    """Have both tiktoken files on the host, by SHA-256.

    wait: as for `image`. arguments: keys of the section `encodings`.
    """
    _say("encodings", arguments)
    apply_concern("encodings", name="Fetch the tiktoken encodings and check their SHA-256", wait=wait)


def models(*, wait: bool = True, **arguments: Unpack[ModelsArguments]) -> None:
    """Have every model of the endpoints on the host, complete and verified; the image too, in which they are fetched.

    wait: as for `image`. arguments: keys of the section `models`; which models, is said by `endpoint`.
    """
    _say("models", arguments)
    _bring("models", "image")
    hash_models(name="Hash every model file again, when models.verify_deep asks for it")
    collect_images(name="The images have arrived, in which hosts hand models on")
    apply_concern("models", name="Fetch the models at their commits and verify every file", wait=wait)


def release() -> None:
    """Write each endpoint's release: the engine's YAML, the unit and its checks. What serves is not touched.

    What `image`, `encodings` and `models` have begun, is collected first.
    """
    collect(name="Image, encodings and models have arrived")
    apply_concern("release", name="The wanted release of each endpoint is on the host")


def options() -> None:
    """Build each endpoint's options inside its own image; what is refused is never switched."""
    apply_concern("options", name="The image of each endpoint accepts its options")


def retention() -> None:
    """Remove Rackwright's images and models that no kept release names."""
    apply_concern("retention", name="Images and models that no kept release names are gone")


def watch(**arguments: Unpack[WatchArguments]) -> None:
    """Let the host look at its endpoints between two deploys: a hung or dead engine is reported, or restarted.

    arguments: keys of the section `watch`.
    """
    _say("watch", arguments)
    apply_concern("watch", name="The host looks at its endpoints between two deploys")


def gateway() -> None:
    """Put HAProxy in front of the endpoints, on the hosts of the inventory's group `gateway`; no other host has it.

    On a gateway that serves nothing itself, only `preflight()`, this one and `converged()` count.
    """
    apply_concern("gateway", name="The gateway leads to the endpoints, and answers with its configuration")


def close_direct() -> None:
    """Close the endpoints' ports to all but the gateways, with `gateway.close_direct`; on other hosts nothing.

    Each gateway of the inventory must answer, have the endpoint's server up, and reach its port over a new connection;
    before, and again once the ports are closed. Otherwise they stay open, or are opened again.
    """
    if counts(CLOSE_DIRECT):
        with noted(CLOSE_DIRECT):
            close_direct_ports(name="The endpoints' ports let in the gateways alone")


def endpoint(**arguments: Unpack[EndpointArguments]) -> None:
    """Switch in each host's own turn, ask the endpoint, and roll back when the answer is wrong.

    Required steps that were not called are done before: image, release, and the image's check of its options.
    arguments: keys of an endpoint; `endpoints` for several on one host.
    """
    _say("", arguments)
    for step in ("image", "release", "options"):
        _bring("endpoint", step)
    switch_endpoints()


def _say(section: str, arguments: Mapping[str, Any] | object) -> None:
    say_settings(section, cast(Mapping[str, Any], arguments))


def _bring(caller: str, step: str) -> None:
    if implies(caller, step):
        {"image": image, "release": release, "options": options}[step]()
