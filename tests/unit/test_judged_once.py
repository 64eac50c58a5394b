"""Hosts with equal settings are judged once, and a deploy file is run once for hosts that it cannot tell apart."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run import declaring
from rackwright.adapter.run.declaring import declare
from rackwright.adapter.run.host_reads import reads_of
from rackwright.engines import host as fit
from rackwright.loading.ansible.foreign import without_a_model
from rackwright.loading.load import Listing, load
from rackwright.loading.validate import Known, validate
from rackwright.messages import SettingsError
from rackwright.settings.group import Group
from rackwright.settings.inventory_groups import InventoryGroup, InventoryGroups
from rackwright.settings.secret import Secret
from tests.unit.machines import settings

HOST = "from pyinfra import host\nfrom rackwright.operations import docker, firewall\n"
DATA: Mapping[str, Mapping[str, Any]] = {
    "h1": {"edge": True, "ssh_hostname": "10.0.0.1"},
    "h2": {"edge": True, "ssh_hostname": "10.0.0.2"},
    "h3": {"edge": 1, "ssh_hostname": "10.0.0.3"},
    "h4": {"ssh_hostname": "10.0.0.4"},
}


def site(folder: Path, text: str, **modules: str) -> Path:
    """Make a site's deploy file, and its own modules beside it."""
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    (folder / "deploy.py").write_text(text)
    return folder / "deploy.py"


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        ("docker()", frozenset()),
        ("if host.data.get('edge'): firewall()", frozenset({"edge"})),
        ("if host.data.edge == host.data.get('rack', 1): firewall()", frozenset({"edge", "rack"})),
        ("if host.data.get('edge', host.data.rack): firewall()", frozenset({"edge", "rack"})),
    ],
)
def test_a_deploy_file_says_by_which_data_it_decides(tmp_path: Path, code: str, keys: frozenset[str]) -> None:
    assert reads_of(site(tmp_path, HOST + code)) == keys


@pytest.mark.parametrize(
    "code",
    [
        "if host.name == 'h1': firewall()",
        "if 'b200' in host.groups: firewall()",
        "if host.data.dict().get('edge'): firewall()",
        "if host.data.get(key): firewall()",
        "if getattr(host.data, 'edge', 0): firewall()",
        "same = host",
        "print(f'{host}')",
        "from pyinfra import host as same",
        "from pyinfra import inventory",
        "from pyinfra import state",
        "from pyinfra.context import ctx_host",
        "from pyinfra.api.deploy import context\ncontext.host.name",
        "import pyinfra",
        "import pyinfra.context",
        "from rackwright.adapter.run.inventories import settings_of",
        "from rackwright import inventory",
        "import yaml_that_nobody_has",
        "import importlib",
        "eval('ho' + 'st.name')",
        "globals()['host']",
        "count = 0\ndef first():\n    global count\n    count += 1",
    ],
)
def test_what_else_it_may_decide_by_is_asked_for_each_host(tmp_path: Path, code: str) -> None:
    assert reads_of(site(tmp_path, f"{HOST}{code}\n")) is None


def test_modules_of_the_site_are_read_too_and_its_operations_are_not(tmp_path: Path) -> None:
    code = "from pyinfra import host\nfrom pyinfra.api import operation\n"
    deploy = site(
        tmp_path,
        "from shared import edge\nimport far\nedge()\n",
        shared=code + "def edge():\n    return host.data.edge\n",
        far=code + "@operation()\ndef ours():\n    yield host.name\n",
    )
    assert reads_of(deploy) == frozenset({"edge"})
    site(tmp_path, "from shared import edge\n", shared="from pyinfra import host\nname = host.name\n")
    assert reads_of(deploy) is None


def test_the_shipped_deploy_file_tells_no_hosts_apart() -> None:
    assert reads_of(Path(__file__).parents[2] / "deploy.py") == frozenset()


