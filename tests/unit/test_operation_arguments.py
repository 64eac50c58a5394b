"""Operations take the keys of their own section: stronger than the settings, weaker than `--data`, checked at once."""

from __future__ import annotations

import logging
import re
import runpy
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from rackwright.adapter.run.declaring import check_steps, declare, overlay_arguments, says_something
from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.main import main
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import load
from rackwright.messages import SettingsError
from rackwright.operations import arguments
from rackwright.settings.backend import GatewayHost
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.origin import origin_of

ROOT = Path(__file__).parents[2]
TASKS = sorted(path for path in (ROOT / "rackwright" / "tasks").glob("*.py") if path.stem != "__init__")
TOGETHER = {
    "close_direct": "RW2005",
    "converged": "RW1107",
    "dockerd": "RW1107",
    "options": "RW2005",
    "release": "RW2005",
}
"""Files of steps that are nothing alone, and how that is refused."""
SECTIONS: dict[str, Any] = {
    "docker": arguments.DockerArguments,
    "firewall": arguments.FirewallArguments,
    "registry": arguments.RegistryArguments,
    "encodings": arguments.EncodingsArguments,
    "models": arguments.ModelsArguments,
    "watch": arguments.WatchArguments,
}
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
STEPS = "preflight(); {docker}; firewall(); registry(); image(); encodings(); models(); release(); {endpoint}"


def test_the_arguments_are_made_from_the_settings() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "arguments.py"))
    assert made["FILE"].read_text() == made["text"](), "next: python scripts/arguments.py"


# -- the page


@pytest.fixture(scope="module")
def operations_page() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "operations.py"))


def test_the_page_of_the_operations_is_up_to_date(operations_page: dict[str, Any]) -> None:
    written = (ROOT / "docs" / "reference" / "operations.md").read_text()
    assert written == operations_page["page"](), "next: python scripts/operations.py"


def test_the_page_has_every_argument_with_a_meaning_and_every_time_with_its_unit(
    operations_page: dict[str, Any],
) -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*) \| ?(.*) \| ?(.*) \| (.*) \|$", operations_page["page"]())
    hints = [arguments.SiteArguments, arguments.EndpointArguments, *SECTIONS.values()]
    waits = ["wait"] * 3
    assert sorted(key for key, *_ in rows) == sorted([*waits, *(key for kind in hints for key in get_type_hints(kind))])
    assert [key for key, *_, meaning in rows if not meaning] == []
    times = {key: unit for key, _, unit, *_ in rows if key.endswith(("_timeout", "_delay", "_grace"))}
    assert len(times) > 5
    assert set(times.values()) == {"seconds"}


# -- how strong they are, and what is refused


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(f"{MODEL}port: 8001\ndocker: {{users: [ops], hold_packages: false}}\n")
    (tmp_path / "inventory/one.py").write_text(
        "from rackwright.inventory import build\nglobals().update(build(__file__, {'one': ['h1']}))\n"
    )
    return tmp_path


def deploy(site: Path, docker: str = "docker()", endpoint: str = "endpoint()") -> Path:
    file = site / "deploy.py"
    file.write_text("from tasks import *\n" + STEPS.format(docker=docker, endpoint=endpoint) + "\n")
    return file


def host(site: Path, file: Path, **data: Any) -> InventoryHost:
    """Return the one host, with what the deploy file says."""
    from rackwright.inventory import _groups  # noqa: PLC0415
    from rackwright.loading.load import Listing  # noqa: PLC0415

    listing = Listing(site / "inventory/one.py", _groups({"one": ["h1"]}, {}), {"h1": {}}, site)
    [entry] = load(listing, data).hosts
    return overlay_arguments(entry, check_steps(file, [entry])["h1"], file)


def test_an_argument_is_stronger_than_the_settings_and_keeps_the_sections_other_keys(site: Path) -> None:
    found = host(site, deploy(site, "docker(users=['ann'])", "endpoint(port=9000)"))
    assert (found.settings.docker.users, found.settings.docker.hold_packages) == (("ann",), False)
    assert found.settings.all_endpoints["llm"].port == 9000
    assert str(origin_of(found.origins, ("docker", "users"))).endswith("deploy.py")
    assert str(origin_of(found.origins, ("docker", "hold_packages"))).startswith("group_vars/all.yml")


def test_data_is_stronger_than_an_argument(site: Path) -> None:
    found = host(site, deploy(site, "docker(users=['ann'])", "endpoint(port=9000)"), **{"docker.users": ["bob"]})
    assert (found.settings.docker.users, found.settings.port) == (("bob",), 9000)


def test_what_reads_an_inventory_sees_the_arguments_too(site: Path) -> None:
    deploy(site, endpoint="endpoint(port=9000)")
    [found] = load_inventory(site / "inventory/one.py")
    assert found.settings.port == 9000


