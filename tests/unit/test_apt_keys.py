"""A repository's key is trusted by its pinned fingerprint alone, and comes by https, redirects too."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import host_script
from rackwright.settings.host_settings import HostSettings

KEYS = Path(__file__).parents[1] / "fixtures"
ED, RSA = "CEA4E3674242836C30CF58C6285F7443E5B5E3B3", "AB8733D7D59C015A5718E4CFF99A55BEE522F508"
"""As gpg names them."""
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/m"}


def sh(script: str, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    text = host_script("apt").replace("/run/rackwright", str(tmp_path)).replace("/etc/apt", f"{tmp_path}/etc/apt")
    return subprocess.run(["sh", "-c", f"{text}\n{script}", "sh", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("file", "found"), [("apt-key-ed25519", [ED]), ("apt-key-rsa3072", [RSA]), ("apt-keys-both", [ED, RSA])]
)
def test_fingerprints_are_those_that_gpg_tells(tmp_path: Path, file: str, found: list[str]) -> None:
    key = tmp_path / "key"
    for text in ((KEYS / f"{file}.asc").read_text(), (KEYS / f"{file}.asc").read_text().replace("\n", "\r\n")):
        key.write_text(text)
        assert sh('fingerprints "$1"', tmp_path, str(key)).stdout.split() == found
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("text", ["", "<html>not found</html>", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!\n"])
def test_what_is_no_key_has_none(tmp_path: Path, text: str) -> None:
    key = tmp_path / "key"
    key.write_text(text)
    assert sh('fingerprints "$1"', tmp_path, str(key)).stdout.split() == []
    done = sh('only_pinned "$1" https://x/gpg "$2"', tmp_path, str(key), ED)
    assert (done.returncode, "did not answer with a key" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("file", "pinned", "taken"),
    [
        ("apt-key-rsa3072", RSA, True),
        ("apt-key-rsa3072", f"{ED} {RSA}", True),
        ("apt-key-rsa3072", ED, False),
        ("apt-keys-both", RSA, False),
        ("apt-keys-both", ED, False),
        ("apt-keys-both", f"{ED} {RSA}", True),
    ],
)
def test_a_file_with_any_other_key_is_not_taken(tmp_path: Path, file: str, pinned: str, taken: bool) -> None:
    """Every key in the file would be trusted by apt."""
    key = tmp_path / "key"
    key.write_text((KEYS / f"{file}.asc").read_text())
    done = sh('only_pinned "$1" https://x/gpg "$2"', tmp_path, str(key), pinned)
    assert (done.returncode == 0, key.exists()) == (taken, taken)
    if not taken:
        assert "which is not pinned" in done.stdout
        assert "mirrors.docker_keys or mirrors.container_toolkit_keys" in done.stdout


def test_no_repository_is_added_by_a_key_that_is_not_pinned(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    call_file = tmp_path / "curl-calls"
    (tmp_path / "bin" / "curl").write_text(
        f'#!/bin/sh\necho "$@" >{call_file}\nwhile [ "$1" != -o ]; do shift; done\ncp {KEYS}/apt-key-rsa3072.asc "$2"\n'
    )
    (tmp_path / "bin" / "curl").chmod(0o755)
    add = f"PATH={tmp_path}/bin:$PATH\nrefresh_one() {{ :; }}\nadd_repository docker https://x/gpg 'deb x' \"$1\""
    assert sh(add, tmp_path, ED).returncode == 1
    apt_folder = tmp_path / "etc" / "apt"
    assert not (apt_folder / "sources.list.d").exists()
    assert list((apt_folder / "keyrings").iterdir()) == []
    assert "--proto =https --proto-redir =https" in call_file.read_text()
    (apt_folder / "sources.list.d").mkdir()
    assert sh(add, tmp_path, RSA).returncode == 0
    assert (apt_folder / "sources.list.d" / "rackwright-docker.list").read_text() == "deb x\n"


@pytest.mark.parametrize(
    "mirrors",
    [{"docker": "http://mirror.example.com"}, {"container_toolkit": "ftp://x"}, {"docker_keys": ["ABC"]}],
)
def test_an_open_address_and_half_a_fingerprint_are_refused(mirrors: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pattern"):
        HostSettings.model_validate({"model": MODEL, "mirrors": mirrors})
