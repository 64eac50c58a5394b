"""Any content of group_vars: one line with file and key for each mistake, no traceback, and no long wait."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackwright.adapter.run import options as pyinfra_options
from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.main import main
from rackwright.inventory import refuse_other_formats
from rackwright.loading.ansible.command import environment
from rackwright.loading.load import SIZE
from rackwright.messages import SettingsError
from rackwright.plan.render import render
from tests.refused import refusal as coded_refusal

MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
SECONDS = 5
"""No file may take longer to be refused."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with one host in one group."""
    for name in ("inventory", "group_vars"):
        (tmp_path / name).mkdir()
    (tmp_path / "deploy.py").touch()
    write_inventory(tmp_path, '{"rack": ["gpu01"]}')
    (tmp_path / "group_vars/all.yml").write_text(MODEL)
    monkeypatch.setattr(sys, "stdin", None)
    return tmp_path


def write_inventory(site: Path, groups: str) -> None:
    text = f"from rackwright.inventory import build\nglobals().update(build(__file__, {groups}))\n"
    (site / "inventory/x.py").write_text(text)


def refusal(site: Path) -> str:
    """Return the refusal of a site, within a time limit."""
    began = time.process_time()
    with pytest.raises(SettingsError) as raised:
        load_inventory(str(site / "inventory/x.py"))
    assert time.process_time() - began < SECONDS
    return str(raised.value)


