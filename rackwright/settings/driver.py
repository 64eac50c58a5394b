"""NVIDIA's driver of a host: its version, the source of its packages, and the way to a host that is down."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from rackwright.settings.misfit import MisfitError
from rackwright.settings.sections import Frozen

BRANCH = r"^[1-9]\d{2}$"
VERSION = r"^[1-9]\d{2}\.\d{1,4}(\.\d{1,3})?$"
CODE = "RW0106"


def _branch(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Branch = Annotated[str, BeforeValidator(_branch), Field(pattern=BRANCH)]
"""A branch, as text or as the number that YAML reads."""


class Driver(Frozen):
    """NVIDIA's driver, where deploy.py calls `driver()`: a deploy brings its packages, `rollout --drivers` switches."""

    version: Annotated[str, Field(pattern=VERSION)] | None = None
    """The exact version, for example `580.159.04`; without it the driver is left as it is.

    Fabric manager and IMEX get the same one, where the host needs them.
    """
    branch: Branch | None = None
    """Its branch, for example `580`: a version of another one is refused, as after a slip of the hand."""
    source: Literal["nvidia", "distribution"] = "nvidia"
    """Where its packages come from: NVIDIA's apt repository (`mirrors.driver`), or Ubuntu's own archive."""
    console: Literal["bmc", "serial", "none"] = "none"
    """How an operator reaches a host that does not come back; with `none` a switch asks for each such host."""
    first_by_deploy: bool = False
    """Let a deploy install and load the driver of a host that has none: nothing serves there. It is not restarted.

    Otherwise `rackwright rollout --drivers` brings the first one too. No deploy changes a driver that is there.
    """

    @property
    def wanted_branch(self) -> str:
        """The branch of the wanted version; empty without one."""
        return (self.version or "").partition(".")[0]

    @model_validator(mode="after")
    def _fits(self) -> Driver:
        if self.branch and not self.version:
            text = "is set without driver.version: all hosts must get the same one, so write it out"
            raise MisfitError(text, "driver", "branch", code=CODE)
        if self.branch and self.branch != self.wanted_branch:
            text = f"is {self.version}, which is not of driver.branch {self.branch}: change one of the two"
            raise MisfitError(text, "driver", "version", code=CODE)
        return self
