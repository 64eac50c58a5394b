"""Files of a site to settings of hosts: precedence by file, secrets, and every problem of all files at once."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.concerns.docker.wanted import wanted
from rackwright.loading.ansible.command import command
from rackwright.loading.files import is_slip, site_root
from rackwright.messages import SettingsError
from rackwright.plan.concern import HostReading
from rackwright.settings.origin import origin_of
from rackwright.settings.problems import HEADING
from rackwright.settings.secret import Secret
from tests import texts
from tests.refused import each_refused, refused

MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
INVENTORY = """\
from rackwright.inventory import build
groups = {"left": ["h1", ("h2", {"endpoint_name": "inline"})], "right": ["h1"]}
globals().update(build(__file__, groups, children={"top": ["left"]}))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with one inventory of two hosts and three groups."""
    for name in ("inventory", "group_vars", "host_vars"):
        (tmp_path / name).mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "inventory" / "fleet.py").write_text(INVENTORY)
    (tmp_path / "group_vars" / "all.yml").write_text(MODEL)
    (tmp_path / "password").write_text("open sesame\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "password")
    return tmp_path


@cache
def vault(text: str) -> str:
    words = [command("ansible-vault"), "encrypt", "--output", "-"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def inline(text: str, indent: str = "  ") -> str:
    return "!vault |\n" + "".join(f"{indent}{row}\n" for row in vault(text).splitlines())


def refusal(path: str = "inventory/fleet.py") -> list[str]:
    """Return the lines of the refusal, without its heading and its last line, which are checked here."""
    with pytest.raises(SettingsError) as raised:
        load_inventory(path)
    first, *lines, last = str(raised.value).splitlines()
    assert first == f"RW0101: {HEADING}"
    assert last == f"{texts.FIX_THESE}rackwright check {path}"
    return [row.removeprefix("  ") for row in lines]


def test_stronger_files_win_and_origins_name_them(site: Path) -> None:
    for name, endpoint_name in (("all.yml", "all"), ("top.yml", "top"), ("left.yaml", "left"), ("right.yml", "right")):
        with (site / "group_vars" / name).open("a") as file:
            file.write(f"endpoint_name: {endpoint_name}\n")
    (site / "host_vars" / "h1.yml").write_text("# nothing of endpoint_name\nport: 9000\n")
    h1, h2 = load_inventory("inventory/fleet.py")
    assert (h1.name, h1.groups, h1.settings.endpoint_name, h1.settings.port) == (
        "h1",
        ("right", "top", "left"),
        "left",
        9000,
    )
    assert str(origin_of(h1.origins, ("endpoint_name",))) == "group_vars/left.yaml:1"
    assert str(origin_of(h1.origins, ("port",))) == "host_vars/h1.yml:2"
    assert (h2.settings.endpoint_name, str(origin_of(h2.origins, ("endpoint_name",)))) == (
        "inline",
        "inventory/fleet.py",
    )


def test_relative_file_names_are_the_sites_wherever_one_stands(
    site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    for folder in (site, elsewhere):
        (folder / "ca.pem").write_text(f"-----BEGIN CERTIFICATE-----\n{folder}\n")
    text = (
        "ssh_key: keys/id\nssh_known_hosts_file: ~/known\nssh_config_file: /etc/ssh/ours\npaths: {private_ca: ca.pem}\n"
    )
    (site / "group_vars" / "left.yml").write_text(text)
    host, _ = load_inventory(site / "inventory" / "fleet.py")
    found = [host.data[key] for key in ("ssh_key", "ssh_known_hosts_file", "ssh_config_file")]
    assert found == [f"{site}/keys/id", "~/known", "/etc/ssh/ours"]
    authority = wanted(host.settings, HostReading({"ownership": frozenset()})).authority
    assert authority == (site / "ca.pem").read_text()


def test_the_site_is_the_nearest_folder_with_a_deploy_above_the_inventory(site: Path) -> None:
    below = site / "inventory" / "production" / "rack1"
    below.mkdir(parents=True)
    assert site_root(below / "hosts.yml") == site
    (below / "deploy.py").touch()
    assert site_root(below / "hosts.yml") == below


def test_a_folder_of_files_is_read_in_order_of_their_names(site: Path) -> None:
    (site / "group_vars" / "left").mkdir()
    (site / "group_vars" / "left" / "b.yml").write_text("endpoint_name: b\n")
    (site / "group_vars" / "left" / "a.yml").write_text("endpoint_name: a\nport: 1\n")
    (site / "group_vars" / "left" / ".hidden.yml").write_text("endpoint_name: [broken\n")
    host, _ = load_inventory("inventory/fleet.py")
    assert (host.settings.endpoint_name, host.settings.port) == ("b", 1)


def test_files_of_the_site_are_stronger_than_those_beside_the_inventory(site: Path) -> None:
    (site / "inventory" / "group_vars").mkdir()
    (site / "inventory" / "group_vars" / "left.yml").write_text("endpoint_name: beside\nport: 1\n")
    (site / "group_vars" / "left.yml").write_text("endpoint_name: site\n")
    host, _ = load_inventory("inventory/fleet.py")
    assert (host.settings.endpoint_name, host.settings.port) == ("site", 1)


def test_vault_values_are_secrets_wherever_they_stand(site: Path) -> None:
    (site / "group_vars" / "left.yml").write_text(
        f"models:\n  hub_token: {inline('hf_1', '    ')}registry:\n  key: {inline('nvapi', '    ')}"
    )
    (site / "host_vars" / "h2.yml").write_text(vault("models: {hub_token: hf_2}\n"))
    h1, h2 = load_inventory("inventory/fleet.py")
    assert (h1.data["models"]["hub_token"], h2.data["models"]["hub_token"]) == (Secret("hf_1"), Secret("hf_2"))
    assert h1.data["registry"] == {"key": Secret("nvapi")}
    assert "hf_" not in repr((h1, h2))


def test_a_secret_in_clear_is_masked_all_the_same(site: Path) -> None:
    (site / "group_vars" / "left.yml").write_text("registry: {key: nvapi-clear}\n")
    host, _ = load_inventory("inventory/fleet.py")
    assert host.data["registry"] == {"key": Secret("nvapi-clear")}
    assert "nvapi-clear" not in repr(host)


def test_every_text_and_number_of_an_encrypted_file_is_secret(site: Path) -> None:
    (site / "host_vars" / "h1.yml").write_text(vault("port: 8000\nharmony: true\nown_keys: [x]\n"))
    lines = refusal()
    assert [row.split(": ")[1:3] for row in lines] == [
        ["host_vars/h1.yml:1", "port"],
        ["host_vars/h1.yml:3", "own_keys[0]"],
    ]


def warned(caplog: pytest.LogCaptureFixture, path: str = "inventory/fleet.py") -> list[str]:
    """Return the warnings of a load."""
    with caplog.at_level("WARNING", logger="pyinfra"):
        load_inventory(path)
    return [record.getMessage() for record in caplog.records]


def test_the_text_of_files_that_nobody_uses(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As in a fresh site whose other inventories were deleted."""
    for name in ("b200.yml", "gb200.yml", "h200_eagle.yml", "prod-eu.yml"):
        (site / "group_vars" / name).write_text("port: 8001\n")
    (site / "host_vars" / "h9.yml").write_text("port: 8001\n")
    assert warned(caplog) == [
        "group_vars/: not used, since no inventory here has such a group: b200.yml, gb200.yml, h200_eagle.yml, "
        "prod-eu.yml",
        "host_vars/: not used, since no inventory here has such a host: h9.yml",
    ]


