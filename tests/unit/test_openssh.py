"""What ssh would do is asked of ssh: every Match, Include and token means what ssh says, or is refused."""

from __future__ import annotations

import getpass
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.messages import SettingsError
from rackwright.settings.connection import defaults, login
from rackwright.settings.ssh import openssh, side_by_side
from rackwright.settings.ssh.known_hosts import not_followed, place_of, question_of
from rackwright.settings.ssh.openssh import SshQuestion, ask, ask_all
from rackwright.settings.ssh.plain_config import read_plainly
from tests.refused import refused


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir(mode=0o700)
    return tmp_path


def write(file: Path, text: str) -> str:
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("Match host gpu*\n User right\nHost *\n User ops\n", "right"),
        ("Match originalhost other\n User wrong\nHost *\n User ops\n", "ops"),
        ("Match exec false\n User wrong\nHost *\n User ops\n", "ops"),
        ('Match exec "test %h = gpu01.example.com"\n User right\n', "right"),
        ("Match canonical\n User wrong\nHost *\n User ops\n", "ops"),
        ("Match all\n User right\n", "right"),
        ("Match user nobody\n User wrong\nHost *\n User ops\n", "ops"),
        (f"Match localuser {getpass.getuser()}\n User right\n", "right"),
        ("Host gpu* !gpu01.*\n User wrong\nHost *\n User ops\n", "ops"),
        ('user = "right"\n', "right"),
        ("USER right # for everybody\n", "right"),
        ("Host gpu01\n User wrong\n", getpass.getuser()),
    ],
)
def test_a_match_means_what_ssh_says(tmp_path: Path, text: str, user: str) -> None:
    file = write(tmp_path / "config", text)
    assert login("gpu01.example.com", {"ssh_config_file": file}) == user


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("Host *\n User a\nFrobnicate yes\n", "line 3: Bad configuration option: frobnicate"),
        ("Match frobnicated prod\n User a\n", "line 1"),
        ("Host *\n Port many\n", "line 2"),
        ("Match host\n", "line 1"),
        ("Host *\n ProxyJump\n", "line 2"),
    ],
)
def test_what_ssh_refuses_is_refused_with_file_and_line(tmp_path: Path, text: str, location: str) -> None:
    file = write(tmp_path / "config", text)
    with pytest.raises(SettingsError) as raised:
        login("gpu01", {"ssh_config_file": file})
    assert raised.value.code == "RW0125"
    assert f"{file}" in str(raised.value)
    assert location in str(raised.value)
    assert str(raised.value).startswith("RW0125: gpu01: ")
    assert f"next: ssh -T -G -F {file} -- gpu01" in str(raised.value)


def test_includes_are_relative_to_ssh_and_nested(tmp_path: Path) -> None:
    write(tmp_path / "b", "User right\n")
    write(tmp_path / "a", f"Include {tmp_path}/b\n")
    assert login("x", {"ssh_config_file": write(tmp_path / "config", f"Include {tmp_path}/[a]\n")}) == "right"


def test_what_the_inventory_says_is_given_to_ssh(tmp_path: Path) -> None:
    file = write(tmp_path / "config", "Match user ops\n Port 2222\nHost *\n HostName %h.example.com\n")
    key_files = place_of("gpu01", {"ssh_config_file": file, "ssh_user": "ops"})
    assert (key_files.address, key_files.port, key_files.entry) == (
        "gpu01.example.com",
        2222,
        "[gpu01.example.com]:2222",
    )
    assert place_of("gpu01", {"ssh_config_file": file, "ssh_port": 22}).entry == "gpu01.example.com"


def test_the_users_file_counts_and_no_file_asks_nobody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[object] = []
    real = openssh.run_all

    def run_all(commands: Any) -> Any:
        requests.extend(commands)
        return real(commands)

    monkeypatch.setattr(openssh, "run_all", run_all)
    assert login("gpu01", {}) == getpass.getuser()
    assert requests == []
    write(home / ".ssh" / "config", "# nothing yet\nHost *\n  SendEnv LANG\n")
    ask_all([SshQuestion("gpu01")])
    write(home / ".ssh" / "config", "Host gpu01\n  User ops\n")
    assert login("gpu01", {}) == "ops"
    assert defaults("gpu01", {}) == {"ssh_strict_host_key_checking": "yes", "_sudo": True}
    count = len(requests)
    assert login("gpu01", {}) == "ops"
    assert len(requests) == count, "what was asked is remembered"


