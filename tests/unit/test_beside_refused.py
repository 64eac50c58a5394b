"""A host whose settings are refused stops no other: check judges all, and a limit skips it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rackwright.adapter.run.inventories import load_inventory, refused_of
from rackwright.adapter.run.session import chosen_hosts, hosts_named
from rackwright.cli.main import main
from rackwright.loading.ansible import jinja
from rackwright.loading.choice import Choice
from rackwright.loading.load import Listing, load
from rackwright.messages import SettingsError
from rackwright.settings.inventory_groups import InventoryGroup, InventoryGroups
from rackwright.settings.problems import InvalidSettingsError

MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
BUILD = "from rackwright.inventory import build\nglobals().update(build(__file__, %s))\n"
WRONG = {
    "a wrong value": "port: banana\n",
    "an unknown key": "prt: 1\n",
    "no YAML": "port: [1\n",
    "a version that is not there": "image: nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6\nengine: {x_y_z: 1}\nprt: 1\n",
    "a key of ssh": "ssh_port: banana\n",
    "a template": "image: '{{ image }}'\n",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with the hosts a, b, c and d, of which any file may be wrong."""
    for name in ("inventory", "group_vars", "host_vars"):
        (tmp_path / name).mkdir()
    (tmp_path / "deploy.py").write_text("from rackwright.operations import concerns\nconcerns.docker()\n")
    (tmp_path / "inventory/x.py").write_text(BUILD % '{"left": ["a", "b"], "right": ["c", "d"]}')
    (tmp_path / "group_vars/all.yml").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    return tmp_path


def names(*words: str) -> list[str]:
    return [host.name for host in chosen_hosts("inventory/x.py", words)]


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_limit_skips_a_refused_host(site: Path, text: str) -> None:
    (site / "host_vars/b.yml").write_text(text)
    assert names("a") == ["a"]
    assert names("right") == ["c", "d"]
    assert list(refused_of("inventory/x.py")) == ["b"]
    for words in ((), ("b",), ("left",), ("*",)):
        with pytest.raises(SettingsError) as raised:
            names(*words)
        assert raised.value.code == "RW0101"


def test_a_file_of_a_group_is_refused_for_its_hosts_alone(site: Path) -> None:
    (site / "group_vars/right.yml").write_text("port: [1\n")
    assert names("left") == ["a", "b"]
    with pytest.raises(SettingsError, match=r"group_vars/right\.yml:2"):
        names("c")


def test_what_is_the_sites_own_counts_for_all(site: Path) -> None:
    (site / "group_vars/lefft.yml").write_text("port: 1\n")
    with pytest.raises(SettingsError, match="RW0219"):
        names("c")


