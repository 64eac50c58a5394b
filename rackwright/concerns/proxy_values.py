"""The site's proxies, which every download on a host uses."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Proxy


def proxy_values(settings: HostSettings) -> dict[str, str]:
    """Return `http_proxy`, `https_proxy` and `no_proxy` for a host script; empty without a proxy.

    Where only one of the two proxies is set, it serves both.
    """
    return values_of(settings.proxy)


def values_of(proxy: Proxy) -> dict[str, str]:
    """Return these parameters of one proxy."""
    if not (proxy.http or proxy.https):
        return {"http_proxy": "", "https_proxy": "", "no_proxy": ""}
    return {
        "http_proxy": proxy.http or proxy.https or "",
        "https_proxy": proxy.https or proxy.http or "",
        "no_proxy": ",".join(proxy.no_proxy),
    }