VALUES = {
    "port: true": "port: must be a whole number, not True",
    "replicas: false": "replicas: must be a whole number, not False",
    "port: 010": "port: 010 is read as 8 by YAML",
    "port: 0o10": "port: must be a whole number",
    "port: 22:10": "port: 22:10 is read as 1330 by YAML",
    "docker: {daemon: {a: .nan}}": "docker.daemon.a: must be a finite number, not nan",
    "docker: {daemon: {a: [{b: 2026-01-01}]}}": "docker.daemon.a[0].b: 2026-01-01 is a date to YAML: put it in quotes",
    "docker: {daemon: {a: 123456789012345678901}}": "docker.daemon.a: must be a number of 64 bits at most",
    "engine: {x: !!binary aGVsbG8=}": "engine.x: must be text, not !!binary",
    "engine: {x: !!set {a, b}}": "engine.x: must be a list, not !!set",
    "releases: {keep: 101}": "releases.keep: must be less than or equal to 100, not 101",
    "downloads: {parallel: 1001}": "downloads.parallel: must be less than or equal to 1000, not 1001",
    "start_limit: 10001": "start_limit: must be less than or equal to 1000, not 10001",
    "engine: {max_batch_size: 0x10}": "engine.max_batch_size: 0x10 is read as 16 by YAML",
    "load_timeout: 1_000:10": "load_timeout: ",
    "rollout: {max_unavailable: 0}": "rollout.max_unavailable: must be a number from 1 on, or a part from 1% on",
    "rollout: {wave: 0%}": "rollout.wave: must be a number from 1 on, or a part from 1% on, not '0%'",
    "registry: {host: 'https://nvcr.io'}": "registry.host: must be a name, as nvcr.io or registry.example.com:5000",
    "registry: {host: nvcr.io/nvidia}": "registry.host: must be a name, as nvcr.io or registry.example.com:5000",
    "models: {folder: /}": "models.folder: must not be / or a folder of the system",
    "models: {folder: /srv/../etc}": "models.folder: must not hold . or .. or //",
    "models: {folder: /usr/share}": "models.folder: must not be / or a folder of the system",
    "encodings: {folder: /srv//encodings}": "encodings.folder: must not hold . or .. or //",
    "model: {repository: a/b, mount: /}": "model.mount: must not be / or a folder of the system",
    "model: {repository: a/b, mount: /config/release}": "model.mount: /config/release is taken in the container",
    "model: {repository: a/b, mount: /config}": "model.mount: /config is taken in the container",
    "model: {repository: a/b, mount: /scratch/x}": "model.mount: /scratch/x is taken in the container",
    "bind: 'fe80::1%$(id)'": "bind: must be an address of the host",
    'bind: "fe80::1%eth0\\n"': "bind: must be an address of the host",
    "allow_from: ['fe80::%$(id)/64']": "allow_from[0]: must be a network",
    "environment: {'A=B': x}": "environment.A=B: must be a name of letters, digits and _",
    "environment: {'A B': x}": "environment.A B: must be a name of letters, digits and _",
    'environment: {A: "x\\ny"}': "environment.A: must hold no control character",
    'image: "r/x:1\\n"': "image: must be an image with its tag",
    'image_digest: "sha256:' + "0" * 64 + '\\n"': "image_digest: must be sha256: and 64 hexadecimal digits",
    'endpoint_name: "llm\\n"': "endpoint_name: must be a name of small letters",
    'docker: {users: ["ops\\n"]}': "docker.users[0]: must hold no control character",
    'arguments: ["--x", "a\\u001bb"]': "arguments[1]: must hold no control character",
    "replicas: 100000000": "replicas: must be less than or equal to",
    f"port: {'9' * 5000}": "all.yml:2: port: not valid YAML: a number of 5000 digits",
    "gate: {commit_deadline: 99999999999999999999}": "gate.commit_deadline: must be less than or equal to 604800",
    "rollout: {bake: 604801}": "rollout.bake: must be less than or equal to 604800",
    "models: {folder: /var}": "models.folder: must not be /var, /home or a folder of Docker's or Rackwright's",
    "models: {folder: /var/}": "models.folder: must not be /var, /home",
    "models: {folder: /home}": "models.folder: must not be /var, /home",
    "models: {folder: /var/lib/docker/x}": "models.folder: must not be /var, /home",
    "models: {folder: /var/lib/rackwright}": "models.folder: must not be /var, /home",
    "encodings: {folder: /var/lib/docker}": "encodings.folder: must not be /var, /home",
    "proxy: {https: 'http://x:1\";Pre-Invoke'}": "proxy.https: must be an address that begins with http:// or https://",
    "proxy: {http: 'proxy:3128'}": "proxy.http: must be an address that begins with http:// or https://",
    "proxy: {http: 'http://a b'}": "proxy.http: must be an address that begins with http:// or https://",
    "proxy: {http: 'http://a\\'}": "proxy.http: must be an address that begins with http:// or https://",
    "proxy: {no_proxy: ['a\";b']}": "proxy.no_proxy[0]: must be a name, suffix, address or network",
    "mirrors: {encodings: 'file:///etc/passwd'}": "mirrors.encodings: must be an address that begins with http://",
    "mirrors: {hub: ftp://x}": "mirrors.hub: must be an address that begins with http://",
    'registry: {user: "a\\nb"}': "registry.user: must hold no control character",
    'docker: {toolkit_version: "1\\nPin-Priority: 1"}': "docker.toolkit_version: must be a version of a Debian package",
    'model: {repository: a/b, mount: /m, files: [{size: 1, path: "a\\nb"}]}': "model.files[0].path: must hold no",
    'environment: {A: "\\ud800"}': "environment.A: must ",
    "ansible_port: '²'": "ansible_port: must be a whole number",
    f"ansible_port: '{'9' * 5000}'": "ansible_port: must be ",
    "1: 2": "1: a key must be text",
    "engine: {on: 1}": "engine: a key must be text: put it in quotes, since YAML reads it as true",
    "environment: {~: x}": "environment: a key must be text: put it in quotes, since YAML reads it as nothing (null)",
    "engine: {2026-01-01: 1}": "engine: a key must be text: put it in quotes, since YAML reads it as 2026-01-01",
    "engine:": "engine: must be a mapping of `key: value` lines, and is empty: leave the key out",
    "docker: ~": "docker: must be a mapping of `key: value` lines, and is empty: leave the key out",
    "port:\t1": "not valid YAML: found character '\\t' that cannot start any token: put blanks in the place of the tab",
    "image: r/x:": "not valid YAML: mapping values are not allowed here: put text that ends in a colon, or has",
    "engine: {a: &x 1, b: &x 2}": "not valid YAML: found duplicate anchor 'x'",
    "--- {a: 1}": "not valid YAML: but found another document: a line of --- begins it, and one document is read",
    "~: 2": "~: a key must be text",
    "2020-01-01: 2": "2020-01-01: a key must be text",
    "<<: {7: 2}": "7: a key must be text",
    '? "a\\nb"\n: 2': r"'a\nb': unknown key",
    "port: !!float '_'": "port: not valid YAML: is written as a number, which it is not; put text in quotes",
    "port: !!int '-'": "port: not valid YAML: is written as a number, which it is not; put text in quotes",
    "port: !!int 'x'": "port: not valid YAML: is written as a number",
    "harmony: !!bool 'x'": "harmony: not valid YAML: is written as a switch (true or false), which it is not",
    "image: !!timestamp 'x'": "image: not valid YAML: is written as a date, which it is not",
    "image: 9999-99-99": "image: not valid YAML: is written as a date, which it is not",
    "arguments: [a, 9999-99-99]": "arguments[1]: not valid YAML: is written as a date, which it is not",
    "engine: {x: {y: 9999-99-99}}": "engine.x.y: not valid YAML: is written as a date, which it is not",
    "engine: {9999-99-99: 1}": "engine.9999-99-99: not valid YAML: is written as a date, which it is not",
    "image: !other x": "image: not valid YAML: could not determine a constructor",
    "image: '\0'": "not valid YAML: the character U+0000 is not allowed",
    'engine: {"a\\nb": 1}': r"engine.'a\nb': ",
    'docker: {"a\\nb": 1}': r"docker.'a\nb': unknown key",
}
"""A line of group_vars/all.yml, and what is said of it."""


