"""Ansible inventories, and the same precedence as the real `ansible-inventory` on generated sites."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.adapter.run.current_run import Inventories, current_state
from rackwright.adapter.run.inventories import load_inventory
from rackwright.adapter.run_context import part_of
from rackwright.init.shipped import shipped_files
from rackwright.inventory import NAMED
from rackwright.loading.ansible import config
from rackwright.loading.ansible.command import command
from rackwright.loading.ansible.listing import listing_of
from rackwright.messages import SettingsError
from rackwright.settings.connection import login
from tests.fresh import fresh
from tests.lab.products import with_proof
from tests.programs.fake_site import started
from tests.refused import refused

MODEL = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}, "own_keys": ["k*"]}
KEYS = [f"k{number}" for number in range(6)]
INI = """\
[b200]
h2 ansible_host=192.0.2.2 ansible_port=2222 ansible_become=true
h1 ansible_user=ops ansible_ssh_private_key_file=~/.ssh/id ansible_become=no

[site:children]
b200

[site:vars]
endpoint_name=r1
"""


def write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(values))


def generate(site: Path, dice: random.Random) -> None:
    """Make a site whose inventory, group_vars and host_vars all give the same keys another value."""
    numbers = iter(range(10_000))

    def some() -> dict[str, Any]:
        return {key: next(numbers) for key in dice.sample(KEYS, dice.randint(0, 3))}

    names = [f"g{number}" for number in range(5)]
    hosts = [f"h{number}" for number in range(4)]
    groups: dict[str, Any] = {}
    for number, name in enumerate(names):
        priority = {"ansible_group_priority": dice.randint(1, 3)} if dice.random() < 0.5 else {}
        below: dict[str, Any] = {
            child: {} for child in dice.sample(names[number + 1 :], dice.randint(0, len(names) - number - 1))
        }
        members = {host: some() for host in dice.sample(hosts, dice.randint(0, 3))}
        groups[name] = {"hosts": members, "children": below, "vars": {**some(), **priority}}
    write(
        site / "inventory" / "hosts.yml", {"all": {"hosts": {host: some() for host in hosts}, "vars": some()}, **groups}
    )
    write(site / "group_vars" / "all.yml", {**MODEL, **some()})
    for folder in (site, site / "inventory"):
        for name in dice.sample(names, 3):
            write(folder / "group_vars" / f"{name}.yml", some())
        for host in dice.sample(hosts, 2):
            write(folder / "host_vars" / host / "main.yml", some())
    (site / "deploy.py").touch()


@pytest.mark.parametrize("seed", with_proof(range(6), range(2), "made-up sites of one kind; two are tried"))
def test_precedence_is_ansibles(tmp_path: Path, seed: int) -> None:
    generate(tmp_path, random.Random(seed))
    inventory = tmp_path / "inventory" / "hosts.yml"
    words = [command("ansible-inventory"), "-i", str(inventory), "--list", "--playbook-dir", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "ANSIBLE_NOCOLOR": "1"})
    theirs = json.loads(done.stdout)["_meta"]["hostvars"]
    ours = {host.name: {key: host.data[key] for key in KEYS if key in host.data} for host in load_inventory(inventory)}
    assert ours == {host: {key: values[key] for key in KEYS if key in values} for host, values in theirs.items()}
    assert any(ours.values())


@pytest.fixture
def ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with hosts.ini beside group_vars."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.ini").write_text(INI)
    write(tmp_path / "group_vars" / "all.yml", MODEL)
    return tmp_path


def test_an_ini_inventory_in_place_of_a_python_one(ini: Path) -> None:
    h2, h1 = load_inventory("hosts.ini")
    assert (h2.name, h2.groups, h2.settings.endpoint_name) == ("h2", ("site", "b200"), "r1")
    assert (h2.data["ssh_hostname"], h2.data["ssh_port"], h2.data["_sudo"]) == ("192.0.2.2", 2222, True)
    assert (h1.data["ssh_user"], h1.data["ssh_key"], h1.data["_sudo"]) == ("ops", "~/.ssh/id", False)


def test_a_folder_of_inventories(ini: Path) -> None:
    (ini / "both").mkdir()
    # Before 2.19 ansible-core leaves files of that ending out of a folder.
    (ini / "hosts.ini").rename(ini / "both" / "b")
    write(ini / "both" / "a.yml", {"more": {"hosts": {"h3": {"endpoint_name": "r3"}}}})
    write(ini / "both" / "group_vars" / "all.yml", MODEL)
    assert {host.name: host.settings.endpoint_name for host in load_inventory("both")} == {
        "h3": "r3",
        "h2": "r1",
        "h1": "r1",
    }


def test_problems_name_the_inventory(ini: Path) -> None:
    (ini / "hosts.ini").write_text("[b200]\nh1 port=four\n")
    with refused("RW0212", "hosts.ini: port: ", "'four'", error=SettingsError):
        load_inventory("hosts.ini")


WRONG_SETTINGS = [
    ("hosts.ini", "[b200]\nh1 port=four\nh2\n", "hosts.ini: port: must be a whole number, not 'four'; on h1"),
    (
        "hosts.ini",
        "[b200]\nh1\nh2\n[b200:vars]\nport=x\n",
        "hosts.ini: port: must be a whole number",
    ),
    ("host_vars/h1.yml", "port: four\n", "host_vars/h1.yml:1: port: must be a whole number, not 'four'"),
    ("host_vars/h1.yml", "docker:\n  user: [a]\n", "host_vars/h1.yml:2: docker.user: unknown key"),
    ("group_vars/b200.yml", "docker:\n  users: ops\n", "group_vars/b200.yml:2: docker.users: must be a list"),
]


@pytest.mark.parametrize("inventory", ["hosts.ini", "inventory/ansible.py"])
@pytest.mark.parametrize(
    ("file", "text", "problem"),
    with_proof(WRONG_SETTINGS, WRONG_SETTINGS[::2], "five starts of ansible-inventory; three files are tried"),
)
def test_a_wrong_setting_names_file_host_and_key_by_either_inventory(
    ini: Path, inventory: str, file: str, text: str, problem: str
) -> None:
    (ini / "hosts.ini").write_text("[b200]\nh1\nh2\n")
    (ini / "inventory").mkdir()
    (ini / "inventory" / "ansible.py").write_text(shipped_files()[Path("inventory") / "ansible.py"].decode())
    (ini / file).parent.mkdir(exist_ok=True)
    (ini / file).write_text(text)
    with pytest.raises(SettingsError) as raised:
        load_inventory(inventory)
    [found] = [row for row in str(raised.value).splitlines() if row.startswith("  RW")]
    assert problem in found
    assert str(raised.value).splitlines()[-1].endswith(f"rackwright check {inventory}")


def test_group_vars_are_left_to_the_loader(ini: Path) -> None:
    write(ini / "group_vars" / "b200.yml", {"endpoint_name": "from-group-vars"})
    assert "endpoint_name" not in listing_of(ini / "hosts.ini").groups.values("b200")


def test_an_inventory_that_ansible_cannot_read(ini: Path) -> None:
    (ini / "hosts.ini").write_text("[b200\nh1\n")
    with refused("RW0203", "hosts.ini: ", "next: ansible-inventory", error=SettingsError):
        load_inventory("hosts.ini")


def test_an_inventory_that_is_not_there(ini: Path) -> None:
    with refused("RW1306", "nowhere.ini: ", error=SettingsError):
        load_inventory("nowhere.ini")


def test_the_shipped_inventory_for_ansible_sites(ini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """group_vars of the site count, wherever the Ansible inventory and the user are."""
    fresh(ini / "site", ansible=True)
    monkeypatch.setenv("RACKWRIGHT_ANSIBLE_INVENTORY", str(ini / "hosts.ini"))
    hosts = load_inventory("site/inventory/ansible.py")
    assert [(host.name, host.settings.hardware.machine) for host in hosts] == [("h2", "DGX B200"), ("h1", "DGX B200")]


def test_hosts_ini_of_the_site_counts_wherever_the_user_stands(ini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(ini / "site", ansible=True)
    (ini / "hosts.ini").rename(ini / "site" / "hosts.ini")
    (ini / "hosts.ini").write_text("[b200]\nanother ansible_host=192.0.2.9\n")
    assert [host.name for host in load_inventory("site/inventory/ansible.py")] == ["h2", "h1"]
    monkeypatch.setenv(NAMED, "hosts.ini")  # a path that is typed counts from the current folder
    assert [host.name for host in load_inventory("site/inventory/ansible.py")] == ["another"]
    monkeypatch.chdir("site")  # as a process that a rollout starts
    assert [host.name for host in load_inventory("inventory/ansible.py")] == ["another"]


DYNAMIC = """\
#!/usr/bin/env python3
import json, sys
assert sys.argv[1:] == ["--list"], sys.argv
print(json.dumps({"b200": {"hosts": ["h9"]}, "_meta": {"hostvars": {"h9": {"ansible_host": "192.0.2.9"}}}}))
"""


@pytest.mark.parametrize("name", ["dyn.py", "dyn.sh", "dyn", "folder/dyn.py"])
def test_an_executable_inventory_works_whatever_its_ending(ini: Path, name: str) -> None:
    file = ini / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(DYNAMIC)
    file.chmod(0o755)
    write(file.parent / "group_vars" / "all.yml", MODEL)
    [host] = load_inventory(name.partition("/")[0])
    assert (host.name, host.data["ssh_hostname"]) == ("h9", "192.0.2.9")


def test_a_python_inventory_on_a_disk_where_every_file_is_executable(ini: Path) -> None:
    text = 'from rackwright.inventory import build\nglobals().update(build(__file__, {"b200": ["h1"]}))\n'
    (ini / "fleet.py").write_text(text)
    (ini / "fleet.py").chmod(0o777)
    assert [host.name for host in load_inventory("fleet.py")] == ["h1"]


def test_a_program_that_is_not_executable_is_told_to_be(ini: Path) -> None:
    (ini / "dyn.py").write_text("import json\nprint(json.dumps({}))\n")
    with refused("RW1307", "dyn.py ", "chmod +x dyn.py", error=SettingsError):
        load_inventory("dyn.py")


@pytest.mark.parametrize("name", ["hosts.ini", "dyn.py"])
def test_pyinfra_is_handed_python_in_place_of_an_ansible_inventory(ini: Path, name: str) -> None:
    file = ini / name
    file.write_text(DYNAMIC.replace("h9", "@fake/h9") if name == "dyn.py" else "[b200]\n@fake/h9 x=1\n")
    file.chmod(0o755 if name == "dyn.py" else 0o644)
    site = ini / "site"
    fresh(site, ansible=True)
    file.rename(site / name)
    status, output = started(site, "rackwright", "teardown", name, "--dry")
    assert "@fake/h9" in output
    assert "RW1407" not in output
    assert "Loading inventory" in output
    assert status in (0, 1), output


# -- what Ansible warns of, and what its configuration says


def write_cfg(site: Path, text: str) -> None:
    (site / "deploy.py").touch()
    (site / "ansible.cfg").write_text(text)


def test_a_source_that_ansible_cannot_read_is_no_smaller_fleet(ini: Path) -> None:
    (ini / "both").mkdir()
    (ini / "hosts.ini").rename(ini / "both" / "b")
    (ini / "both" / "netbox.yml").write_text("plugin: netbox.netbox.nb_inventory\napi_endpoint: http://192.0.2.1\n")
    with pytest.raises(SettingsError) as raised:
        load_inventory("both")
    assert raised.value.code == "RW0203"
    assert f"{ini}/both/netbox.yml" in str(raised.value)
    assert "netbox.netbox.nb_inventory" in str(raised.value)


@pytest.mark.parametrize("path", ["both/pipe", "both/rack/pipe"])
def test_a_pipe_in_a_folder_of_inventories_is_named(ini: Path, path: str) -> None:
    (ini / path).parent.mkdir(parents=True)
    (ini / "hosts.ini").rename(ini / "both" / "b")
    os.mkfifo(ini / path)
    with refused("RW0226", path, error=SettingsError):
        listing_of(ini / "both")


def test_what_ansible_warns_of_is_shown(ini: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = DYNAMIC.replace(
        "import json, sys", "import json, sys\nprint('half of the racks did not answer', file=sys.stderr)"
    )
    (ini / "dyn").write_text(text.replace('"b200"', '"h9"'))
    (ini / "dyn").chmod(0o755)
    part_of(current_state(), Inventories).left_out.clear()
    load_inventory("dyn")
    messages = [record.getMessage() for record in caplog.records]
    for warning in ("half of the racks did not answer", "Found both group and host with same name: h9"):
        assert f"dyn: Ansible warns: {warning}" in messages


CFG = """\
[defaults]
remote_user = ubuntu
remote_port = 2222
private_key_file = ~/.ssh/fleet
timeout = 30
host_key_checking = False
[privilege_escalation]
become = True
[ssh_connection]
ssh_args = -o ControlMaster=auto -o ControlPersist=60s -J ops@bastion
pipelining = True
"""


def test_ansible_cfg_says_how_hosts_are_reached(
    ini: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(ini / "cache"))
    part_of(current_state(), Inventories).left_out.clear()
    write_cfg(ini, CFG)
    h2, h1 = load_inventory("hosts.ini")
    keys = ("ssh_user", "ssh_port", "ssh_key", "_sudo")
    assert [h2.data[key] for key in keys] == ["ubuntu", 2222, str(Path("~/.ssh/fleet").expanduser()), True]
    assert [h1.data[key] for key in keys] == ["ops", 2222, "~/.ssh/id", False]
    assert "  ProxyJump ops@bastion\n" in Path(h1.data["ssh_config_file"]).read_text()
    [message] = [record.getMessage() for record in caplog.records if "not taken" in record.getMessage()]
    assert message.partition(": not taken: ")[0] == f"{ini}/ansible.cfg"
    assert "timeout" in message
    assert "host_key_checking" in message


PLUGINS = """\
[defaults]
become_password_file = /run/password
connection_password_file = /run/password
[ssh_connection]
timeout = 30
host_key_checking = False
[sudo_become_plugin]
flags = -H -S
executable = /opt/sudo
"""


def test_what_plugins_take_from_ansible_cfg_is_named_too(ini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cfg(ini, PLUGINS)
    [text] = config.configured(ini).left_out
    names = ("become_password_file", "connection_password_file", "timeout", "host_key_checking", "flags", "executable")
    assert [name for name in names if name not in text] == []
    monkeypatch.setenv("ANSIBLE_SUDO_USER", "svc")
    assert config.configured(ini).values["ansible_become_user"] == "svc"


def test_the_environment_counts_as_ansible_cfg_does(ini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_REMOTE_USER", "deployer")
    h2, h1 = load_inventory("hosts.ini")
    assert (h2.data["ssh_user"], h1.data["ssh_user"]) == ("deployer", "ops")
    assert str(h2.origins["ssh_user",]) == "env: ANSIBLE_REMOTE_USER"


def test_ansible_cfg_without_a_way_to_hosts_is_not_dumped(ini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cfg(ini, "[defaults]\ninventory = hosts.ini\nforks = 20\n")
    monkeypatch.setattr(config, "_dumped", lambda *_: pytest.fail("a second of CPU for nothing"))
    assert config.configured(ini) == config.AnsibleConfig()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("h1 ansible_host=[2001:db8::11]", "ansible_host: must be a name or an address, not '[2001:db8::11]': write it "
         "without brackets; on h1"),
        ("h1 ansible_host=10.0.0.1:22", "ansible_host: must be a name or an address, not '10.0.0.1:22'; on h1"),
        ("h1 ansible_ssh_host=a/b", "ansible_ssh_host: must be a name or an address, not 'a/b'; on h1"),
        ("h1 ansible_port=99999", "ansible_port: must be less than or equal to 65535, not 99999; on h1"),
        ("h1 ansible_port=ssh", "ansible_port: must be a whole number, not 'ssh'; on h1"),
        ("h1 ansible_become=maybe", "ansible_become: must be true or false, not 'maybe'; on h1"),
        ("h1 ansible_become_user=bob", "ansible_become_user: must be 'root', not 'bob'; on h1"),
        ("h1 ansible_become_method=su", "ansible_become_method: su is not used here, sudo alone"),
        ("h1 ansible_connection=local", "ansible_connection: local is not used here, SSH alone"),
        ("h1 ansible_connection=community.docker.docker", "ansible_connection: community.docker.docker is not"),
        ("h1 ansible_connection=winrm", "ansible_connection: winrm is not used here"),
        ("h1 ansible_ssh_common_args='-F ./ssh.cfg'", "set `ssh_config_file: ./ssh.cfg`"),
        ("h1 ssh_port=0", "ssh_port: must be greater than or equal to 1, not 0; on h1"),
    ],
)  # fmt: skip
def test_errors_on_the_way_to_a_host_name_it_and_the_word_that_was_written(ini: Path, entry: str, message: str) -> None:
    (ini / "hosts.ini").write_text(f"[b200]\n{entry}\nh2\n")
    with pytest.raises(SettingsError) as raised:
        load_inventory("hosts.ini")
    [found] = [one for one in str(raised.value).splitlines() if one.startswith("  RW")]
    assert message in found
    assert "on h1" in found


def test_what_is_the_same_here_passes(ini: Path) -> None:
    (ini / "ssh.cfg").write_text("Host *\n  User ops\n")
    text = (
        "h1 ansible_become_method=sudo ansible_connection=ssh ansible_ssh_common_args='-F ./ssh.cfg -4' "
        "ssh_config_file=ssh.cfg\n"
    )
    (ini / "hosts.ini").write_text(f"[b200]\n{text}")
    [host] = load_inventory("hosts.ini")
    assert "AddressFamily inet\n" in Path(host.data["ssh_config_file"]).read_text()
    assert login("h1", host.data) == "ops"
