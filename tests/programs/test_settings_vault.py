"""ansible-vault through ansible's own command: one start, every source of the password, and clear refusals."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from rackwright.cli.main import main
from rackwright.loading.ansible.command import command
from rackwright.loading.ansible.listing import listing_of
from rackwright.loading.vault import UndecryptableError, decrypt
from rackwright.loading.yaml_file import Ciphertext
from rackwright.messages import SettingsError
from rackwright.settings.origin import Origin
from tests import foreign_texts
from tests.fresh import fresh
from tests.refused import refusal

NEXT = "\nnext: export ANSIBLE_VAULT_PASSWORD_FILE=FILE (a file with the password, or a program that prints it)"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a password file, and no terminal to ask."""
    (tmp_path / "password").write_text("open sesame\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    for name in ("ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@cache
def encrypt(text: str, *options: str) -> Ciphertext:
    words = [command("ansible-vault"), "encrypt", *(options or ("--vault-password-file", "password")), "--output", "-"]
    variables = {name: value for name, value in os.environ.items() if name != "ANSIBLE_VAULT_PASSWORD_FILE"}
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True, env=variables)
    return Ciphertext(done.stdout, Origin("group_vars/all.yml", len(text)))


def encrypt_all(folder: Path, *texts: str) -> list[Ciphertext]:
    """Encrypt several texts by one start of the command."""
    files = [folder / f"text{number}" for number, _ in enumerate(texts)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    subprocess.run([command("ansible-vault"), "encrypt", *files], capture_output=True, check=True)
    origin = Origin("group_vars/all.yml", 1)
    return [Ciphertext(file.read_text(), origin) for file in files]


TEXTS = ["hf_abc", "with newline\n", "", "two\nlines\n\n", "x" * 100_000, "ünïcode {{ braces }}", "\n", "last"]


def test_plaintexts_come_back_in_order_less_one_newline(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    assert decrypt(encrypt_all(site, *TEXTS), site) == [text.removesuffix("\n") for text in TEXTS]


def test_all_secrets_take_one_command_and_no_file_holds_one(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    started: list[list[str]] = []
    popen = subprocess.Popen

    def record(words: list[str], **options: object) -> subprocess.Popen[bytes]:
        started.append(words)
        return popen(words, **options)  # type: ignore[call-overload, no-any-return]

    ciphertexts = [encrypt("hf_visible"), encrypt("nvapi-visible")]
    monkeypatch.setattr(subprocess, "Popen", record)
    decrypt(ciphertexts, site)
    assert len(started) == 1
    assert "visible" not in str(started)
    assert not any(Path(argument).exists() for argument in started[0][2:])


def test_nothing_to_decrypt_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(subprocess, "Popen")
    assert decrypt([], Path()) == []


def test_the_password_may_come_from_a_program(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "ask").write_text("#!/bin/sh\ncat password\n")
    (site / "ask").chmod(0o700)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "./ask")
    assert decrypt([encrypt("a")], site) == ["a"]


def test_the_sites_ansible_cfg_counts_from_another_folder(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ciphertext = encrypt("a")
    (site / "ansible.cfg").write_text(f"[defaults]\nvault_password_file = {site}/password\n")
    elsewhere = site / "elsewhere"
    elsewhere.mkdir()
    for name in ("ansible.cfg", "password"):
        (elsewhere / name).write_text("[defaults]\nvault_password_file = password\n")
    monkeypatch.chdir(elsewhere)
    assert decrypt([ciphertext], site) == ["a"]
    (site / "ansible.cfg").unlink()
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    assert decrypt([ciphertext], site) == ["a"]


def test_vault_ids_are_understood(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "other").write_text("another\n")
    monkeypatch.setenv("ANSIBLE_VAULT_IDENTITY_LIST", "prod@other,dev@password")
    ciphertexts = [encrypt("p", "--encrypt-vault-id", "prod"), encrypt("d", "--encrypt-vault-id", "dev")]
    assert "1.2;AES256;prod" in ciphertexts[0].text
    assert decrypt(ciphertexts, site) == ["p", "d"]


def test_the_wrong_password_names_the_value(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ciphertexts = [encrypt("abcd")]
    (site / "wrong").write_text("wrong\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "wrong")
    (error,) = decrypt(ciphertexts, site)
    refusal(str(error), "RW0204", "group_vars/all.yml:4: ", "no vault secrets were found", NEXT)


def test_a_damaged_value_is_the_one_that_is_named(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    good = encrypt("abc")
    bad = Ciphertext("$ANSIBLE_VAULT;1.1;AES256\nzz\n", Origin("host_vars/h.yml", 9))
    one, error, other = decrypt([good, bad, good], site)
    assert (one, other) == ("abc", "abc")
    refusal(str(error), "RW0204", "host_vars/h.yml:9: ")


def test_no_password_and_nobody_to_ask(site: Path) -> None:
    (error,) = decrypt([encrypt("abcd")], site)
    refusal(str(error), "RW0204", "group_vars/all.yml:4: ", "no vault password ", NEXT)


def test_a_password_file_that_is_not_there(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ciphertext = encrypt("abcd")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "nowhere")
    (error,) = decrypt([ciphertext], site)
    assert re.search(foreign_texts.NO_PASSWORD_FILE.format(path=".*/nowhere"), str(error))


def test_ansible_that_is_not_installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(site / "python"))
    monkeypatch.setenv("PATH", str(site))
    with pytest.raises(SettingsError) as caught:
        command("ansible-vault")
    problem, _, command_line = str(caught.value).partition("; next: ")
    assert "ansible-vault " in problem
    assert command_line.endswith(" pip install ansible-core")


def test_the_password_is_asked_for_where_there_is_a_terminal(site: Path) -> None:
    ciphertext = encrypt("hf_abc")
    child, terminal = pty.fork()
    if child == 0:
        sys.stdin = open(0)  # noqa: SIM115
        os._exit(0 if decrypt([ciphertext], site) == ["hf_abc"] else 1)
    shown = b""
    while b"Vault password: " not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"open sesame\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"hf_abc" not in shown


def test_the_option_of_our_own_commands(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(site)
    (site / "host_vars" / "b200-01.example.com.yml").write_text(encrypt("models: {hub_token: hf_abc}\n").text)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "nowhere")
    assert main(["check", "inventory/b200.py", "--vault-password-file", "password"]) == 0


BAD = "$ANSIBLE_VAULT;1.1;AES256\nzz\n"


def test_a_value_that_cannot_be_decrypted_is_its_hosts_refusal(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh(site)
    groups = '{"b200": ["a", "b", "c"]}'
    (site / "inventory/b200.py").write_text(
        f"from rackwright.inventory import build\nglobals().update(build(__file__, {groups}))\n"
    )
    (site / "host_vars/a.yml").write_text(encrypt("models: {hub_token: hf_abc}\n").text)
    (site / "host_vars/b.yml").write_text("models:\n  hub_token: !vault |\n    $ANSIBLE_VAULT;1.1;AES256\n    zz\n")
    (site / "host_vars/c.yml").write_text(BAD)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    assert main(["check", "inventory/b200.py"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].startswith("a (b200)")
    refusals = [row.strip() for row in printed.err.splitlines() if "RW0204" in row]
    assert [row.partition(": ansible-vault")[0] for row in refusals] == [
        "RW0204: host_vars/b.yml:2: models.hub_token",
        "RW0204: host_vars/c.yml",
    ]
    assert main(["check", "inventory/b200.py", "--limit", "a"]) == 0
    assert main(["render", "inventory/b200.py", "--limit", "a", "--out", str(site / "out")]) == 0
    assert main(["check", "inventory/b200.py", "--limit", "c"]) == 1


def test_values_of_one_bad_file_leave_the_others_theirs(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    bad = [Ciphertext(BAD, Origin("host_vars/a.yml", number)) for number in range(4)]
    found = decrypt([*bad, encrypt("abc")], site)
    assert found[4] == "abc"
    assert {one.code for one in found[:4] if isinstance(one, UndecryptableError)} == {"RW0204"}


def test_a_wrong_password_is_not_tried_for_each_of_many(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ciphertext = encrypt("abcd")
    (site / "wrong").write_text("wrong\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "wrong")
    started: list[object] = []
    popen = subprocess.Popen

    def record(words: list[str], **options: object) -> subprocess.Popen[bytes]:
        started.append(words)
        return popen(words, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", record)
    many = [Ciphertext(ciphertext.text, Origin(f"host_vars/h{number}.yml", 1)) for number in range(50)]
    found = decrypt(many, site)
    assert len(found) == 50
    assert all(isinstance(one, UndecryptableError) for one in found)
    assert len(started) == 3


def test_a_value_of_the_inventory_itself_is_its_hosts_too(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    value = "!vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        zz"
    rows = f"all:\n  hosts:\n    a: {{}}\n    b:\n      api_key: {value}\n"
    (site / "hosts.yml").write_text(rows)
    listing = listing_of(site / "hosts.yml", site)
    assert list(listing.hosts) == ["a", "b"]
    assert {owner: [(one.code, one.path) for one in wrong] for owner, wrong in listing.problems.items() if wrong} == {
        ("host_vars", "b"): [("RW0204", ("api_key",))]
    }
