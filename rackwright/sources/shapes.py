"""The answers of hub and registry as typed values: one parser for all of them, since any server may answer anything.

Shapes: https://huggingface.co/docs/hub/api and https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from rackwright.settings.sections import BLOB, SHA256
from rackwright.sources.errors import SourceError

Shape = TypeVar("Shape", bound=BaseModel)
LARGEST = 1 << 50
"""Bytes of one file: a thousand times the largest weights there are."""
LONGEST_NAME = 1024


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Revision(_Answer):
    """A revision of a model, resolved."""

    sha: str = ""


class Tree(RootModel[list[dict[str, Any]]]):
    """One page of a model's tree."""


class TreeEntry(_Answer):
    """One entry of a model's tree: a file, a directory, or what a later hub adds."""

    type: str = ""
    path: str = ""


class Large(_Answer):
    """The hub's data of a file in its large store; older answers name the hash `sha256`."""

    oid: Annotated[str | None, Field(pattern=SHA256)] = None
    sha256: Annotated[str | None, Field(pattern=SHA256)] = None


class TreeFile(_Answer):
    """One file of a model's tree. size: bytes."""

    path: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    size: Annotated[int, Field(ge=0, le=LARGEST)]
    oid: Annotated[str | None, Field(pattern=BLOB)] = None
    lfs: Large | None = None


class Token(_Answer):
    """A registry's token; servers give it one of two names."""

    token: str | None = None
    access_token: str | None = None


class Manifest(_Answer):
    """A manifest or index of version 2; a registry has no other with a digest that counts."""

    schemaVersion: Annotated[int, Field(ge=2, le=2)]  # noqa: N815  # the registry's own name


def shaped(kind: type[Shape], value: Any, server: str) -> Shape:
    """Return an answer's JSON as a typed value. Raises SourceError naming the server and the first odd field."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        row = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, row["loc"])) or "the answer"
        raise SourceError(
            f"{server} sent an answer of an unknown shape ({where}: {row['msg']}): another program answers there; "
            "check mirrors, registry and proxy",
            code="RW0930",
        ) from None