def test_it_is_run_once_for_hosts_that_are_alike_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy = site(tmp_path, HOST + "docker()\nif host.data.get('edge') is True: firewall()\n")
    ran: list[str] = []
    real = declaring._declare

    def declared(*words: Any) -> Any:
        ran.append(words[2].name)
        return real(*words)

    monkeypatch.setattr(declaring, "_declare", declared)
    found = declare(deploy, list(DATA.items()))
    assert ran == ["h1", "h3", "h4"]
    assert [found[name].steps for name in DATA] == [("docker", "firewall"), ("docker", "firewall"), *2 * [("docker",)]]


def test_a_file_that_asks_for_the_name_is_run_for_each_host(tmp_path: Path) -> None:
    deploy = site(tmp_path, HOST + "docker()\nif host.name == 'h2': firewall()\n")
    found = declare(deploy, list(DATA.items()))
    assert [name for name, keys in found.items() if "firewall" in keys] == ["h2"]
    assert list(found) == list(DATA)


def test_a_mistake_still_names_its_host(tmp_path: Path) -> None:
    deploy = site(tmp_path, HOST + "host.data.get('edge') or no_such_step()\n")
    with pytest.raises(SettingsError, match=r"deploy\.py:3: h4: NameError"):
        declare(deploy, list(DATA.items()))


def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Endpoints that are judged from now on."""
    checked: list[str] = []
    real = fit.check_endpoint

    def check(name: str, *more: Any) -> Any:
        checked.append(name)
        return real(name, *more)

    monkeypatch.setattr(fit, "check_endpoint", check)
    return checked


MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
VALUES: Mapping[str, Any] = {"model": MODEL, "engine": {}}


def test_equal_settings_have_one_verdict_and_other_ones_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, checked = Known(), judged(monkeypatch)
    one, two, other = (
        validate(name, {**VALUES, "hardware": {"rack": rack}}, {}, verdicts)[0]
        for name, rack in (("h1", "r1"), ("h2", "r1"), ("h3", "r2"))
    )
    assert one is two is not other
    for host_settings in (one, two, other):
        assert host_settings is not None
        fit.check_host(host_settings)
    assert len(checked) == 2


def test_members_of_a_group_share_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    host_settings = settings()
    found, checked = fit.check_host(host_settings), judged(monkeypatch)
    assert host_settings.in_group(None) is host_settings
    member = host_settings.in_group(Group("llm", (), 0, None))
    assert member is not host_settings
    assert fit.check_host(member) == found
    assert not checked
    fit.check_host(host_settings.model_copy(update={"port": 9000}))
    assert checked


def test_what_is_a_hosts_own_is_still_looked_at_where_the_settings_are_known() -> None:
    verdicts = Known()
    assert validate("h1", VALUES, {}, verdicts)[1] == []
    _, problems = validate("h2", {**VALUES, "ssh_port": "no port", "no_key_of_ours": 1}, {}, verdicts)
    assert {problem.path for problem in problems} == {("ssh_port",), ("no_key_of_ours",)}
    jinja = {**VALUES, "environment": {"A": "{{ b }}"}}
    assert validate("h3", {**jinja, "own_keys": ["environment"]}, {}, verdicts)[1] == []
    assert [problem.code for problem in validate("h4", jinja, {}, verdicts)[1]] == ["RW0215"]


def test_a_fleets_hosts_share_what_their_groups_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "group_vars/rack.yml").write_text(f"model: {MODEL}\nregistry: {{user: u, key: nvapi-in-clear}}\n")
    hosts = [f"gpu{number}" for number in range(20_000)]
    groups = InventoryGroups([InventoryGroup("rack", hosts)])
    began = time.process_time()
    assert without_a_model(dict.fromkeys(hosts, VALUES), {}) == []
    assert time.process_time() - began < 1  # each was looked for among all: 3 s
    found = load(Listing(tmp_path / "hosts.ini", groups, {name: {} for name in hosts[:2]}, tmp_path)).hosts
    assert all(found[0].data[key] is found[1].data[key] for key in ("model", "registry"))
    assert isinstance(found[0].data["registry"]["key"], Secret)
