"""Secrets that commands print: once a run, with limits, in no file, argument or message."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.cli.main import main
from rackwright.inventory import load_inventory
from rackwright.loading import secret_commands
from rackwright.loading.ansible.command import command
from rackwright.loading.secret_commands import SecretCommand, answers_of
from rackwright.masks import MASK
from rackwright.messages import SettingsError
from rackwright.processes import started
from rackwright.settings.secret import Secret
from tests.refused import refusal, refused

MODEL = """\
engine_kind: vllm
image: vllm/vllm-openai:v0.14.1
model: {repository: openai/gpt-oss-20b, revision: main, mount: /models/gpt-oss}
own_keys: [note]
"""
KEY = "nvapi-0123456789abcdef"
INVENTORY = """\
from rackwright.inventory import build

globals().update(build(__file__, {"gpus": ["h1", "h2", "h3"]}))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("inventory", "group_vars", "host_vars"):
        (tmp_path / name).mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "inventory" / "fleet.py").write_text(INVENTORY)
    (tmp_path / "group_vars" / "all.yml").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(secret_commands.VARIABLE, "")
    monkeypatch.setattr(secret_commands, "_answers", {})
    monkeypatch.setattr(secret_commands, "_given", [])
    return tmp_path


def program(site: Path, text: str, name: str = "say") -> list[str]:
    """Write a program of the site's and return the words that start it."""
    path = site / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [f"./{name}"]


def ngc(site: Path, words: object) -> None:
    (site / "group_vars" / "all.yml").write_text(f"{MODEL}registry: {{key: {{command: {words}}}}}\n")


def keys(inventory: str = "inventory/fleet.py") -> list[str]:
    hosts = load_inventory(inventory)
    return [host.settings.registry.key.unmask() if host.settings.registry.key else "" for host in hosts]


def is_gone(pid: int) -> bool:
    for _ in range(200):
        if started(pid) is None:
            return True
        time.sleep(0.05)
    return False


def answer(site: Path, text: str) -> Secret | str:
    one = SecretCommand(tuple(program(site, text)), site)
    return answers_of([one])[one]


def test_all_hosts_have_what_one_run_of_it_prints(site: Path) -> None:
    ngc(site, program(site, f"echo run >>runs; echo {KEY}"))
    assert keys() == [KEY] * 3
    assert keys() == [KEY] * 3
    assert (site / "runs").read_text() == "run\n"
    assert load_inventory("inventory/fleet.py")[0].data["registry"] == {"key": Secret(KEY)}


def test_a_second_inventory_of_the_run_asks_no_second_time(site: Path) -> None:
    (site / "inventory" / "other.py").write_text(INVENTORY.replace("h1", "other"))
    ngc(site, program(site, f"echo run >>runs; echo {KEY}"))
    assert keys() == keys("inventory/other.py")
    assert (site / "runs").read_text() == "run\n"


def test_only_the_command_that_counts_is_run(site: Path) -> None:
    ngc(site, program(site, "echo run >>runs; echo weaker"))
    (site / "group_vars" / "gpus.yml").write_text(f"registry: {{key: {KEY}}}\n")
    assert keys() == [KEY] * 3
    assert not (site / "runs").exists()


def test_a_host_may_have_a_command_of_its_own(site: Path) -> None:
    ngc(site, program(site, "echo of-all"))
    (site / "host_vars" / "h2.yml").write_text(f"registry: {{key: {{command: {program(site, f'echo {KEY}', 'own')}}}}}")
    assert keys() == ["of-all", KEY, "of-all"]


