"""The vocabularies that gpt-oss needs to chat."""

from pyinfra import host
from pyinfra.api import deploy

from rackwright.inventory import settings_of
from rackwright.operations import settle


@deploy("Encodings")
def encodings() -> None:
    """Have both tiktoken files on the host, by SHA-256, so that a start needs no route out."""
    settle(
        name="Fetch the tiktoken encodings and check their SHA-256",
        concern="encodings",
        _parallel=settings_of(host).downloads.parallel,
    )
