"""NVIDIA's driver of a host: staged by a deploy, switched by `rackwright rollout --drivers`, with a way back."""

from rackwright.concerns.driver.concern import DRIVER, notes
from rackwright.concerns.driver.rows import DriverRefusal, refusals
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.wanted import DriverState, WantedDriver, wanted

__all__ = ["DRIVER", "DriverRefusal", "DriverState", "SeenDriver", "WantedDriver", "notes", "refusals", "wanted"]
