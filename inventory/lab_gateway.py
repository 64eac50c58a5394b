"""The hosts of the lab that is up, with one or two gateways: with four hosts, the last two are gateways alone."""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts

found = list(hosts())
gateways = found[-2:] if len(found) > 3 else found[-1:]
endpoints = found[: len(found) - len(gateways)]
globals().update(
    build(
        __file__,
        {"lab": endpoints, "lab_gateway": gateways},
        children={"b200": ["lab"], "gateway": ["lab_gateway"]},
    )
)