def test_a_shipped_profile_is_no_misspelling_of_another(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = INVENTORY.replace('"right"', '"b200"')
    (site / "inventory" / "fleet.py").write_text(text)
    (site / ".rackwright" / "shipped" / "group_vars").mkdir(parents=True)
    for folder in (site, site / ".rackwright" / "shipped"):
        (folder / "group_vars" / "b201x.yml").write_text("port: 8001\n")
        (folder / "group_vars" / "xb200.yml").write_text("port: 8001\n")
    (site / "group_vars" / "gb200.yml").write_text("port: 8001\n")
    (warning,) = warned(caplog)
    assert warning.endswith(": b201x.yml, gb200.yml, xb200.yml")
    (site / "group_vars" / "b2000.yml").write_text("port: 8001\n")
    each_refused(refusal(), ("RW0219", "group_vars/b2000.yml: ", "(did you mean b200?)"))


@pytest.mark.parametrize(
    ("typed", "name", "is_one"),
    [
        ("lefft", "left", True),
        ("Left", "left", True),
        ("letf", "left", True),
        ("prodution", "production", True),
        ("rocks", "racks", True),
        ("prod-eu", "prod-us", False),
        ("gpu08", "gpu09", False),
        ("gpu18", "gpu81", False),
        ("gup18", "gpu18", True),
        ("b200", "h200", False),
        ("left", "right", False),
        ("", "left", False),
    ],
)
def test_a_slip_of_the_keyboard(typed: str, name: str, is_one: bool) -> None:
    assert is_slip(typed, name) is is_one


def test_every_problem_of_all_files_comes_at_once(site: Path) -> None:
    (site / "group_vars" / "left.yml").write_text("prt: 1\nengine:\n  a: 1\n  a: 2\n")
    (site / "group_vars" / "lefft.yml").write_text("endpoint_name: x\n")
    (site / "group_vars" / "right.yml").write_text("hardware:\n  gpu_count: 0\n")
    (site / "host_vars" / "h11.yml").write_text("endpoint_name: x\n")
    (site / "host_vars" / "h1").mkdir()
    (site / "host_vars" / "h1.yml").write_text("endpoint_name: x\n")
    each_refused(
        refusal(),
        ("RW0219", "group_vars/lefft.yml: ", "(did you mean left?)"),
        ("RW0210", "group_vars/left.yml:1: prt: ", "(did you mean port?)"),
        ("RW0301", "group_vars/left.yml:3: engine.a: "),
        ("RW0218", "group_vars/left.yml:4: engine.a: ", "line 3"),
        ("RW0212", "group_vars/right.yml:2: hardware.gpu_count: ", "equal to 1, not 0; on h1"),
        ("RW0220", "host_vars/h1.yml: ", "host_vars/h1 is there too"),
        ("RW0219", "host_vars/h11.yml: ", "(did you mean h1?)"),
    )


def test_a_broken_file_is_refused_without_its_consequences(site: Path) -> None:
    (site / "group_vars" / "all.yml").write_text("model: [\n")
    each_refused(refusal(), ("RW0217", "group_vars/all.yml:2: ", "'<stream end>'"))


def test_hosts_with_the_same_problem_are_named_together(site: Path) -> None:
    (site / "group_vars" / "all.yml").write_text("endpoints: {b: {}}\n")
    each_refused(refusal(), ("RW0110", "h1, h2: endpoint b ", "`model:`", "group_vars or host_vars"))


def test_group_vars_may_belong_to_another_inventory_of_the_site(site: Path) -> None:
    (site / "group_vars" / "decode.yml").write_text("nonsense: 1\n")
    (site / "inventory" / "other.py").write_text('GROUPS = {"decode": []}\n')
    assert len(load_inventory("inventory/fleet.py")) == 2


def test_a_priority_in_group_vars_is_refused(site: Path) -> None:
    (site / "group_vars" / "left.yml").write_text("ansible_group_priority: 5\n")
    each_refused(refusal(), ("RW0211", "group_vars/left.yml:1: ansible_group_priority: "))


def test_an_inventory_that_does_not_exist(site: Path) -> None:
    with refused("RW1306", "inventory/flet.py: ", "; next: ls inventory", error=SettingsError):
        load_inventory("inventory/flet.py")


def test_an_inventory_without_build(site: Path) -> None:
    (site / "inventory" / "bare.py").write_text("hosts = ['h1']\n")
    with refused("RW1307", "inventory/bare.py", "build(__file__, {...})", error=SettingsError):
        load_inventory("inventory/bare.py")


def test_an_inventory_that_fails(site: Path) -> None:
    (site / "inventory" / "bad.py").write_text("1 / 0\n")
    with refused("RW1308", "inventory/bad.py: ZeroDivisionError: division", error=SettingsError):
        load_inventory("inventory/bad.py")


def test_a_host_entry_of_the_wrong_form(site: Path) -> None:
    (site / "inventory" / "bad.py").write_text(INVENTORY.replace('"h1", (', '("h1", 5), ('))
    with refused("RW1401", '("name", {"key": value})', "not ('h1', 5)", error=SettingsError):
        load_inventory("inventory/bad.py")


def test_strict_host_keys_and_sudo_follow_from_the_rest(site: Path) -> None:
    (site / "host_vars" / "h1.yml").write_text("ssh_user: ops\n")
    (site / "host_vars" / "h2.yml").write_text("ansible_user: root\naccept_new_host_keys: true\n")
    h1, h2 = load_inventory("inventory/fleet.py")
    assert (h1.data["ssh_strict_host_key_checking"], h1.data["_sudo"]) == ("yes", True)
    assert (h2.data["ssh_strict_host_key_checking"], h2.data["_sudo"]) == ("accept-new", False)
    assert h2.data["ssh_user"] == "root"


def test_a_child_group_that_does_not_exist(site: Path) -> None:
    (site / "inventory" / "bad.py").write_text(INVENTORY.replace('["left"]', '["lefft"]'))
    with refused("RW1403", "top: ", "unknown group lefft (did you mean left?)", error=SettingsError):
        load_inventory("inventory/bad.py")