def test_a_process_of_the_run_asks_no_second_time(site: Path) -> None:
    ngc(site, program(site, f"echo run >>runs; echo {KEY}"))
    code = (
        "from rackwright.inventory import load_inventory as load\n"
        "print(load('inventory/fleet.py')[0].settings.registry.key.unmask())"
    )
    keys()
    named = os.environ[secret_commands.VARIABLE]
    assert stat.S_ISREG(Path(named).stat().st_mode)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == f"{KEY}\n"
    assert (site / "runs").read_text() == "run\n"
    # What such a process reads after the run has ended is nothing, and it asks for itself.
    environment = {**os.environ, secret_commands.VARIABLE: "/proc/1/fd/999"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    assert (site / "runs").read_text() == "run\nrun\n"


@pytest.mark.parametrize("printed", ["printf 'key\\n'", "printf 'key'", "printf 'key\\r\\n'", "printf 'key\\n\\n'"])
def test_line_breaks_at_its_end_are_not_the_secret(site: Path, printed: str) -> None:
    assert answer(site, printed) == Secret("key")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("true", "nothing"),
        ("printf '\\n\\n'", "nothing"),
        ("exit 3", "status 3"),
        ("kill -KILL $$", "SIGKILL"),
        ("yes", "KiB"),
        ("yes >&2", "KiB"),
        ("head -c 100000000 /dev/zero", "KiB"),
        ("printf '\\033[1mkey\\033[0m'", "U+001B"),
        ("printf 'a\\0b'", "U+0000"),
        ("printf '\\377'", "UTF-8"),
        ("read line || { echo no input >&2; exit 1; }", "without a terminal"),
        ("exec </dev/tty && head -n1", "without a terminal"),
        ("tty >&2 || exit 4", "without a terminal"),
    ],
)
def test_what_is_no_secret_is_refused_with_the_reason(site: Path, text: str, why: str) -> None:
    assert why in str(answer(site, text))


def test_one_that_hangs_is_ended_with_all_that_it_started(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_commands, "SECONDS", 1)
    since = time.monotonic()
    found = answer(site, "sleep 600 & echo $! >child; echo 'Enter passphrase:' >&2; wait")
    assert "input: Enter passphrase:" in str(found)
    assert time.monotonic() - since < 30
    assert is_gone(int((site / "child").read_text()))


def test_after_one_that_hangs_no_other_is_run(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_commands, "SECONDS", 1)
    first = SecretCommand(tuple(program(site, "sleep 600", "slow")), site)
    other = SecretCommand(tuple(program(site, "echo run >>runs; echo key", "other")), site)
    assert "hangs" in str(answers_of([first, other])[other])
    assert not (site / "runs").exists()


def test_what_it_leaves_behind_is_not_waited_for(site: Path) -> None:
    since = time.monotonic()
    assert answer(site, "sleep 60 & echo $! >child; echo key") == Secret("key")
    assert time.monotonic() - since < 30
    os.kill(int((site / "child").read_text()), signal.SIGKILL)


def test_many_commands_run_side_by_side_after_the_first(site: Path) -> None:
    words = program(site, "echo $1 begins >>runs; sleep 1; echo $1 ends >>runs; echo key-$1")
    commands = [SecretCommand((*words, str(number)), site) for number in range(6)]
    since = time.monotonic()
    assert list(answers_of(commands).values()) == [Secret(f"key-{number}") for number in range(6)]
    assert time.monotonic() - since < 6
    assert (site / "runs").read_text().splitlines()[:2] == ["0 begins", "0 ends"]


def test_a_failure_shows_neither_the_secret_nor_escape_sequences(site: Path) -> None:
    long = "correct-horse-battery-staple"
    printed = f"bad \\033[2J {long} {KEY} hunter2hunter token=abc Zm9vYmFyMTIzNDU2Nzg5MA== \\n"
    text = f"echo {long}; printf '{printed}' >&2; exit 1"
    ngc(site, program(site, text))
    with refused("RW0205", "group_vars/all.yml:5", "registry.key", "./say", MASK, error=SettingsError) as caught:
        keys()
    for secret in (long, KEY, "hunter2", "abc ", "Zm9v", "\033"):
        assert secret not in str(caught.value)


def test_a_missing_program_is_named(site: Path) -> None:
    ngc(site, ["no-such-program", "show"])
    with refused("RW0205", "registry.key", "no-such-program", "No such file", error=SettingsError):
        keys()


