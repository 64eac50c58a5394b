"""One process of tests is many processes of users, so each test forgets the secrets that it has read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright import masks


@pytest.fixture(autouse=True)
def secrets_of_this_test_alone() -> Iterator[None]:
    """Forget the secrets of a test when it ends."""
    before = set(masks._secrets)
    yield
    masks._secrets.clear()
    masks._secrets.update(before)