def test_files_of_known_hosts_and_an_alias_are_sshs(tmp_path: Path) -> None:
    text = "UserKnownHostsFile /a /b\nGlobalKnownHostsFile /c\nHostKeyAlias rack1\nPort 2222\n"
    key_files = place_of("gpu01", {"ssh_config_file": write(tmp_path / "config", text)})
    assert (key_files.entry, key_files.files, key_files.shared, key_files.also) == ("rack1", ("/a", "/b"), ("/c",), "")
    plain = place_of("gpu01", {"ssh_config_file": write(tmp_path / "other", "Port 2222\nUserKnownHostsFile none\n")})
    assert (plain.entry, plain.also, plain.files) == ("[gpu01]:2222", "gpu01", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ProxyCommand nc %h %p\nProxyUseFdpass yes\n", "ProxyUseFdpass yes"),
        ("RevokedHostKeys /etc/krl\n", "RevokedHostKeys /etc/krl"),
        ("PubkeyAuthentication no\n", "PubkeyAuthentication no"),
        ("PreferredAuthentications gssapi-with-mic,password\n", "PreferredAuthentications gssapi-with-mic,password"),
    ],
)
def test_what_cannot_be_left_out_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "config", text)
    with refused("RW0145", f"gpu01: the SSH configuration in {file} ", f"`{message}`", "; next: ", error=SettingsError):
        not_followed([("gpu01", {"ssh_config_file": file})])


def test_what_is_left_out_is_named_once(tmp_path: Path) -> None:
    text = "StrictHostKeyChecking no\nKnownHostsCommand /bin/keys\nCheckHostIP yes\nCiphers aes256-ctr\n"
    file = write(tmp_path / "config", text)
    [message] = not_followed((f"gpu{number}", {"ssh_config_file": file}) for number in range(3))
    options = ("knownhostscommand", "checkhostip", "ciphers", "stricthostkeychecking no")
    assert message.startswith(f"{file}: not taken: {', '.join(options)} (")
    assert not_followed([("gpu01", {"ssh_config_file": write(tmp_path / "fine", "User ops\nProxyJump b\n")})]) == []


def test_a_file_that_is_not_there_is_told_before_anything_connects(tmp_path: Path) -> None:
    with refused("RW0135", "gpu01: ssh_config_file: ", "/none", error=SettingsError):
        not_followed([("gpu01", {"ssh_config_file": str(tmp_path / "none")})])
    assert not_followed([("@docker/x", {"ssh_config_file": str(tmp_path / "none")})]) == []


def test_a_match_exec_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "SECONDS", 0.5)
    file = write(tmp_path / "config", 'Match exec "sleep 60"\n User a\n')
    begun = time.monotonic()
    with pytest.raises(SettingsError, match="it took too long"):
        ask(SshQuestion("gpu01", file))
    assert time.monotonic() - begun < 10


def test_a_match_exec_that_floods_or_leaves_a_child_holds_nobody(tmp_path: Path) -> None:
    file = write(
        tmp_path / "config", 'Match exec "yes 2>&1 >&2 | head -c 9000000 >&2; sleep 40 & exit 0"\n User right\n'
    )
    begun = time.monotonic()
    assert ask(SshQuestion("gpu01", file)).get("user") == "right"
    assert time.monotonic() - begun < 20


def test_many_hosts_are_asked_side_by_side(tmp_path: Path) -> None:
    file = write(tmp_path / "config", "Host *\n HostName %h.example.com\n")
    questions = [SshQuestion(f"gpu{number:03}", file) for number in range(40)]
    answers = ask_all(questions)
    assert [answer.get("hostname") for answer in answers.values()] == [f"{one.host}.example.com" for one in questions]


# -- a machine without ssh


@pytest.fixture
def _no_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *more: None if name == "ssh" else real(name, *more))


@pytest.mark.usefixtures("_no_ssh")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Match tagged prod\n User wrong\n", 1),
        ("Host *\n User a\nMatch exec true\n User b\n", 3),
        ("Host *\nInclude more\n", 2),
        ('User "a b"\n', 1),
        ("IdentityFile %d/x\n", 1),
        ("nonsense\n", 1),
    ],
)
def test_without_ssh_only_what_is_certain_is_read(tmp_path: Path, text: str, number: int) -> None:
    file = write(tmp_path / "config", text)
    with refused("RW0125", f"{file}:{number}: ", "openssh-client", error=SettingsError):
        login("gpu01", {"ssh_config_file": file})


@pytest.mark.usefixtures("_no_ssh")
def test_without_ssh_a_plain_file_counts(tmp_path: Path) -> None:
    text = "Host gpu*\n  User=ops\n  IdentityFile a\n  IdentityFile b\n  HostName %h.example.com\nMatch all\nUser x\n"
    file = write(tmp_path / "config", text)
    assert login("gpu01", {"ssh_config_file": file}) == "ops"
    assert read_plainly("gpu01", Path(file)) == {
        "user": ("ops",),
        "identityfile": ("a", "b"),
        "hostname": ("gpu01.example.com",),
    }


def test_a_word_of_an_inventory_is_never_an_option_of_ssh(tmp_path: Path) -> None:
    question = question_of("gpu01", {"ssh_hostname": "-oProxyCommand=id", "ssh_user": "-x"})
    words = openssh._words(question)
    assert words[words.index("--") + 1 :] == ["-oProxyCommand=id"]
    assert os.path.basename(words[0]) == "ssh"  # noqa: PTH119
