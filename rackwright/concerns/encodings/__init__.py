"""The tiktoken vocabularies of gpt-oss: both files by size and SHA-256, so that a start needs no internet access.

Without them a server fetches them at its start; without internet access /health stays at 200 and only chat fails.
"""

from rackwright.concerns.encodings.concern import (
    ENCODING_FILES,
    ENCODINGS,
    Encoding,
)

__all__ = [
    "ENCODINGS",
    "ENCODING_FILES",
    "Encoding",
]