@pytest.mark.parametrize(
    ("value", "code", "named"),
    [
        ("{command: pass show ngc}", "RW0285", "registry.key.command"),
        ("{command: []}", "RW0285", "registry.key.command"),
        ("{command: ['']}", "RW0285", "registry.key.command[0]"),
        ("{command: [pass, 5]}", "RW0285", "registry.key.command[1]"),
        ('{command: [pass, "a\\0b"]}', "RW0285", "registry.key.command[1]"),
        ("{cmd: [pass]}", "RW0285", "registry.key"),
        ("{command: [pass], timeout: 5}", "RW0285", "registry.key"),
        ("{}", "RW0285", "registry.key"),
        (f"{{command: [curl, {KEY}]}}", "RW0285", "registry.key.command[1]"),
        ("{command: [pass, '{{ entry }}']}", "RW0215", "registry.key.command[1]"),
    ],
)
def test_what_is_no_command_is_refused_with_its_line(site: Path, value: str, code: str, named: str) -> None:
    (site / "group_vars" / "all.yml").write_text(f"{MODEL}registry:\n  key: {value}\n")
    with refused(code, "group_vars/all.yml:6", named, error=SettingsError) as caught:
        keys()
    assert KEY not in str(caught.value)


def test_an_encrypted_word_would_show_in_the_process_list(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "password").write_text("open sesame")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    words = [command("ansible-vault"), "encrypt", "--output", "-"]
    text = "registry: {key: {command: [pass, show, ngc]}}\n"
    encrypted = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
    (site / "group_vars" / "gpus.yml").write_text(encrypted)
    with refused("RW0285", "group_vars/gpus.yml", "registry.key.command[0]", error=SettingsError):
        keys()


def test_an_ansible_inventory_has_them_too(site: Path) -> None:
    (site / "hosts.ini").write_text("[gpus]\nh1\nh2\n")
    ngc(site, program(site, f"echo run >>runs; echo {KEY}"))
    assert keys("hosts.ini") == [KEY] * 2
    assert (site / "runs").read_text() == "run\n"


def test_an_argument_of_deploy_may_be_one(site: Path) -> None:
    words = program(site, f"echo run >>runs; echo {KEY}")
    (site / "deploy.py").write_text(
        f"from rackwright import operations\n\noperations.registry(key={{'command': {words}}})\n"
    )
    assert keys() == [KEY] * 3
    assert (site / "runs").read_text() == "run\n"


