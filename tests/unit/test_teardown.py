"""What a teardown plans and says, from a record and from marks; and the host's scripts on folders of our own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.cli.teardown import ending
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.daemon import DAEMON_JSON
from rackwright.concerns.lease import LEASED, SeenLease
from rackwright.concerns.models import MANIFEST, MODELS, SeenModels, remove_script
from rackwright.concerns.teardown.marks import Marks, parse, read_script
from rackwright.concerns.teardown.removal_order import ORDER, unknown_kinds
from rackwright.concerns.teardown.teardown import (
    DATA,
    LOST,
    MARKED,
    ON_SHARE,
    RECORDED,
    Teardown,
    plan_teardown,
    remains,
)
from rackwright.messages import ReadingError
from rackwright.paths import GATEWAY_UNIT, KEEPALIVED_UNIT, STATE, UNITS
from rackwright.plan.change import Change, Owned, Refuse, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from tests import texts
from tests.unit.test_plan import recorded

UNIT, MODEL = Owned("unit", "rackwright-llm.service"), Owned("model", "/srv/models/a--b--*")
REMOVED = "stop and remove rackwright-{}.service"
CONTAINER = "remove the container "
IMAGE = Owned("image", "nvcr.io/x/y:1")
HERE = Marks(docker="up", models=("/srv/models/a--b--111",), images=frozenset({IMAGE.name}))


def planned(
    *owned: Owned,
    marks: Marks = HERE,
    purge: bool = False,
    daemon_json: str | None = None,
    models: SeenModels | None = None,
) -> Teardown:
    found = recorded("converged")
    files = {**found[DOCKER].files, **({DAEMON_JSON: daemon_json} if daemon_json else {})}
    docker = replace(found[DOCKER], files=files)
    overrides = {RECORD.name: frozenset(owned), LEASED.name: SeenLease(0, 0, None), DOCKER.name: docker}
    readings = {**found.by_concern, **overrides, **({MODELS.name: models} if models else {})}
    return plan_teardown(HostReading(readings), marks, purge)


def reasons(plan: Teardown) -> dict[str, str]:
    return {change.what: change.why for change in plan.changes}


# -- with a record


def test_models_and_images_stay_with_their_record_unless_purged() -> None:
    plan = planned(UNIT, MODEL, IMAGE)
    assert plan.retained == ("image nvcr.io/x/y:1", "model /srv/models/a--b--*")
    assert plan.record_stays
    assert "rm -rf /var/lib/rackwright ||" not in last_script(plan)
    purged = planned(UNIT, MODEL, IMAGE, purge=True)
    assert (purged.retained, purged.record_stays) == ((), False)
    assert "rm -rf /var/lib/rackwright ||" in last_script(purged)


def test_a_model_on_a_share_stays_although_purged_and_its_record_goes() -> None:
    shared = replace(recorded("converged")[MODELS].models[0], path="/srv/models/a--b--111", shared=True)
    plan = planned(UNIT, MODEL, IMAGE, purge=True, models=SeenModels((shared,), frozenset()))
    by_change = reasons(plan)
    assert by_change[texts.LEAVES_MODEL.format(path="/srv/models/a--b--*")] == ON_SHARE
    assert not [what for what in by_change if what.startswith("remove the model")]
    assert (plan.retained, plan.record_stays) == ((), False)
    retained = planned(UNIT, MODEL, models=SeenModels((shared,), frozenset()))
    assert retained.retained == ("model /srv/models/a--b--*",)


@pytest.mark.parametrize("known_by", ["the settings' folder", "its mark"])
def test_a_model_on_a_share_stays_although_this_host_has_no_record_of_its_files(known_by: str) -> None:
    share = "/srv/models" if known_by == "the settings' folder" else ""
    marks = replace(HERE, shared=frozenset() if share else frozenset({"/srv/models/a--b--111.partial"}))
    plan = planned(UNIT, MODEL, IMAGE, purge=True, marks=marks, models=SeenModels((), frozenset(), share=share))
    assert reasons(plan)[texts.LEAVES_MODEL.format(path="/srv/models/a--b--*")] == ON_SHARE
    assert not [what for what in reasons(plan) if what.startswith("remove the model")]


@pytest.mark.parametrize(("store", "stays"), [("nfs4:server", True), ("fuse.x:y", True), ("", True), ("ext4:u", False)])
def test_a_script_removes_no_model_and_no_unfinished_one_from_a_share(tmp_path: Path, store: str, stays: bool) -> None:
    model, cut = tmp_path / "a--b--111", tmp_path / "a--b--222.partial"
    (cut / ".parts").mkdir(parents=True)
    model.mkdir()
    (model / MANIFEST).write_text("{}")
    script = remove_script(f"{tmp_path}/a--b--*").replace(
        "\nremove() {", f"\nstore_of() {{ printf %s '{store}'; }}\nremove() {{"
    )
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    assert [path.exists() for path in (model, cut)] == [stays, stays]
    assert ("is on a share, and stays" in done.stdout) is stays


def last_script(plan: Teardown) -> str:
    step = plan.changes[-1].steps[0]
    assert isinstance(step, Shell)
    return step.script


def test_nothing_is_claimed_to_be_left_that_is_gone() -> None:
    plan = planned(UNIT, MODEL, IMAGE, marks=Marks(docker="up"))
    assert (plan.retained, plan.record_stays) == ((), False)
    forgotten = [change for change in plan.changes if change.what.startswith("forget the")]
    assert {one for change in forgotten for one in change.disowns} == {MODEL, IMAGE}
    assert not [step for change in forgotten for step in change.steps]


def test_what_docker_cannot_be_asked_is_not_called_gone_text() -> None:
    plan = planned(UNIT, IMAGE, marks=Marks(docker="down"))
    assert plan.retained == ("image nvcr.io/x/y:1, which was not looked at, as Docker does not answer",)
    assert plan.record_stays
    assert any("containers were not looked at" in text for text in plan.unknown)


def test_packages_leave_dockers_data() -> None:
    assert planned(Owned("package", "docker.io"), marks=Marks()).retained == (DATA,)
    assert planned(Owned("package", "nvidia-container-toolkit"), marks=Marks()).retained == ()


def test_marks_find_what_the_record_does_not_name() -> None:
    stray = Owned("unit", "rackwright-old.service")
    by_change = reasons(planned(UNIT, marks=Marks(marked=frozenset({stray, UNIT}))))
    assert by_change[REMOVED.format("llm")] == RECORDED
    assert by_change[REMOVED.format("old")] == MARKED


def test_names_that_a_killed_pull_has_left_go_once_no_job_can_write_them() -> None:
    marked = frozenset({Owned("names", "/etc/hosts"), Owned("job", "rackwright-job-pull-x.service")})
    removed = [*reasons(planned(UNIT, marks=Marks(marked=marked)))]
    assert "rackwright-job-pull-x.service" in removed[0]
    assert removed[1] == texts.TAKES_NAME
    assert remains(Marks(marked=frozenset({Owned("names", "/etc/hosts")})), True) == ["names /etc/hosts"]


def test_an_endpoints_container_goes_with_its_unit() -> None:
    marked = frozenset({Owned("container", "rackwright-llm"), Owned("container", "rackwright-llm.judge")})
    by_change = reasons(planned(UNIT, marks=Marks(docker="up", marked=marked)))
    assert f"{CONTAINER}rackwright-llm" not in by_change
    assert f"{CONTAINER}rackwright-llm.judge" in by_change


def test_a_gateway_hands_its_address_over_before_it_stops_answering() -> None:
    gateway, keepalived = (Owned("unit", name) for name in (GATEWAY_UNIT, KEEPALIVED_UNIT))
    removed = [what for what in reasons(planned(gateway, keepalived)) if "stop and remove" in what]
    assert removed == [f"stop and remove {unit.name}" for unit in (keepalived, gateway)]


def test_what_somebody_else_made_under_our_names_stays_and_is_said() -> None:
    plan = planned(UNIT, marks=Marks(foreign=("unit rackwright-theirs.service", "unit rackwright-llm.service")))
    assert (plan.retained, plan.foreign) == ((), ("unit rackwright-theirs.service",))
    assert not [what for what in reasons(plan) if "theirs" in what]


def test_a_kind_of_a_newer_version_is_left_and_said() -> None:
    newer = Owned("timer", "rackwright-watch.timer")
    assert newer.kind not in ORDER
    assert unknown_kinds([UNIT, newer]) == [newer]
    plan = planned(newer)
    assert (plan.retained, plan.record_stays) == (("timer rackwright-watch.timer",), True)


def test_a_broken_daemon_json_is_a_refusal_of_its_own() -> None:
    plan = planned(UNIT, Owned("daemon_key", "debug"), daemon_json="{")
    [broken] = [change for change in plan.changes if any(isinstance(step, Refuse) for step in change.steps)]
    assert "is broken at line 1" in broken.steps[0].text  # type: ignore[attr-defined]
    assert plan.changes[0].what == REMOVED.format("llm")


# -- without one


LOST_MARKS = Marks(
    record=False,
    docker="up",
    marked=frozenset({UNIT, Owned("rule", "rackwright:*"), Owned("container", "rackwright-llm")}),
    rules={"iptables": 7},
    folders=("/etc/rackwright",),
    manifests=("/srv/models/a--b--111",),
)


def test_without_its_record_what_is_marked_goes_and_the_rest_is_said_to_be_unknown() -> None:
    plan = planned(marks=LOST_MARKS)
    by_change = reasons(plan)
    assert by_change[REMOVED.format("llm")] == MARKED
    assert by_change["remove our firewall rules"] == MARKED
    assert plan.unknown[0] == LOST
    assert "/srv/models/a--b--111" in plan.unknown[1]
    assert not [change for change in plan.changes if "/srv/models" in str(change)]


def test_a_host_without_record_and_marks_has_nothing_to_undo() -> None:
    plan = planned(marks=Marks(record=False, docker="up", manifests=("/srv/models/x",)))
    assert plan == Teardown(())


# -- after it


def test_what_is_still_there_is_listed() -> None:
    after = Marks(record=False, marked=frozenset({UNIT}), rules={"ip6tables": 2}, folders=(STATE, "/etc/rackwright"))
    assert remains(after, False) == [
        "unit rackwright-llm.service",
        "2 rules of ip6tables",
        "/var/lib/rackwright",
        "/etc/rackwright",
    ]
    assert remains(Marks(folders=(STATE,)), True) == []


@pytest.mark.parametrize(
    ("remaining", "keeps_models", "text"),
    [
        ([], False, "done: nothing of it is left"),
        ([], True, "done: gone, but for what is left on purpose, see above"),
        (["a", "b"], True, "not everything is gone, or known to be gone, from a, b, see above"),
    ],
)
def test_the_last_line_claims_no_more_than_was_seen(remaining: list[str], keeps_models: bool, text: str) -> None:
    assert ending(remaining, keeps_models) == text


# -- the reading


def test_marks_are_parsed_by_kind() -> None:
    lines = [
        "record no",
        "unit rackwright-llm.service ours",
        "unit rackwright-x.service foreign",
        "job rackwright-job-model-a.service",
        "names /etc/hosts",
        "rules iptables 7",
        "file /etc/apt/keyrings/rackwright-docker.asc",
        "folder /etc/rackwright",
        "docker up",
        "container 0123 rackwright-llm ours",
        "container 4567 rackwright-y foreign",
        "end",
    ]
    found = parse(lines)
    assert found.marked == {
        UNIT,
        Owned("job", "rackwright-job-model-a.service"),
        Owned("names", "/etc/hosts"),
        Owned("rule", "rackwright:*"),
        Owned("apt_source", "/etc/apt/keyrings/rackwright-docker.asc"),
        Owned("container", "rackwright-llm"),
    }
    assert found.foreign == ("unit rackwright-x.service", "container rackwright-y")
    assert (found.record, found.docker, found.nothing) == (False, "up", False)


def test_a_reading_that_broke_off_is_no_empty_host() -> None:
    with pytest.raises(ReadingError):
        parse(["record no", "docker up"])


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Make a folder with a `systemctl` that has no units, no Docker, and no iptables."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "systemctl").write_text("#!/bin/sh\nexit 0\n")
    (tools / "systemctl").chmod(0o755)
    return tmp_path


def test_the_hosts_script_tells_ours_from_theirs_by_the_mark(machine: Path) -> None:
    units = machine / "units"
    units.mkdir()
    (units / "rackwright-llm.service").write_text("# Written by Rackwright for release 1.\n[Unit]\n")
    (units / "rackwright-mine.service").write_text("[Unit]\nDescription=by hand\n")
    (units / "rackwright-a\nunit rackwright-b.service ours").write_text("x")
    (units / "x.wants").mkdir()
    (units / "x.wants/rackwright-gone.service").symlink_to(units / "gone")
    script = read_script([MODEL], str(machine / "models")).replace("units=/etc/systemd/system", f"units={units}", 1)
    script = script.replace("export LC_ALL=C PATH=", f"PATH={machine}/bin:/usr/bin:/bin; : ")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [row for row in lines if row.startswith("unit ")] == [
        "unit rackwright-llm.service ours",
        "unit rackwright-mine.service foreign",
    ]
    assert f"link {units}/x.wants/rackwright-gone.service" in lines
    assert lines[-1] == "end"


def test_the_hosts_script_names_the_file_system_of_each_model_of_the_record(machine: Path) -> None:
    for name in ("a--b--111", "a--b--222.partial"):
        (machine / "models" / name).mkdir(parents=True)
    one = Owned("model", f"{machine}/models/a--b--*")
    for store, share in (("ext4:u", False), ("nfs:server:/x", True), ("", True)):
        script = read_script([one], str(machine / "other")).replace("PATH=/usr/local/sbin", f"PATH={machine}/bin", 1)
        script = script.replace("\nhave() {", f"\nstore_of() {{ printf %s '{store}'; }}\nhave() {{", 1)
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        marks = parse(done.stdout.splitlines())
        assert len(set(marks.models)) == 2
        assert marks.shared == (frozenset(marks.models) if share else frozenset())


# -- removing a model, cut anywhere


def model(folder: Path) -> Path:
    path = folder / "models" / "a--b--111"
    (path / "sub").mkdir(parents=True)
    for name in ("weights-1", "weights-2", "sub/config", MANIFEST):
        (path / name).write_text("x")
    return path


CUT_FIND = """\
#!/bin/sh
# Deletes as the real one is asked to, and ends after CUT of its files and folders.
/usr/bin/find "$1" -mindepth 1 -depth ! -path "$6" ! -path "$9" | head -n "$CUT" |
  while read -r path; do rm -d "$path"; done