def test_a_broken_deploy_file_stops_nobody_who_does_not_need_it(
    site: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pyinfra's own set-up, in a test before, ends it.
    monkeypatch.setattr(logging.getLogger("pyinfra"), "propagate", True)
    (site / "deploy.py").write_text("endpoint(port=9000\n")
    with caplog.at_level(logging.WARNING), caplog.at_level(logging.WARNING, logger="pyinfra"):
        [found] = load_inventory(site / "inventory/one.py")
    assert found.settings.port == 8001
    assert "deploy.py:1" in caplog.text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("docker(users='ann')", r"deploy\.py: docker\.users: must be a list"),
        ("docker(user=['ann'])", r"deploy\.py: docker\.user: unknown key \(did you mean users\?\)"),
        ("docker(users=['ann']); docker()", r"docker\(\) is called twice for one host"),
        ("docker('ann')", r"h1: TypeError: docker\(\) takes 0 positional arguments"),
    ],
)
def test_a_wrong_call_is_refused_when_it_is_declared(site: Path, call: str, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        host(site, deploy(site, call))


@pytest.mark.parametrize("task", TASKS, ids=lambda path: str(path.stem))
def test_a_step_s_own_file_does_it_alone_or_is_refused(task: Path) -> None:
    source = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/m", "path": "/mnt/m"}
    closing = GatewayHost("g", closes_direct=task.stem == "close_direct")
    settings = HostSettings.model_validate({"model": source}).with_gateways((closing,), ())
    one = InventoryHost("h1", ("all",), {}, settings, {})
    if code := TOGETHER.get(task.stem):
        with pytest.raises(SettingsError, match=rf"{code}: .*next: "):
            check_steps(task, [one])
    else:
        assert task.stem in check_steps(task, [one])["h1"].steps


def test_the_page_names_what_is_nothing_alone() -> None:
    page = (ROOT / "docs/how-to/use-in-your-own-deploy.md").read_text()
    [row] = [row for row in page.splitlines() if row.startswith("A step runs alone by its name")]
    assert {name for name in TOGETHER if f"`{name}()`" in row} == TOGETHER.keys()


def test_an_endpoint_alone_brings_what_it_is_made_of(site: Path) -> None:
    file = site / "deploy.py"
    model = "{'repository': 'openai/gpt-oss-120b', 'mount': '/config/models/m', 'path': '/mnt/m'}"
    file.write_text(f"from rackwright.operations import endpoint\nendpoint(model={model}, harmony=False)\n")
    found = host(site, file)
    assert declare(file, [("h1", {})])["h1"].steps == ("image", "release", "options", "endpoint")
    assert found.settings.model is not None
    assert found.settings.model.commit == "local"


def test_an_endpoint_whose_model_nobody_fetches_is_refused(site: Path) -> None:
    file = site / "deploy.py"
    file.write_text("from rackwright.operations import endpoint\nendpoint(port=9000)\n")
    with pytest.raises(SettingsError, match=r"endpoint\(\) .* model\.path; next: call models\(\)"):
        host(site, file)


def test_only_calls_that_say_something_make_a_deploy_file_run(tmp_path: Path) -> None:
    file = tmp_path / "deploy.py"
    for text, expected in (
        ("docker()\nother(users=1)\n", False),
        ("docker(**arguments)\n", False),
        ("operations.docker(users=[])\n", True),
        ("endpoint(port=1)\n", True),
    ):
        file.write_text(text)
        assert says_something(file) is expected, text


@pytest.mark.parametrize("step", ["docker", "firewall", "registry", "image", "encodings"])
def test_a_step_runs_alone_from_its_own_file(step: str) -> None:
    file = ROOT / "rackwright" / "tasks" / f"{step}.py"
    assert declare(file, [("h1", {})])["h1"].steps == (step,)


@pytest.mark.parametrize("words", [["check"], ["plan"], ["drift"]])
def test_a_wrong_argument_is_refused_once_where_deploy_py_counts(
    words: list[str], site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(site, "docker(users='x')")
    warned: list[str] = []
    monkeypatch.setattr("rackwright.adapter.run.declaring.logger.warning", warned.append)
    assert main([words[0], str(site / "inventory/one.py"), *words[1:]]) == 1
    assert capsys.readouterr().err.count("docker.users: must be a list") == 1
    assert warned == [], "nothing continues by the files alone"


def test_what_does_not_need_deploy_py_goes_on_by_the_files(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(site, "docker(users='x')")
    warned: list[str] = []
    monkeypatch.setattr("rackwright.adapter.run.declaring.logger.warning", warned.append)
    assert [entry.settings.docker.users for entry in load_inventory(site / "inventory/one.py")] == [("ops",)]
    assert "files count alone" in warned[0]