def test_check_judges_all_hosts(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "host_vars/b.yml").write_text("port: banana\n")
    (site / "group_vars/right.yml").write_text("prt: 1\n")
    assert main(["check", "inventory/x.py"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].startswith("a (left) llm: ")
    last = printed.out.splitlines()[-1]
    assert [one for one in ("4 hosts, ", "of 1 are valid", "b, c, d are not") if one not in last] == []
    lines = printed.err.splitlines()
    assert [row.split(":")[0].strip() for row in lines[1:-1]] == ["RW0210", "RW0212"]
    assert lines[1].endswith("; on c, d")
    assert "host_vars/b.yml:1" in lines[2]


def test_check_of_one_host_goes_by_its_own(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "host_vars/b.yml").write_text("port: banana\n")
    assert main(["check", "inventory/x.py", "--host", "a"]) == 0
    assert main(["check", "inventory/x.py", "--limit", "right"]) == 0
    assert main(["check", "inventory/x.py", "--host", "b"]) == 1
    assert main(["render", "inventory/x.py", "--host", "a", "--out", str(site / "out")]) == 0
    assert main(["render", "inventory/x.py", "--host", "b", "--out", str(site / "out")]) == 1
    assert main(["quarantine", "inventory/x.py", "--add", "b"]) == 0


def test_check_judges_the_deploy_file_host_by_host(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["from pyinfra import host", "from rackwright.operations import concerns", "concerns.docker()"]
    (site / "deploy.py").write_text("\n".join([*lines, "host.data.edge", ""]))
    (site / "host_vars/a.yml").write_text("own_keys: [edge]\nedge: 1\n")
    (site / "host_vars/b.yml").write_text("own_keys: [edge]\nport: banana\n")
    assert main(["check", "inventory/x.py"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].startswith("a (left)")
    assert "RW0212: host_vars/b.yml:2" in printed.err
    assert printed.err.count("RW1305") == 1
    assert "(on c, d)" in printed.err


PAIR = """\
network: host
engine_kind: vllm
image: vllm/vllm-openai:v0.14.1
harmony: false
hardware: {gpu_count: 1}
model: {repository: openai/gpt-oss-20b, mount: /config/models/gpt-oss-20b}
"""


def together(site: Path, **hosts: str) -> None:
    (site / "group_vars/all.yml").write_text(PAIR)
    for number, (name, text) in enumerate(hosts.items(), 1):
        (site / "host_vars" / f"{name}.yml").write_text(f"fabric_address: 192.0.2.{number}\n{text}\n")
        if "hosts" in text:
            (site / "host_vars" / f"{name}.yml").open("a").write("engine: {tensor-parallel-size: 2}\n")


def test_a_mate_that_is_refused_counts_and_a_neighbour_does_not(site: Path) -> None:
    (site / "inventory/x.py").write_text(BUILD % '{"rack": ["a", "b", "c", "d"]}')
    (site / "group_vars/rack.yml").write_text("hosts: 2\nengine: {tensor-parallel-size: 2}\n")
    together(site, a="", b="", c="", d="port: banana")
    assert names("a", "b") == ["a", "b"]
    with pytest.raises(SettingsError) as raised:
        names("c")
    assert "RW0255: c: " in str(raised.value)
    assert "RW0212: host_vars/d.yml:2" in str(raised.value)


def test_a_named_mate_counts_whose_file_cannot_be_read(site: Path) -> None:
    together(site, a="hosts: [a, b]", b="hosts: [a, b", c="", d="")
    assert names("c") == ["c"]
    with pytest.raises(SettingsError, match=r"RW0217: host_vars/b\.yml"):
        names("a")


def test_a_host_that_may_be_a_mate_counts(site: Path) -> None:
    (site / "inventory/x.py").write_text(BUILD % '{"rack": ["a", "b", "c", "d"]}')
    together(site, a="hosts: 2", b="hosts: 2", c="hosts: [2", d="hosts: 2")
    with pytest.raises(SettingsError, match="RW0255: a, b: "):
        names("a", "b")


def test_what_does_not_fit_between_mates_is_theirs(site: Path) -> None:
    together(site, a="hosts: [a, b]", b="hosts: [a, b]\nport: 1", c="", d="")
    assert names("c", "d") == ["c", "d"]
    with pytest.raises(SettingsError, match="RW0230"):
        names("a")


def test_a_host_named_in_two_endpoints_is_refused_in_both(site: Path) -> None:
    together(site, a="hosts: [a, b]", b="hosts: [a, b]", c="hosts: [c, a]", d="")
    assert names("d") == ["d"]
    for name in ("a", "c"):
        with pytest.raises(SettingsError, match="RW0230"):
            names(name)


def test_others_are_there_for_who_looks_at_the_whole_fleet(site: Path) -> None:
    (site / "host_vars/b.yml").write_text("port: banana\n")
    assert [host.name for host in hosts_named("inventory/x.py", ["a"])] == ["a", "c", "d"]
    assert refused_of("inventory/x.py") == {"b": ("left",)}
    assert [host.name for host in load_inventory("inventory/x.py", choice=Choice(without=["b"]))] == ["a", "c", "d"]


def test_endless_jinja_is_its_hosts_alone(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja, "EACH", 1)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    (site / "host_vars/b.yml").write_text(f"model: {{}}\nansible_host: '{endless}'\n")
    (site / "host_vars/c.yml").write_text("ansible_host: '{{ inventory_hostname }}.example.com'\n")
    groups = InventoryGroups([InventoryGroup("rack", ["a", "b", "c"])])
    listing = Listing(site / "hosts.ini", groups, {"a": {}, "b": {}, "c": {}}, site, is_ansible=True)
    found = load(listing, choice=Choice(["a", "c"]))
    assert [(host.name, host.data.get("ssh_hostname")) for host in found.hosts] == [("a", None), ("c", "c.example.com")]
    assert list(found.refused) == ["b"]
    with pytest.raises(InvalidSettingsError, match=r"RW0234: host_vars/b\.yml:2: ansible_host: "):
        load(listing, choice=Choice(["b"]))


def test_a_gateway_is_refused_with_any_host_behind_it_and_still_let_in(site: Path) -> None:
    (site / "inventory/x.py").write_text(BUILD % '{"left": ["a", "b"], "gateway": ["192.0.2.9"]}')
    (site / "group_vars/gateway.yml").write_text("gateway: {tls: false, port: 80}\n")
    (site / "host_vars/b.yml").write_text("port: banana\n")
    [host] = chosen_hosts("inventory/x.py", ("a",))
    assert list(refused_of("inventory/x.py")) == ["b", "192.0.2.9"]
    assert [one.address for one in host.settings.gateways] == ["192.0.2.9"]
    with pytest.raises(SettingsError, match="RW0254"):
        names("gateway")