@pytest.mark.parametrize("entry", VALUES, ids=lambda entry: entry[:40])
def test_a_wrong_value_is_one_line_with_file_and_key(site: Path, entry: str) -> None:
    replaces_model = entry.startswith("model: ")
    (site / "group_vars/all.yml").write_text(f"{'' if replaces_model else MODEL}{entry}\n")
    message = refusal(site)
    assert VALUES[entry] in message, message
    assert f"group_vars/all.yml:{1 if replaces_model else 2}: " in message, message
    assert len(message.splitlines()) == 3, message


@pytest.mark.parametrize(
    "entry",
    [
        "port: 8010",
        "rollout: {max_unavailable: 10%, error_budget: 0}",
        "models: {folder: /home/models}",
        "models: {folder: /var/lib/models}",
        "proxy: {http: 'http://me:p%40ss@proxy:3128/', no_proxy: [.example.com, 10.0.0.0/8, '::1', '*.site', a_b:80]}",
        "registry: {host: 'registry.example.com:5000'}",
        "models: {folder: /srv/models.d}",
        "bind: 'fe80::1%eth0'",
        "environment: {NCCL_DEBUG: INFO, lower: 'a b'}",
        "own_keys: [umask]\numask: 0022",
        "docker: {daemon: {max-concurrent-downloads: 8}}",
    ],
)
def test_a_right_value_is_none_of_them(site: Path, entry: str) -> None:
    (site / "group_vars/all.yml").write_text(f"{MODEL}{entry}\n")
    assert load_inventory(str(site / "inventory/x.py"))


def laid_down(path: Path, what: str) -> None:
    match what:
        case "a link to nothing":
            path.symlink_to("nowhere.yml")
        case "a link to itself":
            path.symlink_to(path.name)
        case "a pipe":
            os.mkfifo(path)
        case "a folder":
            path.mkdir()
        case "Latin-1":
            path.write_bytes("endpoint_name: grün\n".encode("latin-1"))
        case "a NUL":
            path.write_bytes(b"endpoint_name: 'a\0b'\n")
        case "not mine to read":
            path.symlink_to("/proc/1/mem")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a link to nothing", "is a link to nowhere.yml, which does not exist"),
        ("a pipe", "is not a file"),
        ("a folder", "is a folder: name it rack, or put its lines into one file"),
        ("Latin-1", "is not UTF-8"),
        ("a NUL", "not valid YAML"),
        ("not mine to read", "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_named(site: Path, what: str, message: str) -> None:
    laid_down(site / "group_vars/rack.yml", what)
    refused = refusal(site)
    assert "group_vars/rack.yml" in refused, refused
    assert message in refused, refused


BAD_FILES = {
    "a link to nothing": "RW1306",
    "a link to itself": "RW1306",
    "a pipe": "RW0226",
    "a folder": "RW0226",
    "Latin-1": "RW1308",
    "a NUL": "RW1308",
    "not mine to read": "RW1308",
}
"""Kinds of inventories, and how each is refused."""


@pytest.mark.parametrize(("kind", "code"), BAD_FILES.items())
def test_an_inventory_that_is_not_one_is_refused_under_pyinfra_too(
    site: Path, kind: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = site / "inventory/bad.py"
    laid_down(inventory, kind)
    monkeypatch.setattr(pyinfra_options, "inventory_named", lambda: str(inventory))
    monkeypatch.setattr(pyinfra_options, "current", lambda: None)
    for refuse in (refuse_other_formats, lambda: load_inventory(str(inventory))):
        with pytest.raises(SettingsError) as raised:
            refuse()
        assert raised.value.code == code
        assert "inventory/bad.py" in str(raised.value)


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_template_that_is_not_a_file_is_not_passed_over(site: Path, kind: str) -> None:
    (site / "templates").mkdir()
    laid_down(site / "templates/server.cfg.j2", kind)
    with pytest.raises(SettingsError, match=r"RW0507: templates/server\.cfg\.j2: ") as raised:
        render("server.cfg.j2", site)
    assert "not found" not in str(raised.value)


HEAVY = {
    "deep": "engine: " + "[" * 5000 + "]" * 5000,
    "a deep mapping": "engine: " + "{a: " * 3000 + "1" + "}" * 3000,
    "an anchor in itself": "engine: &a {b: *a}",
    "a bomb": "engine:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"  {chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)),
}


def many(count: int) -> str:
    return "".join(f"k{number}: 1\n" for number in range(count))


HEAVY |= {
    "fifty thousand keys": many(49_000),
    "as many patterns as keys": f"own_keys: [{', '.join(f'p{number}' for number in range(6000))}]\n{many(6000)}",
    "own keys that hold a bomb of text": f"own_keys: [x_*]\nx_a: &a {'y' * 200_000}\nx_b: [{', '.join(['*a'] * 900)}]",
    "own keys that are a bomb": "own_keys:\n- &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"- &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)),
    "a long text": f"x_a: {'y' * (1 << 20)}",
}