def test_data_takes_none(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = program(site, "echo run >>runs; echo key")
    assert main(["check", "inventory/fleet.py", "--data", f'registry.key={{"command": ["{words[0]}"]}}']) == 1
    refusal(capsys.readouterr().err, "RW0221", "registry.key")
    assert not (site / "runs").exists()


def test_check_says_where_it_comes_from_and_not_what_it_is(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ngc(site, [*program(site, f"echo {KEY}"), "show", "infra/ngc key"])
    assert main(["check", "inventory/fleet.py", "--show-origin", "--limit", "h1"]) == 0
    output = capsys.readouterr().out
    (row,) = [row for row in output.splitlines() if "registry.key" in row]
    assert row.split(maxsplit=2)[1:] == [MASK, "group_vars/all.yml:5, `./say show 'infra/ngc key'`"]
    assert main(["check", "inventory/fleet.py", "--show-origin", "--limit", "h1", "--json"]) == 0
    text = capsys.readouterr().out
    found = json.loads(text)["hosts"][0]["values"]["registry.key"]
    assert found == {"value": MASK, "from": "group_vars/all.yml:5", "source": "`./say show 'infra/ngc key'`"}
    assert KEY not in output + text


SECRETS = """\
models: {hub_token: hf_0123456789abcdef}
notify: {url: {command: [./say, hook]}}
endpoints:
  llm: {api_key: {command: [./say, engine]}}
"""


@pytest.fixture
def with_secrets(site: Path) -> Path:
    """Make a site whose settings have a secret of each kind, from commands and in clear."""
    texts = "hook=https://hooks.example.org/abcdefgh engine=sk-0123456789abcdef0 registry=key-of-the-registry"
    program(site, f'{texts}; eval "echo \\$$1"')
    ngc(site, ["./say", "registry"])
    (site / "group_vars" / "gpus.yml").write_text(SECRETS)
    return site


@pytest.mark.usefixtures("with_secrets")
def test_the_list_has_where_each_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["secrets", "list", "inventory/fleet.py", "--json"]) == 0
    output = capsys.readouterr().out
    found = [(one["secret"], one["from"], one["source"].split()[0], one["hosts"]) for one in json.loads(output)]
    hosts = ["h1", "h2", "h3"]
    assert found == [
        ("registry.key", "group_vars/all.yml:5", "`./say", hosts),
        ("models.hub_token", "group_vars/gpus.yml:1", "in", hosts),
        ("notify.url", "group_vars/gpus.yml:2", "`./say", hosts),
        ("endpoints.llm.api_key", "group_vars/gpus.yml:4", "`./say", hosts),
    ]
    assert main(["secrets", "list", "inventory/fleet.py", "--columns", "secret,hosts"]) == 0
    output += capsys.readouterr().out
    for secret in ("key-of-the-registry", "hf_0123456789abcdef", "abcdefgh", "sk-0123456789abcdef0"):
        assert secret not in output


@pytest.mark.usefixtures("with_secrets")
def test_only_an_engines_key_restarts_something(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["secrets", "rotate", "inventory/fleet.py", "--json"]) == 0
    restarts = {one["secret"]: one["restarts"].partition(";")[0] for one in json.loads(capsys.readouterr().out)}
    assert restarts.pop("endpoints.llm.api_key").startswith("3 endpoints")
    assert restarts == dict.fromkeys(("registry.key", "models.hub_token", "notify.url"), "nothing")
    assert main(["secrets", "rotate", "inventory/fleet.py", "--secret", "registry.key"]) == 0
    assert "pyinfra inventory/fleet.py deploy.py --data registry.check_key=true" in capsys.readouterr().out
    assert main(["secrets", "rotate", "inventory/fleet.py", "--secret", "registry.kay"]) == 1
    refusal(capsys.readouterr().err, "RW1055", "registry.kay", "did you mean registry.key?")


def test_behind_a_gateway_the_host_and_the_gateway_change_one_after_the_other(
    with_secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = with_secrets / "inventory" / "fleet.py"
    inventory.write_text(inventory.read_text().replace('"h3"]', '"h3"], "gateway": ["gw"]'))
    (with_secrets / "group_vars" / "gateway.yml").write_text("gateway: {tls: false, port: 80}\n")
    (with_secrets / "group_vars" / "all.yml").unlink()
    (with_secrets / "group_vars" / "gpus.yml").write_text(f"{MODEL}{SECRETS}allow_from: private\n")
    assert main(["secrets", "rotate", "inventory/fleet.py", "--secret", "endpoints.llm.api_key"]) == 0
    assert "502 engine_key" in capsys.readouterr().out


def test_an_argument_of_deploy_is_listed_as_one(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "deploy.py").write_text(f"from rackwright import operations\n\noperations.registry(key='{KEY}')\n")
    assert main(["secrets", "list", "inventory/fleet.py", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["from"], found["source"]) == ("deploy.py", "an argument of deploy.py")


def test_two_lines_are_not_one_secret(site: Path) -> None:
    ngc(site, program(site, f"echo {KEY}; echo user: ops"))
    with refused("RW0205", "registry.key", "head -n1", error=SettingsError):
        keys()


def test_an_endpoint_and_a_command_of_a_whole_fleet(site: Path) -> None:
    key = "sk-0123456789abcdef0123"
    words = program(site, f"echo run >>runs; echo {key}")
    (site / "inventory" / "fleet.py").write_text(
        INVENTORY.replace('["h1", "h2", "h3"]', '[f"h{n}" for n in range(100)]')
    )
    (site / "group_vars" / "gpus.yml").write_text(f"endpoints: {{llm: {{api_key: {{command: {words}}}}}}}\n")
    hosts = load_inventory("inventory/fleet.py")
    assert {host.settings.all_endpoints["llm"].api_key.unmask() for host in hosts} == {key}  # type: ignore[union-attr]
    assert (site / "runs").read_text() == "run\n"


def test_ctrl_c_ends_it(site: Path) -> None:
    ngc(site, program(site, "echo $$ >child; exec sleep 600"))
    code = "from rackwright.inventory import load_inventory as l; l('inventory/fleet.py')"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    for _ in range(600):
        if (site / "child").exists() and (site / "child").read_text().strip():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode != 0
    assert is_gone(int((site / "child").read_text()))
