"""Error of settings that do not fit together."""

from __future__ import annotations


class MisfitError(ValueError):
    """Settings that are right one by one and do not fit together, with the keys where that is fixed, and the code."""

    def __init__(self, text: str, *path: str, code: str = "") -> None:
        super().__init__(text)
        self.path = path
        self.code = code