def test_a_file_has_a_size_that_it_may_not_pass(site: Path) -> None:
    (site / "group_vars/rack.yml").write_text("# " + "x" * (SIZE - 3) + "\n")
    assert load_inventory(str(site / "inventory/x.py"))[0].name == "gpu01"
    (site / "group_vars/rack.yml").write_text("# " + "x" * (SIZE - 2) + "\n")
    coded_refusal(refusal(site), "RW0224", "group_vars/rack.yml: ", "1 MiB")


def test_own_keys_are_patterns_and_not_too_many(site: Path) -> None:
    write_inventory(site, repr({"rack": ["gpu01"]}))
    (site / "group_vars/rack.yml").write_text("own_keys: [ntp_*, 'x?', plain]\nntp_a: 1\nx1: 1\nplain: 1\n")
    assert load_inventory(str(site / "inventory/x.py"))[0].name == "gpu01"
    (site / "group_vars/rack.yml").write_text("own_keys: [ntp_*, 'x?', plain]\nntp: 1\n")
    assert "ntp: unknown key" in refusal(site)
    (site / "group_vars/rack.yml").write_text(f"own_keys: [{', '.join(['a*'] * 201)}]\n")
    coded_refusal(refusal(site), "RW0212", "group_vars/rack.yml:1: own_keys: ", "200")


@pytest.mark.parametrize("name", HEAVY)
def test_what_would_take_for_ever_is_refused_at_once(site: Path, name: str) -> None:
    (site / "group_vars/rack.yml").write_text(f"{HEAVY[name]}\n")
    assert "group_vars/rack.yml" in refusal(site)


@pytest.mark.parametrize("name", ["gpu 01", "../x", "-oProxyCommand=x", "gpu\n01", "", "a/b", "gpu01;id"])
def test_a_name_that_is_no_hosts_is_refused(site: Path, name: str) -> None:
    write_inventory(site, repr({"rack": [name]}))
    message = refusal(site)
    assert "inventory/x.py" in message, message
    assert "is not a host's name" in message, message


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a b", ""])
def test_an_address_that_is_none_is_refused(site: Path, name: str) -> None:
    write_inventory(site, repr({"rack": [("gpu01", {"ssh_hostname": name})]}))
    assert "ssh_hostname: must be " in refusal(site)


@pytest.mark.parametrize("name", ["@ssh/gpu01", "@local", "gpu01.example.com", "192.0.2.1", "2001:db8::1", "GPU_01"])
def test_a_hosts_name_is_taken(site: Path, name: str) -> None:
    write_inventory(site, repr({"rack": [name]}))
    assert load_inventory(str(site / "inventory/x.py"))[0].name == name


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: f"engine: {text}".encode()))
def test_any_bytes_are_taken_or_refused_with_a_message(site: Path, written: bytes) -> None:
    (site / "group_vars/rack.yml").write_bytes(written)
    began = time.process_time()
    assert main(["check", str(site / "inventory/x.py")]) in (0, 1)
    assert time.process_time() - began < SECONDS


