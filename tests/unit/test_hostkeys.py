"""known_hosts after a rebuild: this host's new key, every other host's line as it was."""

from __future__ import annotations

import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.adapter.ssh.client import line_to
from rackwright.adapter.ssh.rebuilt_hostkeys import HostKey, accept, offered, trusted, without
from rackwright.cli.rebuild import _compared, _new_keys
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.settings.ssh.known_hosts import HostKeyPlace, place_of
from tests.unit.test_plan import settings

OLD, NEW, OTHER = (paramiko.ECDSAKey.generate() for _ in range(3))
NAMES = st.sampled_from(["a", "b.example.com", "10.0.0.1", "[a]:2222", "ab"])


def of(key: paramiko.PKey) -> HostKey:
    return HostKey(key.get_name(), key.get_base64(), str(key.fingerprint))


def known_host(names: str, key: paramiko.PKey = OTHER) -> str:
    return f"{names} {key.get_name()} {key.get_base64()}"


def key_files(path: Path, *more: Path, entry: str = "a") -> HostKeyPlace:
    return HostKeyPlace("127.0.0.1", 22, entry, (str(path), *map(str, more)))


def test_only_this_hosts_lines_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    hashed = paramiko.HostKeys.hash_host("a")
    unchanged = [
        "# a comment on a",
        known_host("ab"),
        known_host(paramiko.HostKeys.hash_host("b")),
        known_host("[a]:2222"),
        f"@revoked {known_host('a')}",
        f"@cert-authority {known_host('*')}",
        known_host("*.example.com"),
        "",
    ]
    file.write_text(
        "\n".join([*unchanged, known_host("a", OLD), known_host(hashed, OLD), known_host("a,b,c", OLD)]) + "\n"
    )
    file.chmod(0o640)
    assert trusted(key_files(file)) == [of(OLD)] * 3
    assert accept(key_files(file), [of(NEW)], "today") == file
    after = file.read_text().splitlines()
    assert [row for row in after if not row.startswith("# before")] == [
        *unchanged,
        known_host("b,c", OLD),
        known_host("a", NEW),
    ]
    assert known_host("a", OLD) in [one.partition(" of today: ")[2] for one in after if one.startswith("# before")]
    assert trusted(key_files(file)) == [of(NEW)]
    assert trusted(key_files(file, entry="b")) == [of(OTHER), of(OLD)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["known_hosts"]


def test_openssh_finds_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(known_host(paramiko.HostKeys.hash_host("[a]:2222"), OLD) + "\n")
    accept(key_files(file, entry="[a]:2222"), [of(NEW)], "today")
    found = subprocess.run(
        ["ssh-keygen", "-F", "[a]:2222", "-f", str(file)], capture_output=True, text=True, check=True
    )
    assert NEW.get_base64() in found.stdout
    assert OLD.get_base64() not in found.stdout


def test_every_file_that_names_the_host_is_changed_and_links_stay_links(tmp_path: Path) -> None:
    real, link, second = tmp_path / "real", tmp_path / "link", tmp_path / "second"
    real.write_text(known_host("a", OLD) + "\n")
    link.symlink_to(real)
    second.write_text(f"{known_host('a', OLD)}\n{known_host('b')}\n")
    accept(key_files(link, second), [of(NEW)], "today")
    assert link.is_symlink()
    assert trusted(key_files(link, second)) == [of(NEW)]
    assert known_host("b") in second.read_text()


def test_a_file_that_is_not_there_is_made_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / ".ssh" / "known_hosts"
    accept(key_files(file), [of(NEW)], "today")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3, unique=True), max_size=5), NAMES)
def test_no_other_host_ever_loses_its_key(lines: list[list[str]], entry: str) -> None:
    text = "".join(f"{known_host(','.join(names))}\n" for names in lines)
    after = [row for row in without(text, entry, "today").splitlines() if not row.startswith("#")]
    remaining = sorted(name for row in after for name in row.split()[0].split(","))
    assert remaining == sorted(name for names in lines for name in names if name != entry)


# -- what a server shows


class _Server(paramiko.ServerInterface):
    pass


@pytest.fixture
def server() -> Iterator[int]:
    """Serve the key NEW at a port."""
    listener = socket.create_server(("127.0.0.1", 0))
    transports: list[paramiko.Transport] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(NEW)
            transport.start_server(event=threading.Event(), server=_Server())
            transports.append(transport)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for transport in transports:
        transport.close()


def entry_at(port: int, file: Path) -> InventoryHost:
    data = {
        "ssh_hostname": "127.0.0.1",
        "ssh_port": port,
        "ssh_known_hosts_file": str(file),
        "ssh_config_file": "/none",
    }
    return InventoryHost("h", (), data, settings(), {})


def test_a_new_key_is_accepted_only_as_the_user_says(server: int, tmp_path: Path) -> None:
    entry = entry_at(server, tmp_path / "known_hosts")
    at = place_of(entry.name, entry.data)
    assert at.entry == f"[127.0.0.1]:{server}"
    assert offered("h", at, lambda: line_to(entry.data, at)) == [of(NEW)]
    assert _new_keys(entry, at, None, yes=False) == [of(NEW)]
    assert _new_keys(entry, at, of(NEW).fingerprint, yes=True) == [of(NEW)]
    with pytest.raises(RackwrightError, match="only with --fingerprint"):
        _new_keys(entry, at, None, yes=True)
    with pytest.raises(RackwrightError, match="another machine may answer"):
        _new_keys(entry, at, of(OLD).fingerprint, yes=True)
    accept(at, [of(NEW)], "today")
    assert _new_keys(entry, at, None, yes=True) == []


def test_a_host_that_does_not_answer_is_said_and_nothing_changes(tmp_path: Path) -> None:
    entry = entry_at(1, tmp_path / "known_hosts")
    at = place_of("h", entry.data)
    with pytest.raises(RackwrightError, match="does not answer"):
        offered("h", at, lambda: line_to(entry.data, at))


def test_only_the_compared_key_is_accepted() -> None:
    assert _compared("h", [], [of(NEW), of(OTHER)], of(OTHER).fingerprint + "=") == [of(OTHER)]
    assert _compared("h", [of(NEW)], [of(NEW)], of(NEW).fingerprint) == []
