"""Words for ssh in an Ansible inventory: which are understood, and the SSH configuration that they become."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest
from pyinfra.connectors.sshuserclient.config import SSHConfig

from rackwright.loading.ansible.ssh_config import jump_of
from rackwright.settings.ssh.args import configuration, options, parse
from rackwright.settings.ssh.known_hosts import place_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-o ProxyJump=ops@bastion:2222", [("ProxyJump", "ops@bastion:2222")]),
        ("-J ops@bastion", [("ProxyJump", "ops@bastion")]),
        ("-Jbastion -C -q", [("ProxyJump", "bastion")]),
        ("-oProxyJump=bastion -A", [("ProxyJump", "bastion"), ("ForwardAgent", "yes")]),
        (
            "-o ProxyCommand='ssh -o A=b -W %h:%p -q bastion'",
            [("ProxyCommand", "ssh -o A=b -W %h:%p -q bastion")],
        ),
        (
            "-o 'ProxyCommand ssh -o A=b -W %h:%p -q bastion'",
            [("ProxyCommand", "ssh -o A=b -W %h:%p -q bastion")],
        ),
        ("-i ~/.ssh/id -p 2222 -l ops", [("IdentityFile", "~/.ssh/id"), ("Port", "2222"), ("User", "ops")]),
        ("", []),
    ],
)
def test_what_is_understood(text: str, found: list[tuple[str, str]]) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-L 8000:localhost:8000", "-L"),
        ("-o ProxyJump", "-o ProxyJump"),
        ("-o", "-o"),
        ("bastion", "bastion"),
        ("-o 'ProxyJump=a\nHost *'", "line break"),
        ("-o 'ProxyJump=a", "quotation"),
    ],
)
def test_what_is_not_understood_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def test_host_keys_are_checked_whatever_the_words_say() -> None:
    words = {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -J b"}
    assert options(words) == [("ProxyJump", "b")]


def test_a_file_with_host_keys_counts_as_it_does_for_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    values = {"ansible_ssh_common_args": "-o UserKnownHostsFile=/site/keys -o GlobalKnownHostsFile=none"}
    assert options(values) == [("UserKnownHostsFile", "/site/keys")]
    assert place_of("192.0.2.1", {**values, **jump_of("192.0.2.1", values)}).files == ("/site/keys",)


@pytest.mark.parametrize(("file", "is_kept"), [("/site/keys", True), ("/dev/null", False), ("none", False)])
def test_a_proxy_command_keeps_a_file_with_host_keys(file: str, is_kept: bool) -> None:
    command = f"ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile={file} -W %h:%p b"
    text = configuration("192.0.2.1", [("ProxyCommand", command)], "yes", None)
    assert (file in text) is is_kept
    assert "StrictHostKeyChecking=no" not in text


def test_the_words_that_stand_first_before_ssh_count() -> None:
    data = {"ansible_ssh_extra_args": "-J c", "ansible_ssh_common_args": "-J b", "ansible_ssh_args": "-J a"}
    assert [value for _, value in options(data)] == ["a", "b", "c"]


def test_the_configuration_is_for_the_host_alone_and_its_jump_hosts_are_checked() -> None:
    text = configuration("192.0.2.1", [("ProxyJump", "ops@b1:2222,b2")], "yes", "/site/known_hosts")
    config = paramiko.SSHConfig.from_text(text)
    assert config.lookup("192.0.2.1")["proxyjump"] == "ops@b1:2222,b2"
    assert "proxyjump" not in config.lookup("192.0.2.2")
    for hop in ("b1", "b2"):
        options = config.lookup(hop)
        assert (options["stricthostkeychecking"], options["userknownhostsfile"]) == ("yes", "/site/known_hosts")


def test_the_users_own_configuration_counts_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / ".ssh").mkdir()
    user_config = tmp_path / ".ssh" / "config"
    user_config.write_text("Host bastion\n  HostName 192.0.2.250\nHost *\n  User me\n  ProxyJump other\n")
    values = {"ssh_hostname": "192.0.2.1", "ansible_ssh_common_args": "-J bastion"}
    file = Path(jump_of("gpu01", values)["ssh_config_file"])
    assert file.stat().st_mode & 0o777 == 0o600
    with file.open() as opened:
        config = SSHConfig()
        config.parse(opened)
    assert (config.lookup("192.0.2.1")["proxyjump"], config.lookup("192.0.2.1")["user"]) == ("bastion", "me")
    assert config.lookup("bastion")["hostname"] == "192.0.2.250"
    assert jump_of("gpu01", values)["ssh_config_file"] == str(file)
    assert jump_of("gpu01", {"ansible_ssh_common_args": "-C"}) == {}


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("ssh -W %h:%p -q b", "ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/known -W %h:%p -q b"),
        (
            "/usr/bin/ssh -o StrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null -o 'stricthostkeychecking no' b",
            "/usr/bin/ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/known b",
        ),
        ("nc -X connect -x proxy:3128 %h %p", "nc -X connect -x proxy:3128 %h %p"),
    ],
)
def test_a_proxy_command_of_ssh_checks_the_key_of_its_hop(command: str, wanted: str) -> None:
    text = configuration("10.0.0.1", [("ProxyCommand", command)], "yes", "/known")
    assert f"  ProxyCommand {wanted}\n" in text
