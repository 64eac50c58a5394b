"""Secrets in hooks, mirrors, proxies, JSON and whatever else is printed: refused where they stand, or masked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright import masks
from rackwright.cli.check import _shown
from rackwright.concerns.endpoint.switch.balancer_hooks import drain_hook_script
from rackwright.loading.password import open_password_file
from rackwright.loading.validate import validate
from rackwright.masks import MASK, keep_hidden, tell_mistake, without_logins
from rackwright.messages import RackwrightError, printable
from rackwright.plan.jobstream import JobStream
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.problems import InvalidSettingsError
from rackwright.settings.secret import Secret, showable_data
from tests.unit.test_settings_validate import MODEL

VALUE = "s3cr3t-0f9d2c6b8e4a7153"


def refusal_text(values: dict[str, Any]) -> str:
    _, problems = validate("h", {**MODEL, "engine_kind": "vllm", "image": "r/x:v0.14.1", **values}, {})
    return str(InvalidSettingsError(problems, "x")) if problems else ""


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_secrets", set())


HOOKS: list[list[str]] = [
    ["curl", "-H", f"Authorization: Bearer {VALUE}", "https://lb"],
    ["curl", "--header", f"X-Api-Key: {VALUE}", "https://lb"],
    ["curl", "-u", f"admin:{VALUE}", "https://lb"],
    ["curl", f"--user=admin:{VALUE}", "https://lb"],
    ["curl", f"-uadmin:{VALUE}", "https://lb"],
    ["curl", "-fsSu", f"admin:{VALUE}", "https://lb"],
    ["curl", "-sb", f"sid={VALUE}", "https://lb"],
    ["sh", "-c", f"curl -sU admin:{VALUE} https://lb"],
    ["sshpass", "-p", VALUE, "ssh", "lb"],
    ["/usr/bin/sshpass", f"-p{VALUE}", "ssh", "lb"],
    ["ipmitool", "-H", "bmc", "-U", "admin", "-P", VALUE, "power", "off"],
    ["redis-cli", "-h", "lb", "-a", VALUE, "ping"],
    ["mysql", "-u", "admin", f"-p{VALUE}"],
    ["consul", "maint", "-token", VALUE],
    ["http", "-a", f"admin:{VALUE}", "POST", "https://lb/drain"],
    ["https", "POST", "lb/drain", f"-aadmin:{VALUE}"],
    ["xh", "-A", "bearer", "-a", VALUE, "https://lb"],
    ["sh", "-c", f"http --check-status -a 'admin:{VALUE}' lb"],
    ["curl", "--cert", f"/etc/lb.pem:{VALUE}", "https://lb"],
    ["curl", f"--cert=/etc/lb.pem:{VALUE}", "https://lb"],
    ["curl", "-fsSE", f"/etc/lb.pem:{VALUE}", "https://lb"],
    ["sh", "-c", f"curl -E/etc/lb.pem:{VALUE} https://lb"],
    ["openssl", "pkcs12", "-in", "a.p12", "-passin", f"pass:{VALUE}"],
    ["curl", f"https://admin:{VALUE}@lb"],
    ["curl", f"https://lb/?token={VALUE}"],
    ["lbctl", "--password", VALUE],
    ["lbctl", f"--password={VALUE}"],
    ["env", f"LB_TOKEN={VALUE}", "lbctl"],
    ["sh", "-c", f"LB_PASSWORD={VALUE} lbctl drain"],
    ["curl", "-d", json.dumps({"password": VALUE})],
    ["lbctl", "glpat-aaaaaaaaaaaaaaaaaaaa"],
    ["lbctl", "AKIAABCDEFGHIJKLMNOP"],
]


@pytest.mark.parametrize("words", HOOKS, ids=str)
@pytest.mark.parametrize("key", ["drain_hook", "ready_hook", "rollout"])
def test_a_secret_among_the_words_of_a_hook_is_refused(key: str, words: list[str]) -> None:
    value = {"hooks": {"switch": [{"command": words}]}} if key == "rollout" else words
    found = refusal_text({key: value})
    assert "RW0324" in found
    assert "write it into a file (0600)" in found
    assert VALUE not in found


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/local/sbin/balancer", "drain"],
        ["sh", "-c", 'curl -H "Authorization: Bearer $(cat /etc/lb/token)" https://lb'],
        ["sh", "-c", "curl -u admin:$PASSWORD https://lb; lbctl --password $PASSWORD"],
        ["sh", "-c", "curl https://admin:${PASSWORD}@lb"],
        ["lbctl", "--password-file", "/etc/lb/password", "--token-path", "/etc/lb/token"],
        ["curl", "--netrc-file", "/etc/lb/netrc", "-H", "@/etc/lb/header", "https://lb"],
        ["docker", "run", "--user", "1000:1000", "x"],
        ["docker", "run", "-u0:0", "x"],
        ["lbctl", "-url=http://lb:8000", "-bind=0.0.0.0"],
        ["sshpass", "-f", "/etc/lb-password", "ssh", "-p", "22", "lb"],
        ["ssh", "-p", "22", "lb"],
        ["sshpass", "-p", "$PASSWORD", "ssh", "lb"],
        ["rsync", "-a", "lb:x", "y"],
        ["mysql", "-P", "3306", "-p"],
        ["http", "-a", "admin", "POST", "https://lb/drain"],
        ["http", "--session=lb", "POST", "https://lb:8443/drain", "a=b:c"],
        ["sh", "-c", "http -a admin:$PASSWORD https://lb"],
        ["curl", "--cert", "/etc/lb.pem", "--key", "/etc/lb.key", "https://lb:8443"],
        ["curl", "-E", "pkcs11:object=lb;type=cert", "https://lb"],
        ["curl", "--cert", "/etc/lb.pem:$(cat /etc/lb.pw)", "https://lb"],
        ["openssl", "pkcs12", "-in", "a.p12", "-passin", "file:/etc/lb.pw"],
        ["sh", "-c", "grep -E 'a:b' /etc/hosts"],
    ],
)
def test_a_hook_that_reads_its_secret_is_right(words: list[str]) -> None:
    assert refusal_text({"drain_hook": words}) == ""


def test_a_hook_shows_its_program_alone() -> None:
    host, _ = validate("h", {**MODEL, "drain_hook": ["lbctl", "hunter2"]}, {})
    assert host is not None
    script = drain_hook_script("llm", host, "r")
    (shown,) = [row for row in script.splitlines() if "running the $hook" in row]
    assert "$words" not in shown
    assert "$how: $words" not in script


@pytest.mark.parametrize(
    "values",
    [
        {"engine": {"kv-transfer-config": json.dumps({"store": {"password": VALUE}})}},
        {"engine": {"kv-transfer-config": [{"a": [{"password": VALUE}]}]}},
        {"engine": {"kv-transfer-config": json.dumps(json.dumps({"password": VALUE}))}},
        {"engine": {"kv-transfer-config": f"redis://u:{VALUE}@host"}},
        {"arguments": ["--kv-transfer-config", json.dumps({"api_key": VALUE})]},
        {"environment": {"STORE": f"host=x password={VALUE}"}},
        {"environment": {"STORE": f"Server=x;Password={VALUE};"}},
        {"environment": {"STORE": f"https://u:a/{VALUE}@x"}},
    ],
)
def test_a_secret_within_a_text_is_refused(values: dict[str, Any]) -> None:
    found = refusal_text(values)
    assert "RW0324" in found
    assert VALUE not in found


@pytest.mark.parametrize(
    "values",
    [
        {"arguments": ["--hf-overrides", '{"bos_token": "<s>", "pad_token": "[PAD]", "eos_token_id": 5}']},
        {"arguments": ["--override-generation-config", '{"max_new_tokens": 512, "temperature": 0.2}']},
        {"arguments": ["--chat-template", "{% for m in messages %}{{ bos_token }}token: x{% endfor %}"]},
        {"environment": {"NO_PROXY": "10.0.0.0/8", "VLLM_LOGGING_PREFIX": "[token] ", "A": "a@b:c"}},
    ],
)
def test_what_engines_are_told_of_tokens_passes(values: dict[str, Any]) -> None:
    assert "RW0324" not in refusal_text(values)


@pytest.mark.parametrize("key", ["hub", "encodings", "container_toolkit", "docker"])
@pytest.mark.parametrize(
    "login", [f"https://u:{VALUE}@x", f"https://{VALUE}@x", f"https://x/?token={VALUE}", f"https://u:{VALUE}/@x"]
)
def test_a_mirror_takes_no_login(key: str, login: str) -> None:
    found = refusal_text({"mirrors": {key: login}})
    assert f"mirrors.{key}: must hold " in found
    assert VALUE not in found


@pytest.mark.parametrize(
    "url", ["http://u:p@ss@x:1", "http://u:p/s@x:1", "http://u:p#s@x", "http://x:99999", "http://:1"]
)
def test_a_proxy_that_clients_read_differently_is_refused(url: str) -> None:
    found = refusal_text({"proxy": {"http": url}})
    assert "proxy.http: must be http://SERVER:PORT" in found
    assert "p@ss" not in found
    assert "p/s" not in found
    assert "p#s" not in found


def test_a_proxys_password_is_hidden_from_then_on() -> None:
    assert refusal_text({"proxy": {"http": "http://u:pass%20word%21@x:1"}}) == ""
    assert printable("a pass%20word%21 b, pass word!") == f"a {MASK} b, {MASK}"


@pytest.mark.parametrize(
    "values",
    [
        {"registry": VALUE},
        {"models": VALUE},
        {"registry": {"key": [VALUE]}},
        {"registry": {"key": 8877665544332211}},
        {"port": f"hf_{VALUE}"},
        {"proxy": {"http": f"ftp://u:{VALUE}@x"}},
        {"hardware": f"http://u:{VALUE}@x"},
        {"api_key": VALUE[:9]},
        {"models": {"hub_token": f"two words {VALUE}"}},
        {"registry": {"key": Secret(f" {VALUE}")}},
        {"registry": {"key": Secret(f"{VALUE}\nmore")}},
    ],
)
def test_a_refusal_shows_no_secret(values: dict[str, Any]) -> None:
    found = refusal_text(values)
    assert found
    assert VALUE[:9] not in found
    assert "8877665544332211" not in found


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_line_break_at_the_end_of_a_secret_is_none_of_it(end: str) -> None:
    values = {"registry": {"key": Secret(f"{VALUE}{end}")}, "models": {"hub_token": f"hf_{VALUE}{end}"}}
    host, problems = validate("h", {**MODEL, **values}, {})
    assert problems == []
    assert host is not None
    assert host.registry.key == Secret(VALUE)
    assert host.models.hub_token == Secret(f"hf_{VALUE}")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("proxy", "http"), f"http://u:{VALUE}@x:1"),
        (("docker", "daemon", "log-opts", "splunk-token"), VALUE),
        (("docker", "daemon", "proxies", "http-proxy"), f"http://u:{VALUE}@x:1"),
        (("my_password",), VALUE),
        (("x", 0), f"Authorization: Bearer {VALUE}"),
        (("x",), json.dumps({"password": VALUE})),
    ],
)
def test_check_shows_no_secret_with_its_origin(path: tuple[str | int, ...], value: str) -> None:
    assert VALUE not in _shown(path, value)
    assert MASK in _shown(path, value)


def test_whatever_this_process_has_read_is_hidden_in_every_line() -> None:
    keep_hidden(VALUE)
    assert printable(f"x{VALUE}y") == f"x{MASK}y"
    assert VALUE not in str(RackwrightError(f"a\n{VALUE}"))
    keep_hidden("short")
    assert printable("in short") == "in short"


def test_an_error_shows_no_login_and_keeps_its_words() -> None:
    words = "api_key: must be 16 letters; basic questions"
    shown = str(RackwrightError(f"http://u:{VALUE}@x:1 refused; Authorization: Bearer {VALUE}; {words}"))
    assert VALUE not in shown
    assert words in shown
    assert without_logins("https://x:80/a@b and git@x:y") == "https://x:80/a@b and git@x:y"


def test_a_line_of_a_job_shows_no_secret() -> None:
    (row,) = JobStream("n").take(f"curl -u me:{VALUE} https://lb\n".encode(), b"")
    assert row == f"curl -u me:{MASK} https://lb"


def test_data_that_pyinfra_prints_hold_no_secret() -> None:
    data = {"proxy": {"http": f"http://u:{VALUE}@x:1"}, "port": 1, "x": [{"my_password": VALUE}], "name": "b200"}
    shown = showable_data(data)
    assert VALUE not in str(shown)
    assert (shown["port"], shown["name"]) == (1, "b200")


def test_a_mistake_of_our_own_quotes_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    keep_hidden(VALUE)
    tell_mistake(ValueError, ValueError(f"x {VALUE} http://u:pw@x"), None)
    shown = capsys.readouterr().err
    assert shown == f"ValueError: x {MASK} http://u:{MASK}@x\n"
    with pytest.raises(ValidationError) as raised:
        HostSettings.model_validate({"models": {"hub_token": [VALUE]}, "port": VALUE})
    assert VALUE not in str(raised.value)


@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o640, True), (0o600, False), (0o755, False)])
@pytest.mark.parametrize("by", ["variable", "ansible.cfg"])
def test_a_password_file_that_others_read_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, warned: bool, by: str
) -> None:
    (tmp_path / "pw").write_text("x\n")
    (tmp_path / "pw").chmod(mode)
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    if by == "variable":
        monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "pw")
    else:
        (tmp_path / "ansible.cfg").write_text("[defaults]\nvault_password_file = pw\n")
    assert bool(open_password_file(tmp_path)) is warned
    assert all(f"chmod 600 {tmp_path}/pw" in warning for warning in open_password_file(tmp_path))
