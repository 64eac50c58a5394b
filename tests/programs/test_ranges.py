"""The missing bytes of a file, by one request: appended as they come, from the byte at which an earlier one broke."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.hostside.fetch_model.failures import classify
from rackwright.hostside.fetch_model.ranges import append_missing
from tests.programs.hand_on_hosts import HUB_TOKEN, MIB, Hub, content

DATA = content(3 * MIB + 5)


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub({"model": DATA})
    yield made
    made.close()


def append(hub: Hub, file: Path, token: str = "") -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with file.open("r+b") as handle:
        handle.seek(0, 2)
        append_missing(f"{hub.url}model", headers, handle, len(DATA), 1 << 16, 10)


def part(folder: Path, size: int) -> Path:
    file = folder / "model.part"
    file.write_bytes(DATA[:size])
    return file


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("here", [0, MIB + 3])
def test_what_is_missing_is_appended_whether_the_server_knows_ranges_or_not(
    hub: Hub, tmp_path: Path, here: int, ranges: bool
) -> None:
    file, hub.ranges = part(tmp_path, here), ranges
    append(hub, file)
    assert file.read_bytes() == DATA
    assert hub.asked == [("model", f"bytes={here}-" if here else "", "")]


def test_a_connection_that_breaks_keeps_what_has_come_and_is_worth_another_try(hub: Hub, tmp_path: Path) -> None:
    file, hub.break_at = part(tmp_path, 0), 2 * MIB
    with pytest.raises(Exception, match="IncompleteRead") as broken:
        append(hub, file)
    assert classify(broken.value).kind == "transient"
    assert file.read_bytes() == DATA[: 2 * MIB]
    append(hub, file)
    assert hashlib.sha256(file.read_bytes()).digest() == hashlib.sha256(DATA).digest()
    assert hub.asked[-1][1] == f"bytes={2 * MIB}-"


@pytest.mark.parametrize(
    ("status", "kind"), [(403, "repository"), (404, "answer"), (429, "limited"), (500, "server"), (503, "server")]
)
def test_what_a_server_refuses_has_its_kind(hub: Hub, tmp_path: Path, status: int, kind: str) -> None:
    hub.status = status
    with pytest.raises(OSError, match=str(status)) as refused:
        append(hub, part(tmp_path, 0))
    assert classify(refused.value).kind == kind


def test_no_route_is_told_from_a_broken_connection(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    with pytest.raises(OSError, match="refused") as failed:
        append(hub, part(tmp_path, 0))
    assert classify(failed.value).kind == "route"


def test_a_token_does_not_follow_a_redirect_to_another_server(hub: Hub, tmp_path: Path) -> None:
    other = Hub({"model": DATA})
    hub.elsewhere = other.url
    append(hub, part(tmp_path, 0), HUB_TOKEN)
    other.close()
    assert [token for _, _, token in (*hub.asked, *other.asked)] == [f"Bearer {HUB_TOKEN}", ""]
