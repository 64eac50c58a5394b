"""The vocabularies that gpt-oss needs to chat."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import EncodingsArguments


@deploy("Encodings")
def encodings(**arguments: Unpack[EncodingsArguments]) -> None:
    """Begin to fetch both tiktoken files, by SHA-256, so that a start needs no route out; release() waits for them."""
    operations.encodings(wait=False, **arguments)


if __name__ in operations.ALONE:
    encodings()
