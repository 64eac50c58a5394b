"""A value that prints as a mask everywhere and is unmasked only on its way to standard input."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from pyinfra.api.hiddenvalue import HiddenValue

MASK = "*MASKED*"


class Secret(HiddenValue):
    """pyinfra's HiddenValue that also validates, compares and serialises (as a mask).

    `unmask()` gives the text; `str()`, `repr()`, JSON and pydantic dumps give the mask.
    """

    def __init__(self, content: str = "") -> None:
        super().__init__(content, MASK)  # type: ignore[no-untyped-call]

    def to_json(self) -> str:
        """`debug-inventory` calls this; without it pyinfra ends with "Cannot serialize"."""
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiddenValue) and other.unmask() == self.unmask()

    def __hash__(self) -> int:
        return hash(self.unmask())

    def __bool__(self) -> bool:
        return bool(self.unmask())

    @classmethod
    def _parse(cls, value: Any) -> Secret:
        if isinstance(value, cls):
            return value
        if isinstance(value, HiddenValue):
            return cls(value.unmask())
        if isinstance(value, str):
            return cls(value)
        raise ValueError("must be text (put it into ansible-vault)")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._parse, serialization=core_schema.plain_serializer_function_ser_schema(lambda _: MASK)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "writeOnly": True, "description": "a secret: use an ansible-vault value"}