EMPTY = {
    "x.py": "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': []}))\n",
    "group.ini": "[rack]\n",
    "empty.ini": "",
    "all.yml": "all:\n",
}
"""Inventories without hosts."""


def told_by(verb: str, site: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([verb, str(site / "inventory" / name)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("verb", ["check", "plan", "status"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_inventory_without_hosts_says_so(
    site: Path, verb: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "inventory" / name).write_text(EMPTY[name])
    output = told_by(verb, site, name, capsys)
    assert f"RW0225: {site}/inventory/{name} names no hosts; next: " in output, output


@pytest.mark.parametrize("name", ["x.py", "hosts.ini", "hosts.yml"])
def test_an_inventory_that_is_a_pipe_is_not_opened(site: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "inventory" / name).unlink(missing_ok=True)
    os.mkfifo(site / "inventory" / name)
    output = told_by("check", site, name, capsys)
    assert f"RW0226: {site}/inventory/{name} is not a file: a pipe" in output, output


@pytest.mark.parametrize("name", ["deploy.py", "tasks/own.py"])
def test_a_deploy_file_that_is_a_pipe_is_not_opened(site: Path, name: str) -> None:
    (site / "tasks").mkdir()
    (site / name).unlink(missing_ok=True)
    os.mkfifo(site / name)
    assert f"RW0226: {site}/{name} is not a file: a pipe" in refusal(site)


def test_a_configuration_of_ansible_that_is_a_pipe_is_not_opened(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(site / "ansible.cfg")
    monkeypatch.setenv("RACKWRIGHT_SITE", str(site))
    assert main(["check"]) == 1
    coded_refusal(capsys.readouterr().err, "RW0226", f"{site}/ansible.cfg ", "a pipe")
    with pytest.raises(SettingsError, match="is not a file: a pipe"):
        environment(site)


def test_what_an_editor_leaves_behind_is_no_traceback(site: Path) -> None:
    (site / "tasks").mkdir()
    (site / "tasks/.#own.py").symlink_to("me@here.1234")
    (site / "inventory/.#x.py").symlink_to("me@here.1234")
    (site / "inventory/broken").symlink_to("/proc/self/mem")
    (site / "group_vars/.#all.yml").symlink_to("me@here.1234")
    (site / "group_vars/rackk.yml").touch()
    assert main(["check", str(site / "inventory/x.py")]) == 1


@pytest.mark.parametrize(
    ("name", "what", "message"),
    [
        ("rack/own.yml", "a link to nothing", "is a link to nowhere.yml, which does not exist"),
        ("rack/own.yml", "a pipe", "is not a file"),
        ("rack/own.yml", "a folder", "is a folder: name it own, or put its lines into one file"),
        ("rack/deep/own.yml", "a pipe", "is not a file"),
    ],
)
def test_the_same_within_the_folder_of_a_group(site: Path, name: str, what: str, message: str) -> None:
    path = site / "group_vars" / name
    path.parent.mkdir(parents=True)
    laid_down(path, what)
    refused = refusal(site)
    assert f"RW0223: group_vars/{name}: {message}" in refused, refused


@pytest.mark.parametrize("kind", ["group_vars", "host_vars"])
@pytest.mark.parametrize(
    ("what", "message"),
    [("a link to nothing", "is a link to nowhere.yml"), ("a pipe", "is not a folder"), ("Latin-1", "is not a folder")],
)
def test_group_vars_that_are_no_folder_are_named(site: Path, kind: str, what: str, message: str) -> None:
    if (site / kind).exists():
        (site / kind).rename(site / "kept")
    laid_down(site / kind, what)
    assert f"RW0223: {kind}: {message}" in refusal(site)


def test_a_folder_that_leads_back_to_itself_is_named(site: Path) -> None:
    (site / "group_vars/rack").mkdir()
    for name in ("a", "b", "c"):
        (site / "group_vars/rack" / name).symlink_to(".")
    (site / "group_vars/rack/own.yml").symlink_to("own.yml")
    message = refusal(site)
    coded_refusal(message, "RW0223", "group_vars/rack/own.yml: ", "link to own.yml")
    coded_refusal(message, "RW0223", "group_vars/rack/a: ", "link to ., a folder")


def test_a_folder_that_may_not_be_read_is_named(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    (site / "group_vars/rack").mkdir()
    monkeypatch.setattr(Path, "iterdir", denied)
    assert "Permission denied; next: ls " in refusal(site)
