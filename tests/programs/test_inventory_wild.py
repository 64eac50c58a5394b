"""Inventories as kubespray and DeepOps leave them: they work as they are, and say in one line what was left out."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rackwright.adapter.run.current_run import Inventories, current_state
from rackwright.adapter.run.inventories import load_inventory
from rackwright.adapter.run_context import part_of
from rackwright.cli.main import main
from rackwright.messages import SettingsError
from rackwright.settings.ssh.args import options
from tests import texts
from tests.programs.fake_site import make_site, started
from tests.refused import refused

MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
KUBESPRAY = """\
all:
  hosts:
    node1: {ansible_host: 192.0.2.1, ip: 10.3.0.1, access_ip: 10.3.0.1, etcd_member_name: etcd1}
    node2: {ansible_host: 192.0.2.2, ip: 10.3.0.2, access_ip: 10.3.0.2}
    mgmt01: {ansible_host: 192.0.2.9, ansible_become_password: "{{ vault_become }}", ip: 10.3.0.9}
  children:
    kube_control_plane: {hosts: {mgmt01: {}}}
    kube_node: {hosts: {node1: {}, node2: {}}}
    etcd: {hosts: {mgmt01: {}}}
    k8s_cluster: {children: {kube_control_plane: {}, kube_node: {}}}
    calico_rr: {hosts: {}}
"""
CLUSTER = """\
kube_config_dir: /etc/kubernetes
kube_cert_dir: "{{ kube_config_dir }}/ssl"
kube_cert_mode: 0640
kube_proxy_mode: ipvs
docker_version: "24.0"
docker_users: [ops]
environment: production
container_manager: containerd
enable_nodelocaldns: true
"""
DEEPOPS = """\
[all]
mgmt01 ansible_host=192.0.2.9
gpu01  ansible_host=192.0.2.1
gpu02  ansible_host=192.0.2.2

[kube-master]
mgmt01

[kube-node]
gpu01
gpu02

[k8s-cluster:children]
kube-master
kube-node

[slurm-node]
gpu01

