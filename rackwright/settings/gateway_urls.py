"""The URLs by which clients ask a gateway for a model. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rackwright.settings.gateway import HTTP_PORT, WILDCARDS, Gateway

HTTPS_PORT = 443


def gateway_urls(gateway: Gateway, models: Sequence[str], address: str) -> Iterator[str]:
    """Yield for each model the base URL of an OpenAI client, the model's name, and a header where one must name it.

    address: of the gateway's host, for settings with neither a name nor a common address.
    """
    base = _base(gateway, _host(gateway, address))
    for model in models:
        yield _url(gateway, model, base, is_only=len(models) == 1)


def _host(gateway: Gateway, address: str) -> str:
    if gateway.names:
        return gateway.names[0]
    found = str(gateway.address.ip) if gateway.address else address if gateway.bind in WILDCARDS else gateway.bind
    return f"[{found}]" if ":" in found else found


def _base(gateway: Gateway, host: str) -> str:
    """Return scheme, a place for what comes before the host's name, host and port."""
    usual = HTTPS_PORT if gateway.tls else HTTP_PORT
    port = "" if gateway.port == usual else f":{gateway.port}"
    return f"{'https' if gateway.tls else 'http'}://{{}}{host}{port}"


def _url(gateway: Gateway, model: str, base: str, *, is_only: bool) -> str:
    """Return the URL by a way of routing that the gateway has; where it has one model, none is needed."""
    named = f"/v1, model {model}"
    if "path" in gateway.route_by:
        return f"{base.format('')}/{model}{named}"
    if is_only or "body" in gateway.route_by:
        return f"{base.format('')}{named}"
    if "header" in gateway.route_by:
        return f"{base.format('')}{named} and the header X-Model: {model}"
    return f"{base.format(f'{model.lower()}.')}{named}"
