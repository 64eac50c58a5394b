"""known_hosts line by line as OpenSSH reads it: every form of sshd(8), and no line that loses another one."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from rackwright.adapter.ssh.hostkey_check import Trust, _ordered
from rackwright.adapter.ssh.transport import BoundedTransport
from rackwright.settings.ssh.known_hosts import HostKeyPlace, advice, is_unknown
from rackwright.settings.ssh.known_keys import HostNames, KeyVerdict, hashed, lines_of

OWN, OTHER = (paramiko.ECDSAKey.generate() for _ in range(2))
RSA = paramiko.RSAKey.generate(1024)
KEY = f"{OWN.get_name()} {OWN.get_base64()}"
WRONG = f"{OTHER.get_name()} {OTHER.get_base64()}"
BASE64 = OWN.get_base64()


def names(file: Path, entry: str = "gpu01", also: str = "") -> HostNames:
    return HostNames(entry, also, (str(file),))


def verdict(file: Path, entry: str = "gpu01", also: str = "", key: paramiko.PKey = OWN) -> KeyVerdict:
    return names(file, entry, also).judge(key.get_name(), key.get_base64())[0]


BAD = [
    "# a comment",
    "",
    "   ",
    "\t# another",
    "gpu01",
    "gpu01 ssh-ed25519",
    "gpu01 ssh-ed25519 not-base64!",
    "gpu01 ssh-ed25519 AAAA",
    f"gpu01 ssh-ed25519 {BASE64}",
    "gpu01 ssh-dss AAAAB3NzaC1kc3MAAACBAP",
    "gpu01 2048 35 1234567890",
    "gpu01 sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAA",
    "gpu01 webauthn-sk-ecdsa-sha2-nistp256@openssh.com AAAA",
    "@frobnicate gpu01 " + KEY,
    "@revoked",
    "@cert-authority * " + WRONG,
    "|1|broken",
    "|1|AAAA|BBBB " + KEY,
    "|2|AAAA|BBBB " + KEY,
    "gpu99 " + WRONG,
    "\udcff\udcfe latin ssh-rsa AAAA",
    "x" * 200_000,
    "gpu01 " + "y" * 200_000,
    "@revoked gpu01 " + WRONG,
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_no_line_loses_another_one(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(f"{bad}\ngpu01 {KEY}".encode(errors="surrogateescape"))
    assert verdict(file) is KeyVerdict.KNOWN
    assert names(file).usable
    assert verdict(file, key=RSA) is KeyVerdict.CHANGED


@pytest.mark.parametrize(
    "entry",
    [
        f"gpu01 {KEY}",
        f"gpu01 {KEY} a comment # more",
        f"  gpu01\t{KEY}\r",
        f"a,gpu01,b {KEY}",
        f"GPU01 {KEY}",
        f"gpu* {KEY}",
        f"gpu0? {KEY}",
        f"*,!gpu02 {KEY}",
        f"{hashed('gpu01', b'x' * 20)} {KEY}",
        f"{paramiko.HostKeys.hash_host('gpu01')} {KEY}",
    ],
)
def test_every_form_of_a_name_is_known_as_ssh_keygen_finds_it(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(f"# first\n{entry}\n".encode())
    assert verdict(file) is KeyVerdict.KNOWN
    found = subprocess.run(["ssh-keygen", "-F", "gpu01", "-f", str(file)], capture_output=True, text=True, check=False)
    assert BASE64 in found.stdout


@pytest.mark.parametrize("about", ["*,!gpu01", "!gpu01,*", "gpu", "[gpu01]:2222", "gpu0[1]", "!gpu02"])
def test_what_is_not_about_a_host_is_not(tmp_path: Path, about: str) -> None:
    (tmp_path / "known_hosts").write_text(f"{about} {KEY}\n")
    assert verdict(tmp_path / "known_hosts") is KeyVerdict.UNKNOWN


@pytest.mark.parametrize(
    "row",
    [
        f"\fgpu01 {KEY}",
        f"gpu01\v {KEY}",
        f"\f gpu01 {KEY}",
        f"gpu01 {OWN.get_name()}\f {BASE64}",
        f"gpu01 {KEY}=",
        f"gpu01 {KEY}==",
        f"gpu01 {KEY.rstrip('=')}=====",
        f"gpu01 {KEY.rstrip('=')[:-1]}",
    ],
)
def test_a_key_in_a_line_that_ssh_does_not_take_is_not_known(tmp_path: Path, row: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(f"{row}\n".encode())
    assert verdict(file) is KeyVerdict.UNKNOWN
    file.write_bytes(f"{row}\ngpu01 {KEY}\n".encode())
    assert verdict(file) is KeyVerdict.KNOWN


@pytest.mark.parametrize("more", ["", "=", "=="])
def test_a_revoked_key_counts_in_a_broken_line_as_well(tmp_path: Path, more: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpu01 {KEY}\n@revoked * {KEY}{more}\n")
    assert verdict(file) is KeyVerdict.REVOKED


def test_a_port_of_its_own_and_the_name_without_it(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpu01 {KEY}\n")
    assert verdict(file, "[gpu01]:2222", "gpu01") is KeyVerdict.KNOWN
    assert verdict(file, "[gpu01]:2222", "gpu01", OTHER) is KeyVerdict.UNKNOWN
    file.write_text(f"[gpu01]:2222 {WRONG}\ngpu01 {KEY}\n[gpu*]:2200 {KEY}\n")
    assert verdict(file, "[gpu01]:2222", "gpu01", OTHER) is KeyVerdict.KNOWN
    assert verdict(file, "[gpu01]:2222", "gpu01", RSA) is KeyVerdict.CHANGED
    assert verdict(file, "[gpu05]:2200", "gpu05") is KeyVerdict.KNOWN


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("revoked", ["gpu01", "*", hashed("gpu01", b"y" * 20)])
def test_a_revoked_key_is_refused_wherever_it_stands(tmp_path: Path, order: int, revoked: str) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(f"gpu01 {KEY}\n")
    second.write_text(f"@revoked {revoked} {KEY}\n")
    key_files = HostKeyPlace("gpu01", 22, "gpu01", (str(first),), (str(second),))
    assert key_files.names.judge(OWN.get_name(), BASE64) == (KeyVerdict.REVOKED, f"{second}:1")
    for accepts_new in (True, False):
        with pytest.raises(paramiko.SSHException, match=f"is revoked by {second}:1"):
            Trust(key_files, accepts_new).missing_host_key(None, "gpu01", OWN)
    assert first.read_text() == f"gpu01 {KEY}\n"


def test_one_of_several_keys_of_a_host_is_enough(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text(f"gpu01 {WRONG}\ngpu01 {KEY}\n")
    assert verdict(tmp_path / "known_hosts") is KeyVerdict.KNOWN


def test_an_authority_alone_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"\n@cert-authority *.example.com {WRONG}\n")
    data = {"gpu01.example.com": {"ssh_strict_host_key_checking": "yes", "ssh_known_hosts_file": str(file)}}
    assert is_unknown("gpu01.example.com", data["gpu01.example.com"])
    assert f"{file}:2 names a certificate " in advice(data)
    key_files = HostKeyPlace("gpu01.example.com", 22, "gpu01.example.com", (str(file),))
    with pytest.raises(paramiko.SSHException, match=rf"No host key .*; {file}:2 names"):
        Trust(key_files, False).missing_host_key(None, "gpu01.example.com", OTHER)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("gpu01 ssh-ed25519 AA!A", "its key is broken"),
        (f"gpu01 ssh-rsa {BASE64}", "its key is not of kind ssh-rsa"),
        ("gpu01 ssh-dss AAAAB3NzaC1kc3MAAACBAP0=", "keys of kind ssh-dss are not used here"),
        ("gpu01 ssh-rsa", "it has no key"),
    ],
)
def test_a_line_of_no_use_is_named_where_it_matters(tmp_path: Path, entry: str, why: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpu02 {KEY}\n{entry}\n")
    data = {"gpu01": {"ssh_strict_host_key_checking": "yes", "ssh_known_hosts_file": str(file)}}
    assert is_unknown("gpu01", data["gpu01"])
    assert f"{file}:2 is of no use: {why}" in advice(data)


def test_files_that_cannot_be_read_are_named_text(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    files = [*(str(tmp_path / name) for name in ("folder", "pipe", "missing")), "/dev/null"]
    assert [row for file in files for row in lines_of(file).about("gpu01")] == []
    assert HostNames("gpu01", "", tuple(files)).remarks() == [
        f"{tmp_path}/folder is not a file",
        f"{tmp_path}/pipe is not a file",
        "/dev/null holds no keys: name a file, or leave UserKnownHostsFile out",
    ]


def test_another_connector_has_no_host_key() -> None:
    assert not is_unknown("@docker/x", {"ssh_strict_host_key_checking": "yes"})


# -- a new key


def test_a_new_key_is_appended_after_a_line_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"
    key_files = HostKeyPlace("gpu01", 2222, "[gpu01]:2222", (str(file),))
    Trust(key_files, True).missing_host_key(None, "x", OWN)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text(f"gpu02 {WRONG}")
    Trust(key_files, True, is_hashed=True).missing_host_key(None, "x", OWN)
    first, second = file.read_text().splitlines()
    assert first == f"gpu02 {WRONG}"
    assert second.startswith("|1|")
    assert verdict(file, "[gpu01]:2222") is KeyVerdict.KNOWN
    with pytest.raises(paramiko.BadHostKeyException):
        Trust(key_files, True).missing_host_key(None, "x", OTHER)


def test_a_known_kind_is_asked_for_first(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text(f"gpu01 {RSA.get_name()} {RSA.get_base64()}\n")
    made: list[Any] = []
    trust = Trust(HostKeyPlace("gpu01", 22, "gpu01", (str(tmp_path / "known_hosts"),)), False)
    types = ("ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
    assert _ordered(types, trust.target.names.kinds)[:2] == ("rsa-sha2-512", "rsa-sha2-256")
    sock = SimpleNamespace(settimeout=lambda _: None, close=lambda: None)
    made.append(trust.transport(sock))
    assert isinstance(made[0], BoundedTransport)
    assert made[0].get_security_options().key_types[0] == "rsa-sha2-512"