[all:vars]
ansible_user=ubuntu
ansible_ssh_private_key_file='~/.ssh/id_rsa'
ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p -q ubuntu@192.0.2.250" -o StrictHostKeyChecking=no'
"""


@pytest.fixture
def wild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site of Rackwright, and beside it a kubespray of another project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RACKWRIGHT_SITE", str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    part_of(current_state(), Inventories).left_out.clear()
    (tmp_path / "site" / "group_vars").mkdir(parents=True)
    (tmp_path / "site" / "deploy.py").touch()
    (tmp_path / "site" / "group_vars" / "kube_node.yml").write_text(MODEL)
    for kind in ("all", "k8s_cluster", "gone_group"):
        (tmp_path / "mycluster" / "group_vars" / kind).mkdir(parents=True)
    (tmp_path / "mycluster" / "hosts.yaml").write_text(KUBESPRAY)
    (tmp_path / "mycluster" / "group_vars" / "all" / "all.yml").write_text("bin_dir: /usr/local/bin\nntp_enabled: no\n")
    (tmp_path / "mycluster" / "group_vars" / "k8s_cluster" / "k8s-cluster.yml").write_text(CLUSTER)
    (tmp_path / "mycluster" / "group_vars" / "gone_group" / "main.yml").write_text("x: 1\n")
    return tmp_path


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_kubesprays_inventory_works_as_it_is(wild: Path, caplog: pytest.LogCaptureFixture) -> None:
    hosts = load_inventory("mycluster/hosts.yaml")
    assert [(host.name, host.data["ssh_hostname"]) for host in hosts] == [
        ("node1", "192.0.2.1"),
        ("node2", "192.0.2.2"),
    ]
    assert not {"ip", "kube_cert_dir"} & hosts[0].data.keys()
    *near, message = messages(caplog)
    ignored = "13 variables of other programs ignored (access_ip, bin_dir, container_manager and 10 more)"
    assert message == f"mycluster/hosts.yaml: {ignored}; {texts.NO_MODEL}mgmt01"
    file = wild / "mycluster/group_vars/k8s_cluster/k8s-cluster.yml"
    assert near == [f"{file}:7: environment: {texts.IGNORED}; {texts.KEY_IS_MAPPING.format(key='environment')}"]


def test_a_near_miss_of_ours_is_named(wild: Path, caplog: pytest.LogCaptureFixture) -> None:
    (wild / "mycluster" / "group_vars" / "kube_node.yml").write_text("stop_timeot: 90\n")
    load_inventory("mycluster/hosts.yaml")
    file = wild / "mycluster/group_vars/kube_node.yml"
    assert f"{file}:1: stop_timeot: {texts.IGNORED}; did you mean stop_timeout?" in messages(caplog)


def test_a_near_miss_in_the_site_itself_is_a_mistake(wild: Path) -> None:
    with (wild / "site" / "group_vars" / "kube_node.yml").open("a") as file:
        file.write("stop_timeot: 90\nkube_version: v1.31\n")
    where = "group_vars/kube_node.yml:2: stop_timeot: "
    with refused("RW0210", where, "stop_timeout?", error=SettingsError) as raised:
        load_inventory("mycluster/hosts.yaml")
    assert "kube_version" not in str(raised.value)


def test_what_own_keys_names_passes(wild: Path) -> None:
    (wild / "site" / "group_vars" / "all.yml").write_text("own_keys: [ip]\n")
    assert [host.data["ip"] for host in load_inventory("mycluster/hosts.yaml")] == ["10.3.0.1", "10.3.0.2"]


def test_where_no_host_has_a_model_none_is_skipped(wild: Path) -> None:
    """deploy.py gives it, or does without; and the check of its steps says what is missing."""
    (wild / "site" / "group_vars" / "kube_node.yml").unlink()
    hosts = wild / "mycluster" / "hosts.yaml"
    hosts.write_text(KUBESPRAY.replace('ansible_become_password: "{{ vault_become }}", ', ""))
    assert [host.name for host in load_inventory("mycluster/hosts.yaml")] == ["mgmt01", "node1", "node2"]


def test_pyinfra_gets_the_hosts_that_are_left(tmp_path: Path) -> None:
    text = 'from rackwright.inventory import from_ansible\nglobals().update(from_ansible("../hosts.yaml", __file__))\n'
    (tmp_path / "site").mkdir()
    site = make_site(tmp_path / "site", 'from pyinfra import host\nprint(f"deploys {host.name}")\n', text)
    (site / "group_vars" / "all.yml").rename(site / "group_vars" / "kube_node.yml")
    hosts = KUBESPRAY.replace("node1:", '"@fake/node1":').replace("node2:", '"@fake/node2":')
    (tmp_path / "hosts.yaml").write_text(hosts)
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y")
    assert status == 0, output
    assert sorted(output_line for output_line in output.splitlines() if output_line.startswith("deploys")) == [
        "deploys @fake/node1",
        "deploys @fake/node2",
    ]
    assert f"{texts.NO_MODEL}mgmt01" in output


def test_deepops_inventory_with_its_bastion(wild: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wild / "config").mkdir()
    (wild / "config" / "inventory").write_text(DEEPOPS)
    (wild / "site" / "group_vars" / "kube_node.yml").rename(wild / "site" / "group_vars" / "kube-node.yml")
    gpu01, gpu02 = load_inventory("config/inventory")
    assert (gpu01.data["ssh_user"], gpu02.data["ssh_hostname"]) == ("ubuntu", "192.0.2.2")
    text = Path(gpu01.data["ssh_config_file"]).read_text()
    jump = "ssh -o StrictHostKeyChecking=yes -W %h:%p -q ubuntu@192.0.2.250"
    assert text == f"Host 192.0.2.1\n  ProxyCommand {jump}\n"
    assert gpu01.data["ssh_strict_host_key_checking"] == "yes"
    assert options({"ansible_ssh_common_args": "-o StrictHostKeyChecking=no"}) == []
    assert main(["check", "config/inventory"]) == 0
    assert f"config/inventory: 2 hosts, {texts.VALID}" in capsys.readouterr().out


BASTION = """\
all:
  vars:
    bastion: "{{ edge.name }}"
    edge: {name: 192.0.2.250, secret: "{{ nothing_of_that_name }}"}
    ansible_user: ubuntu
    ansible_ssh_private_key_file: ~/.ssh/id_rsa
    ansible_ssh_common_args: >-
      -o ProxyCommand='ssh -o StrictHostKeyChecking=no -W %h:%p -q {{ ansible_user }}@{{ bastion }}
      {% if ansible_ssh_private_key_file is defined %}-i {{ ansible_ssh_private_key_file }}{% endif %}'
  hosts:
    node1: {ansible_host: "{{ rack }}.1", rack: 192.0.2}
"""
"""The form of kubespray's group_vars for hosts behind a bastion."""


def test_jinja_on_the_way_to_a_host_is_evaluated_with_all_that_the_inventory_says(wild: Path) -> None:
    file = wild / "bastion.yml"
    file.write_text(BASTION)
    [host] = load_inventory(str(file))
    assert host.data["ssh_hostname"] == "192.0.2.1"
    content = Path(host.data["ssh_config_file"]).read_text()
    jump = "ssh -o StrictHostKeyChecking=yes -W %h:%p -q ubuntu@192.0.2.250 -i ~/.ssh/id_rsa"
    assert f"ProxyCommand {jump}\n" in content


@pytest.mark.parametrize(
    "text", ["{{ undefined_name }}", "{{ ''.__class__ }}", "{{ 1 / 0 }}", "{{", "{{ edge.secret }}"]
)
def test_jinja_that_makes_nothing_is_refused_as_before(wild: Path, text: str) -> None:
    file = wild / "bastion.yml"
    file.write_text(BASTION.replace("{{ bastion }}", text))
    with pytest.raises(SettingsError, match=r"ansible_ssh_common_args: "):
        load_inventory(str(file))
