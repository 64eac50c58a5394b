"""NVIDIA's driver: its packages are brought, and switched by `rackwright rollout --drivers` alone."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("NVIDIA's driver")
def driver() -> None:
    """Fetch the packages of the wanted driver and those of the way back; nothing is installed."""
    operations.driver()


if __name__ in operations.ALONE:
    driver()
