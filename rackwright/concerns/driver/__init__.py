"""NVIDIA's driver of a host: staged by a deploy, switched by `rackwright rollout --drivers`, with a way back."""

from rackwright.concerns.driver.concern import DRIVER, notes, stage_changes
from rackwright.concerns.driver.first import installs_first
from rackwright.concerns.driver.rows import DriverRefusal, refusals
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.wanted import DriverState, WantedDriver, wanted

__all__ = [
    "DRIVER",
    "DriverRefusal",
    "DriverState",
    "SeenDriver",
    "WantedDriver",
    "installs_first",
    "notes",
    "refusals",
    "stage_changes",
    "wanted",
]
