"""Names on a host: nothing of the tool's own can have the name of an endpoint's, whatever endpoints are called."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rackwright
from rackwright import paths
from rackwright.hostside import helper_script, host_script, script_folders
from rackwright.loading.validate import validate
from rackwright.settings.sections import NAME
from tests.unit.test_settings_validate import MODEL

OWN_WORDS = ("boot", "firewall", "watch", "docker", "dockerd", "job", "guard", "check", "switch", "judge", "wait")
NAMES = st.one_of(
    st.from_regex(NAME, fullmatch=True),
    st.builds("-".join, st.lists(st.sampled_from([*OWN_WORDS, "x", "0"]), min_size=1, max_size=4)),
)
TEXT = st.from_regex(r"[a-z0-9._-]{1,20}", fullmatch=True)
"""What slugs of images, files and models may be."""

UNITS: list[Callable[[str], str]] = [
    paths.unit_name,
    *(lambda name, kind=kind: paths.job_unit(paths.endpoint_job(kind, name)) for kind in paths.ENDPOINT_JOBS),
]
CONTAINERS: list[Callable[[str], str]] = [
    paths.container_name,
    *(lambda name, kind=kind: paths.helper_container(name, kind) for kind in paths.HELPERS),
]
FOLDERS: list[Callable[[str], str]] = [
    paths.endpoint_dir,
    *(lambda name, kind=kind: paths.job_folder(paths.endpoint_job(kind, name)) for kind in paths.ENDPOINT_JOBS),
]


def may_be(name: str) -> bool:
    """Return the same as `allowed`, without building a host's settings each time."""
    return re.fullmatch(NAME, name) is not None and paths.reserved(name) is None


def allowed(name: str) -> bool:
    """Whether the settings take this name for an endpoint."""
    _, problems = validate("h", {**MODEL, "endpoint_name": name}, {})
    return not problems


def own_units(text: str) -> set[str]:
    """Units that the tool makes for anything but an endpoint."""
    jobs = (
        "docker-install",
        "dockerd",
        paths.aside_job(f"rackwright-{text}.service"),
        *(f"{kind}-{text}" for kind in ("pull", "model", "hash", "fetch")),
    )
    guards = [paths.guard_unit(name) for name in ("firewall", "docker")]
    made = {f"{guard}.{suffix}" for guard in guards for suffix in ("timer", "service")}
    return {*paths.OWN_UNITS, *map(paths.job_unit, jobs), *made}


@given(NAMES, NAMES, TEXT)
def test_no_two_names_of_different_things_are_the_same(one: str, other: str, text: str) -> None:
    assume(one != other and may_be(one) and may_be(other))
    for makers in (UNITS, CONTAINERS, FOLDERS):
        made = [make(name) for name in (one, other) for make in makers]
        assert len(set(made)) == len(made)
    assert not {make(one) for make in UNITS} & own_units(text)
    fetching = {paths.job_container(f"{kind}-{text}") for kind in ("model", "pull")}
    assert not {make(one) for make in CONTAINERS} & fetching


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("firewall", "rackwright-firewall.service"),
        ("boot", "rackwright-boot.service"),
        ("watch", "rackwright-watch.service"),
        ("job-switch-x", "rackwright-job-..."),
        ("guard-docker", "rackwright-guard-..."),
    ],
)
def test_the_tools_own_names_are_refused_with_key_and_reason(name: str, taken: str) -> None:
    for values, key in (({"endpoint_name": name}, "endpoint_name"), ({"endpoints": {name: {}}}, f"endpoints.{name}")):
        settings, problems = validate("h", {**MODEL, **values}, {})
        assert settings is None
        [problem] = problems
        assert ".".join(map(str, problem.path)) == key
        assert problem.text == f"the name {name} is Rackwright's own ({taken}): choose another"


def test_a_replica_may_not_get_such_a_name_either() -> None:
    values = {**MODEL, "endpoints": {"job": {"replicas": 2}}}
    _, [problem] = validate("h", values, {})
    assert (problem.path, problem.text[:12]) == (("endpoints", "job"), "the name job")


@pytest.mark.parametrize("name", ["x.judge", "x.check", "gpt-5.1"])
def test_the_separator_cannot_be_written_in_a_name(name: str) -> None:
    _, [problem] = validate("h", {**MODEL, "endpoint_name": name}, {})
    assert (" at most 63" in problem.text, f"not '{name}'" in problem.text) == (True, True)


@pytest.mark.parametrize("name", ["llm", "x-judge", "x-check", "firewall-2", "bootstrap", "jobs", "watcher", "a_b"])
def test_other_names_are_taken(name: str) -> None:
    assert allowed(name)
    assert may_be(name)


def test_names_of_units_and_containers_are_made_in_one_place() -> None:
    made = re.compile(r"""["'/]rackwright-(\{|[a-z]+-\{)""")
    found = {
        f"{path.name}: {row.strip()}"
        for path in Path(rackwright.__file__).parent.rglob("*.py")
        if path.name != "paths.py"
        for row in path.read_text().splitlines()
        if made.search(row) and "/etc/apt" not in row
    }
    assert not found


@pytest.mark.parametrize("script", ["prove", "check_options", "fetch_model", "remove_endpoint"])
def test_no_host_script_removes_a_container_by_its_name_alone(script: str) -> None:
    text = host_script(script)
    assert 'docker rm --force "$container"' not in text


def test_every_unit_of_ours_carries_the_mark_by_which_it_is_known() -> None:
    folders = [Path(rackwright.__file__).parents[1] / "templates", *script_folders()]
    kinds = "*.service.j2", "*.target.j2"
    templates = [file for folder in folders for kind in kinds for file in folder.glob(kind)]
    assert len(templates) >= 6
    assert all(template.read_text().startswith(f"# {paths.WRITTEN}") for template in templates)


DOCKER = """\
#!/bin/sh
case $1 in
  inspect) [ -n "$LABEL" ] || exit 1; [ "$LABEL" = none ] || echo "$LABEL" ;;
  rm) echo "$*" >>"$REMOVED" ;;
esac
"""


@pytest.mark.parametrize(("label", "removed"), [("", False), ("none", False), ("judge", True)])
def test_a_helper_is_removed_by_its_label_never_by_its_name_alone(tmp_path: Path, label: str, removed: bool) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LABEL": label, "REMOVED": str(tmp_path / "removed")}
    script = helper_script("remove_helper", "rackwright-llm.judge") + "remove_helper\n"
    done = subprocess.run(["sh", "-c", script], env=env, check=False)
    assert (tmp_path / "removed").exists() == removed
    assert (done.returncode == 0) == removed
