"""Base and draft models."""

from pyinfra import host
from pyinfra.api import deploy

from rackwright.inventory import settings_of
from rackwright.operations import hash_models, settle


@deploy("Models")
def models() -> None:
    """Have every model of the endpoints on the host, complete and verified."""
    hash_models(name="Hash every model file again, when models.verify_deep asks for it")
    settle(
        name="Fetch the models at their commits and verify every file",
        concern="models",
        _parallel=settings_of(host).downloads.parallel,
    )