exit 1
"""


@pytest.mark.parametrize("cut", range(6))
def test_a_removal_that_is_cut_leaves_what_the_next_one_finds(tmp_path: Path, cut: int) -> None:
    folder = model(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "find").write_text(CUT_FIND)
    (tools / "find").chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CUT": str(cut)}
    done = subprocess.run(["sh", "-c", remove_script(str(folder))], env=env, capture_output=True, check=False)
    assert done.returncode == 1
    assert len(list(folder.rglob("*"))) == 5 - min(cut, 4)
    assert (folder / MANIFEST).exists(), "what says that it is ours goes last"
    subprocess.run(["sh", "-c", remove_script(str(folder))], check=True)
    assert not folder.exists()


def test_a_model_that_does_not_go_is_no_success(tmp_path: Path) -> None:
    folder = model(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "find").write_text("#!/bin/sh\necho busy >&2; exit 1\n")
    (tools / "find").chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", remove_script(str(folder))], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "could not be removed whole" in done.stderr


def disowned(plan: Teardown) -> set[Owned]:
    return {one for change in plan.changes for one in change.disowns}


@pytest.mark.parametrize("kind", sorted(ORDER))
def test_every_kind_that_is_recorded_is_disowned_by_its_removal(kind: str) -> None:
    name = "docker:ops" if kind == "group_member" else "rackwright-x.service" if kind in ("unit", "aside") else "x"
    one = Owned(kind, name)
    assert one in disowned(planned(one, purge=True))


def test_a_folder_of_drop_ins_goes_with_a_unit_of_ours_and_stays_with_others() -> None:
    assert f"folder={UNITS}/rackwright-boot.service.d\n" in removal_of(f"{UNITS}/rackwright-boot.service.d/x.conf")
    assert "folder=''\n" in removal_of(f"{UNITS}/docker.service.d/rackwright-proxy.conf")


def removal_of(path: str) -> str:
    (change, *_) = planned(Owned("file", path)).changes
    (step,) = change.steps
    assert isinstance(step, Shell)
    return step.script


def test_an_authority_leaves_no_link_in_the_trust_store(tmp_path: Path) -> None:
    """`update-ca-certificates` makes them, and takes those away only when something else has changed."""
    file, store = tmp_path / "local" / "rackwright-site.crt", tmp_path / "certs"
    file.parent.mkdir()
    store.mkdir()
    file.write_text("ours")
    (store / "rackwright-site.pem").symlink_to(file)
    (store / "1a2b3c4d.0").symlink_to("rackwright-site.pem")
    (store / "5e6f7a8b.0").symlink_to("other.pem")
    script = removal_of("/usr/local/share/ca-certificates/rackwright-site.crt")
    for folder, instead in (("/usr/local/share/ca-certificates", file.parent), ("/etc/ssl/certs", store)):
        script = script.replace(folder, str(instead))
    # Its own program would write this machine's store; where it is missing, nothing else is missed.
    script = script.replace("update-ca-certificates", "true")
    subprocess.run(["sh", "-c", script], check=True)
    assert not file.exists()
    assert [path.name for path in store.iterdir()] == ["5e6f7a8b.0"]


def test_a_change_says_why() -> None:
    assert all(isinstance(change, Change) and change.why for change in planned(UNIT, MODEL).changes)


def test_holds_of_a_first_driver_are_released_without_a_record_of_them() -> None:
    marks = parse(["docker absent", "record yes", "hold libcuda1", "end"])
    assert marks.marked == {Owned("hold", "libcuda1")}
    assert "libcuda1" in "".join(reasons(planned(marks=marks)))
