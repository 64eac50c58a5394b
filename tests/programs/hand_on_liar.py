"""A host of the run that sends wrong bytes: wrong against its list, against the token, or against the published sum."""

from __future__ import annotations

from pathlib import Path

from rackwright.hostside.hand_on import server
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.pieces import Keys, sha256
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.spec import File, Listen
from tests.programs.hand_on_hosts import TOKEN, Host, listed

KINDS = ("piece", "list", "whole")


class Liar:
    """Serves a fleet's files in the place of `host`, from memory of its own; `sent` counts answers with pieces."""

    def __init__(self, host: Host, kind: str, allow: list[Host]) -> None:
        files = [File(given["path"], given["size"], given["sha256"]) for given in listed(host.fleet.files)]
        self.holdings = [_holding(file, host.folder, host.fleet.files[file.path], kind) for file in files]
        keys = _WrongList(TOKEN) if kind == "list" else Keys(TOKEN)
        listen = Listen(host.address, host.fleet.port, tuple(one.address for one in allow))
        self.server = server.PieceServer(listen, self.holdings, keys, RateLimit(None), 5, None)
        self.server.start()

    def close(self) -> None:
        self.server.close()


class _WrongList(Keys):
    def sign_list(self, *_: object) -> str:
        return "0" * 64


def _holding(file: File, folder: Path, data: bytes, kind: str) -> Holding:
    """Hold a file whose second MiB differs; its list is of the right bytes where the pieces are to be wrong."""
    wrong = bytearray(data)
    wrong[len(data) // 2] ^= 1
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wrong)
    held = Holding(file, folder)
    held.read_only(lambda _: None)
    held._open(path, 0)
    held._read(lambda _: None)
    if kind != "whole":
        held.sums = [sha256(data[here : here + (1 << 20)]) for here in range(0, len(data), 1 << 20)]
    held.whole, held.absent = True, False
    return held
