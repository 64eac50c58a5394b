"""The login at the image's registry."""

from pyinfra.api import deploy

from rackwright.operations import settle, try_keys


@deploy("Registry")
def registry() -> None:
    """Keep the registry's login for root only, or none at rest, as the settings say."""
    settle(name="Keep the login at the image's registry as the settings say", concern="registry")
    try_keys(name="Try the key at the registry, when registry.check_key asks for it")
