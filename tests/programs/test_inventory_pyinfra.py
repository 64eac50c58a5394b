"""Inventories under the real `pyinfra` command: refused before any connection, true host data, no leak."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.loading.ansible.command import command
from rackwright.record.journal import records
from tests import texts
from tests.fresh import fresh
from tests.programs.fake_site import make_site, started
from tests.refused import refusal

INVENTORY = """\
from rackwright.inventory import build
hosts = [("@fake/a1", {"endpoint_name": "r1"}), "@fake/a2"]
globals().update(build(__file__, {"front": hosts, "back": ["@fake/b1"], "empty": []}))
"""
DEPLOY = """\
from pyinfra import host
from rackwright.inventory import settings_of
print(f"settings {host.name} {settings_of(host).port} {settings_of(host).models.hub_token}")
"""
SECRETS = ("hf_leak", "nvapi-leak", "own-leak")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of three hosts."""
    return make_site(tmp_path, DEPLOY, INVENTORY)


def pyinfra(site: Path, *words: str, **variables: str) -> tuple[int, str]:
    return started(site, "pyinfra", "inventory/fleet.py", *words, **variables)


REFUSED = [
    (
        ["--limit", "front", "--exclude", "@fake/*"],
        "--limit and --exclude together leave no host; nothing was connected",
    ),
    (["--limit", "fornt"], "--limit fornt matches no host and no group (did you mean front?); nothing was connected"),
    (["--limit", "all"], "--limit all matches nothing in pyinfra: leave --limit out to mean every host"),
    (["--limit", "empty"], "--limit empty matches no host and no group"),
    (["--exclude", "a1"], "--exclude a1 matches no host and no group"),
    (["--no-wait"], "--no-wait is refused: a failure would not stop the other hosts, and would exit 0; leave it out"),
    (["--dry"], "--dry with -y is refused: pyinfra then looks at no host and reports nothing; leave -y out"),
    (["--data", "dockr=bob"], "  RW0210: --data: dockr: unknown key (did you mean docker?)"),
    (
        ["--data", "port=four"],
        "  RW0212: --data: port: must be a whole number, not 'four'",
    ),
    (
        ["--data", "models.hub_token=hf_leak"],
        "  RW0221: --data: models.hub_token: a secret on the command line shows in the process list: put it into",
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_refused_before_any_connection(site: Path, words: list[str], message: str) -> None:
    status, output = pyinfra(site, "deploy.py", "-y", *words)
    assert message in output
    assert status == 1
    assert "Connecting" not in output
    assert "Traceback" not in output


def test_data_on_the_command_line_is_true_in_the_deploy(site: Path) -> None:
    status, output = pyinfra(site, "deploy.py", "-y", "--data", "port=9100", "--limit", "front")
    assert status == 0, output
    assert sorted(output_line for output_line in output.splitlines() if output_line.startswith("settings")) == [
        "settings @fake/a1 9100 None",
        "settings @fake/a2 9100 None",
    ]


def test_a_limit_leaves_a_host_aside_whose_settings_are_refused(site: Path) -> None:
    (site / "group_vars/back.yml").write_text("prt: 1\n")
    status, output = pyinfra(site, "deploy.py", "-y", "--limit", "front")
    assert status == 0, output
    assert output.count("RW0245") == 1, output
    assert pyinfra(site, "deploy.py", "-y", "--exclude", "back")[0] == 0
    status, output = pyinfra(site, "deploy.py", "-y")
    assert (status, output.count("RW0210")) == (1, 1)


def test_debug_inventory_shows_the_merged_values(site: Path) -> None:
    (site / "group_vars" / "front.yml").write_text("port: 8100\n")
    _, output = pyinfra(site, "debug-inventory")
    assert '"port": 8100' in output
    assert '"endpoint_name": "r1"' in output


def vaulted(text: str) -> str:
    words = [command("ansible-vault"), "encrypt", "--output", "-", "--vault-password-file", "password"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def test_no_secret_is_printed_at_any_verbosity(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    Path("password").write_text("open sesame\n")
    texts = ("models: {hub_token: hf_leak}\n", "registry: {key: nvapi-leak}\n", "my_password: own-leak\n")
    for group, text in zip(("front", "back", "empty"), texts, strict=True):
        Path("group_vars", f"{group}.yml").write_text(vaulted(text))
    Path("group_vars/empty.yml").rename("group_vars/back_more.yml")
    Path("group_vars/back").mkdir()
    Path("group_vars/back.yml").rename("group_vars/back/registry.yml")
    Path("group_vars/back_more.yml").rename("group_vars/back/own.yml")
    with Path("group_vars/all.yml").open("a") as file:
        file.write("own_keys: [my_*]\n")
    for words in (
        ["debug-inventory", "--debug", "-vvv"],
        ["deploy.py", "-y", "--debug", "-vvv"],
        ["deploy.py", "--dry", "--diff"],
    ):
        status, output = pyinfra(site, *words, ANSIBLE_VAULT_PASSWORD_FILE="password")
        assert status == 0, output
        assert "*MASKED*" in output
        assert not [secret for secret in SECRETS if secret in output]


def test_a_host_whose_key_is_not_known_is_told_before_ssh_refuses(site: Path) -> None:
    text = 'globals().update(build(__file__, {"front": [("h1", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]}))\n'
    (site / "inventory" / "fleet.py").write_text(INVENTORY.splitlines()[0] + "\n" + text)
    status, output = pyinfra(site, "deploy.py", "-y", HOME=str(site))
    assert texts.UNKNOWN_KEYS.format(hosts="h1") in output
    assert status == 1
    (site / "group_vars" / "front.yml").write_text("accept_new_host_keys: true\n")
    assert "known_hosts, so SSH" not in pyinfra(site, "deploy.py", "-y", HOME=str(site))[1]


def test_an_inventory_that_pyinfra_cannot_read_gets_an_answer(tmp_path: Path) -> None:
    fresh(tmp_path, ansible=True)
    (tmp_path / "hosts.ini").write_text("[b200]\n@fake/a\n")
    status, output = started(tmp_path, "pyinfra", "hosts.ini", "deploy.py", "-y")
    assert status == 1
    command = "RACKWRIGHT_ANSIBLE_INVENTORY=hosts.ini pyinfra inventory/ansible.py deploy.py"
    assert f"next: {command}" in output
    assert "exception" not in output
    named = {"RACKWRIGHT_ANSIBLE_INVENTORY": "hosts.ini"}
    assert started(tmp_path, "pyinfra", "inventory/ansible.py", "debug-inventory", **named)[0] == 0


@pytest.mark.parametrize("words", [["-y"], ["--dry"]], ids=["deploy", "dry"])
def test_a_mistyped_inventory_is_no_deploy_of_no_host(tmp_path: Path, words: list[str]) -> None:
    site = fresh(tmp_path / "site")
    status, output = started(site, "pyinfra", "inventory/b2000.py", "deploy.py", *words)
    assert status == 1, output
    refusal(output, "RW1306", "inventory/b2000.py", "ls inventory")


def test_a_plain_inventory_of_pyinfras_gets_an_answer(tmp_path: Path) -> None:
    fresh(tmp_path)
    (tmp_path / "plain.py").write_text('hosts = ["@fake/a"]\n')
    status, output = started(tmp_path, "pyinfra", "plain.py", "deploy.py", "-y")
    assert status == 1
    refusal(output, "RW1317", "build()", "group_vars/", "host_vars/")


@pytest.mark.parametrize(
    ("words", "code"),
    [(["tasks.dockerd"], "RW1107"), (["tasks.docker", "users=[]"], "RW1322"), (["tasks.release"], "RW2005")],
)
def test_a_step_that_cannot_run_alone_is_refused_before_any_connection(
    words: list[str], code: str, tmp_path: Path
) -> None:
    fresh(tmp_path)
    (tmp_path / "inventory/fake.py").write_text(INVENTORY)
    status, output = started(tmp_path, "pyinfra", "inventory/fake.py", *words, "-y")
    assert status == 1
    assert "next: " in refusal(output, code)
    assert "Connecting" not in output


def test_a_step_runs_alone_by_its_name_and_leaves_a_record_of_its_name(tmp_path: Path) -> None:
    fresh(tmp_path)
    (tmp_path / "inventory/fake.py").write_text(INVENTORY)
    output = started(tmp_path, "pyinfra", "inventory/fake.py", "tasks.retention", "-y")[1]
    assert "Retention | " in output
    assert [path.stem.rpartition("-")[2] for path in records(tmp_path)] == ["retention"]
