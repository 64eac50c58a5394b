"""The verbs of `rackwright` that need no host: check, schema, init; exit codes and texts."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from rackwright import inventory as inventory_module
from rackwright.cli.main import main
from rackwright.inventory import load_inventory
from rackwright.loading.notes import notes
from rackwright.messages import SettingsError
from rackwright.record.record import TEARDOWN
from rackwright.rollout.launch import begin
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.json_schema import json_text
from tests import texts
from tests.fresh import fresh
from tests.refused import refusal

ROOT = Path(__file__).parents[2]
B200 = str(ROOT / "inventory" / "b200.py")
B200_ROW = "{host}.example.com (b200) llm: tensorrt-llm 1.1.0rc0 at 0.0.0.0:{port}"
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/m/gpt-oss-120b"}


def test_check_says_what_every_host_is_asked_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", B200]) == 0
    assert capsys.readouterr().out.splitlines() == [
        B200_ROW.format(host="b200-01", port=8000),
        B200_ROW.format(host="b200-02", port=8000),
        f"{B200}: 2 hosts, {texts.VALID}",
    ]


def test_check_shows_origins(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of a parallel run have it
    assert main(["check", B200, "--show-origin", "--limit", "b200-02.example.com"]) == 0
    rows = [output_line.split() for output_line in capsys.readouterr().out.splitlines()]
    assert ["ssh_user", "ops", "inventory/b200.py"] in rows
    assert ["ssh_strict_host_key_checking", "yes", "derived"] in rows
    (port,) = [row for row in rows if row[0] == "engine.speculative_config.max_draft_len"]
    file, output_line = port[2].split(":")
    assert "max_draft_len: 3" in (ROOT / file).read_text().splitlines()[int(output_line) - 1]


def test_check_of_a_host_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", B200, "--limit", "b200-1.example.com"]) == 1
    err = capsys.readouterr().err
    assert ("b200-1.example.com (did " in err, "(did you mean b200-0" in err) == (True, True)


def test_check_of_a_wrong_site_is_text_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh(tmp_path)
    with (tmp_path / "group_vars" / "b200.yml").open("a") as file:
        file.write("prt: 1\n")
    assert main(["check", str(tmp_path / "inventory" / "b200.py")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(
        "rackwright: RW0101: the settings are not valid, nothing was connected:\n  RW0210: group_vars/b200.yml:"
    )
    assert ": prt: unknown key (did you mean port?)" in error


def test_check_reads_the_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh(tmp_path)
    (tmp_path / "rackwright.lock.yml").write_text("version: 1\nimages: {latest: x}\n")
    assert main(["check", str(tmp_path / "inventory" / "b200.py")]) == 1
    assert "RW0916" in capsys.readouterr().err


@pytest.mark.parametrize("purpose", ["rollout", "drain", TEARDOWN])
def test_a_broken_lock_refuses_every_run_but_a_teardown(tmp_path: Path, purpose: str) -> None:
    fresh(tmp_path)
    (tmp_path / "rackwright.lock.yml").write_text("version: [")
    inventory = tmp_path / "inventory" / "b200.py"
    hosts = load_inventory(inventory)
    with nullcontext() if purpose == TEARDOWN else pytest.raises(SettingsError, match="RW0916"):
        begin(str(inventory), tmp_path, hosts, purpose)


@pytest.mark.parametrize(("deploy", "is_refused"), [(inventory_module.TEARDOWN, False), ("deploy.py", True)])
def test_pyinfra_with_a_broken_lock_runs_a_teardown_alone(tmp_path: Path, deploy: Path | str, is_refused: bool) -> None:
    fresh(tmp_path)
    (tmp_path / "rackwright.lock.yml").write_text("version: [")
    host = ("n1", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})
    text = f"from rackwright.inventory import build\nglobals().update(build(__file__, {{'b200': [{host!r}]}}))\n"
    (tmp_path / "inventory" / "mine.py").write_text(text)
    words = [sys.executable, "-m", "pyinfra", "inventory/mine.py", str(deploy), "--dry"]
    ended = subprocess.run(words, cwd=tmp_path, text=True, capture_output=True, timeout=100, check=False)
    output = ended.stdout + ended.stderr
    assert "RW0916" in output
    assert ("Connecting to hosts" in output) != is_refused


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"ssh_hostname": "192.0.2.1"}, {"ssh_hostname": "192.0.2.1"}, True),
        ({"ssh_hostname": "192.0.2.1"}, {"ssh_hostname": "192.0.2.1", "ssh_port": 22}, True),
        ({"ssh_hostname": "2001:DB8::1"}, {"ssh_hostname": "2001:db8:0::1"}, True),
        ({}, {"ssh_hostname": "H1."}, True),
        ({"ssh_hostname": "192.0.2.1"}, {"ssh_hostname": "192.0.2.1", "ssh_port": 2222}, False),
        ({"ssh_hostname": "192.0.2.1"}, {"ssh_hostname": "192.0.2.1", "ssh_config_file": "other"}, False),
        ({"ssh_hostname": "192.0.2.1"}, {"ssh_hostname": "192.0.2.2"}, False),
    ],
)
def test_check_warns_of_two_names_of_one_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: object, second: object, same: bool
) -> None:
    inventory = tmp_path / "b200.py"
    (tmp_path / "deploy.py").touch()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("model: {repository: a/b, mount: /m/b}\n")
    inventory.write_text(
        "from rackwright.inventory import build\n"
        f"globals().update(build(__file__, {{'b200': [('h1', {first!r}), ('h2', {second!r})]}}))\n"
    )
    assert main(["check", str(inventory)]) == 0
    assert ("warning: h1, h2: 2 names" in capsys.readouterr().out) is same


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"{{ nope }}", "templates/endpoint.service.j2: 'nope' is undefined"),
        (b"\n{% if %}", "templates/endpoint.service.j2:2: "),
        (b"{{ 1 / 0 }}", "templates/endpoint.service.j2: division by zero"),
        (b"{{ 1 + 'a' }}", "templates/endpoint.service.j2: unsupported"),
        (b"\xff", "templates/endpoint.service.j2: 'utf-8' codec"),
        (b"{% include 'x.j2' %}", "templates/x.j2"),
    ],
)
def test_check_renders_the_templates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bytes, message: str
) -> None:
    fresh(tmp_path)
    (tmp_path / "templates" / "endpoint.service.j2").write_bytes(written)
    assert main(["check", str(tmp_path / "inventory" / "b200.py")]) == 1
    assert f"RW0507: {message}" in capsys.readouterr().err


def test_a_wrong_word_exits_1_since_2_means_changes_are_pending(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chek"]) == 1
    for words in (["render"], ["check", B200, "--nonsense"]):
        with pytest.raises(SystemExit) as raised:
            main(words)
        assert raised.value.code == 1
    assert "usage: rackwright" in capsys.readouterr().err


def test_check_of_some_hosts_and_with_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", B200, "--limit", "b200-01*", "--data", "port=9000", "--data", 'docker.users=["a"]']) == 0
    assert capsys.readouterr().out.splitlines() == [
        B200_ROW.format(host="b200-01", port=9000),
        f"{B200}: 1 host, {texts.VALID}",
    ]
    assert main(["check", B200, "--limit", "b300"]) == 1
    assert "RW1008" in capsys.readouterr().err
    assert main(["check", B200, "--data", "port=four"]) == 1
    refusal(capsys.readouterr().err, "RW0212", "--data: port: ", "'four'")
    assert main(["check", B200]) == 0
    assert "at 0.0.0.0:8000" in capsys.readouterr().out, "what one command was given is gone with it"


def test_check_leaves_the_process_as_it_is() -> None:
    ran = f"import sys; from rackwright.cli.main import main; main(['check', {B200!r}])"
    words = f"{ran}; print('pyinfra_cli' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False", "pyinfra_cli patches the whole process for gevent"


def test_init_makes_a_site_that_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site"
    assert main(["init", str(site), "--profile", "b200"]) == 0
    assert "rackwright check inventory/b200.py" in capsys.readouterr().out
    assert (site / "deploy.py").read_bytes() == (ROOT / "deploy.py").read_bytes()
    assert (site / ".rackwright/settings.schema.json").read_text() == json_text()
    assert not list(site.rglob("__pycache__"))
    assert main(["check", str(site / "inventory" / "b200.py")]) == 0


def test_init_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("# mine\n")
    assert main(["init", str(tmp_path), "--profile", "b200"]) == 0
    assert (tmp_path / "group_vars" / "all.yml").read_text() == "# mine\n"
    assert "group_vars/all.yml" in capsys.readouterr().out.partition("kept")[2].partition("\n\n")[0]


def test_init_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file"), "--profile", "b200"]) == 1
    assert "RW1408: " in capsys.readouterr().err


def test_schema_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--out", str(tmp_path / "s.json")]) == 0
    assert (tmp_path / "s.json").read_text() == json_text()
    assert main(["schema", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Settings\n")


def host(**values: object) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, **values})


def test_the_text_of_open_ports() -> None:
    assert notes(host(allow_from=["10.0.0.0/8"])) == []
    assert notes(host(network="host")) == []
    assert notes(host(bind="127.0.0.1")) == []
    assert notes(host()) == notes(host(allow_from="private")) == []
    assert notes(host(allow_from="any")) == [
        "endpoint llm: port 8000 is open to every network, as allow_from says any",
        *notes(host()),
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"network": "host", "allow_from": ["10.0.0.0/8", "fd79::/80"]},
            "no client of fd79::/80 (allow_from) reaches it, as it listens on 0.0.0.0, which is IPv4 alone: "
            'set bind: "::" for both',
        ),
        (
            {"allow_from": ["10.0.0.0/8", "fd79::/80"]},
            "no client of fd79::/80 (allow_from) reaches it, as it is published on 0.0.0.0, which is IPv4 alone: "
            'network: host with bind: "::" serves both',
        ),
        (
            {"allow_from": ["fd79::/80"]},
            "no client of fd79::/80 (allow_from) reaches it, as it is published on 0.0.0.0, which is IPv4 alone: "
            'set bind: "::"',
        ),
        (
            {"bind": "::", "allow_from": ["10.0.0.0/8"]},
            "no client of 10.0.0.0/8 (allow_from) reaches it, as it is published on ::, which is IPv6 alone: "
            'set bind: "0.0.0.0"',
        ),
        ({"network": "host", "bind": "::", "allow_from": ["10.0.0.0/8", "fd79::/80"]}, ""),
        ({"network": "host", "bind": "10.0.0.5", "allow_from": ["10.0.0.0/8"]}, ""),
        ({"bind": "127.0.0.1", "allow_from": ["fd79::/80"]}, ""),
        ({"allow_from": "private"}, ""),
    ],
)
def test_notes_about_networks_that_an_endpoint_does_not_speak_to(values: dict[str, Any], message: str) -> None:
    found = [note for note in notes(host(**values)) if "(allow_from)" in note]
    assert found == ([f"endpoint llm: {message}"] if message else [])


def test_the_text_of_the_moe_backend_of_old_versions() -> None:
    b200 = {"compute_capability": ["10.0"]}
    (note,) = notes(host(bind="127.0.0.1", hardware=b200, image="r/x:1.2.0rc0"))
    assert note == (
        "endpoint llm: no engine.moe_config.backend is set, so 1.2.0rc0 runs CUTLASS; "
        "TRTLLM is the fast one on this GPU"
    )
    chosen = {"moe_config": {"backend": "TRTLLM"}}
    assert notes(host(bind="127.0.0.1", hardware=b200, image="r/x:1.2.0rc0", engine=chosen)) == []
    assert notes(host(bind="127.0.0.1", hardware=b200, image="r/x:1.3.0rc1")) == []


def test_notes_about_known_bad() -> None:
    (note,) = notes(host(bind="127.0.0.1", accept_known_bad=True))
    assert note.startswith("endpoint llm: accept_known_bad")


def test_render_writes_the_host_s_files_and_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, out = tmp_path / "site", tmp_path / "out"
    fresh(site)
    (site / "host_vars" / "b200-01.example.com.yml").write_text(
        "models: {hub_token: hf_leak}\nregistry: {key: nvapi-leak}\n"
    )
    assert main(["render", str(site / "inventory/b200.py"), "--limit", "b200-01.example.com", "--out", str(out)]) == 0
    texts = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    assert {"eagle.yaml", "spec.json", "rackwright-llm.service"} <= set(texts)
    assert "leak" not in "".join(texts.values())
    assert str(out) in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["check", "plan", "render", "rollout"])
def test_what_goes_by_a_broken_deploy_file_is_refused_before_anything_else(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site, out = tmp_path / "site", tmp_path / "out"
    fresh(site)
    (site / "deploy.py").write_text("from no_such_module import steps\n")
    more = ["--limit", "b200-01.example.com", "--out", str(out)] if verb == "render" else []
    assert main([verb, str(site / "inventory/b200.py"), *more]) == 1
    errors = capsys.readouterr().err
    refusal(errors, "RW1305", f"{site}/deploy.py:1: b200-01.example.com: ", "ModuleNotFoundError")
    assert errors.count("\n") == 1
    assert not out.exists()
