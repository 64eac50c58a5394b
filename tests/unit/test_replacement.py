"""Endpoints that take the GPUs or the port of others: which switch together, by what job, and what a cut leaves."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import changes
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint, SeenEndpoints
from rackwright.concerns.endpoint.switch.conflicts import Room, groups_of
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.wanted import WantedEndpoint, WantedEndpoints
from rackwright.hostside import durable_script, host_script, trial_of_several
from rackwright.plan.change import Change, Owned
from tests import texts
from tests.unit.test_endpoint_changes import AT_REST, BOOT, OURS, assigned, wanting
from tests.unit.test_trial import NEW, OLD, STAND_INS

ROOMS = st.builds(Room, st.frozensets(st.sampled_from("ABCD"), max_size=3), st.integers(8000, 8003))
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@given(st.dictionaries(NAMES, ROOMS), st.dictionaries(NAMES, ROOMS), st.sets(NAMES))
def test_whoever_is_in_anothers_way_switches_with_it_and_nobody_else(
    coming: dict[str, Room], held: dict[str, Room], retained: set[str]
) -> None:
    wanted = {*coming, *retained}
    groups = groups_of(coming, held, wanted)
    members = [{*group.coming, *group.leaving} for group in groups]
    for first, second in itertools.combinations(members, 2):
        assert not first & second
    for group in groups:
        assert group.coming
        assert len(group.coming) + len(group.leaving) > 1
        assert set(group.coming) <= coming.keys()
        assert not set(group.leaving) & wanted
    for (new, room), (old, has) in itertools.product(coming.items(), held.items()):
        moves = old in coming or old not in wanted
        if new != old and moves and has.is_in_the_way_of(room):
            assert any({new, old} <= both for both in members)


# -- the change


RENAMED = "chat"


def pending(readings: dict[str, SeenEndpoint], names: tuple[str, ...] = (RENAMED,)) -> list[Change]:
    wanted = WantedEndpoints({name: renamed(name) for name in names}, BOOT, OURS)
    return changes(wanted, SeenEndpoints(True, readings, dict(BOOT), True))


def renamed(name: str) -> WantedEndpoint:
    wanted = wanting()
    assert isinstance(wanted.release, Release)
    release = replace(wanted.release, spec=replace(wanted.release.spec, name=name))
    return replace(wanted, release=release)


def test_a_new_name_is_a_switch_whose_way_back_has_the_old_one() -> None:
    (change,) = pending({"llm": AT_REST})
    (step,) = change.steps
    assert isinstance(step, Proved)
    assert change.what.startswith(texts.REPLACES.format(old="llm", new="endpoint chat at release "))
    assert (step.endpoint, step.takes_over, step.serving) == (RENAMED, ("llm",), True)
    assert change.owns == (Owned("unit", "rackwright-chat.service"),)
    assert change.disowns == (Owned("unit", "rackwright-llm.service"),)
    script = step.job.script
    assert f"previous='release {AT_REST.current} of endpoint llm'" in script
    assert "rm -rf" not in script.split("after=", 1)[1].split("\nback=", 1)[0].replace("rm -f", "")
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_other_endpoints_are_asked_for_their_gpus_after_the_reload() -> None:
    (change,) = pending({"llm": AT_REST})
    (step,) = change.steps
    assert isinstance(step, Proved)
    for part in ("forward", "back"):
        script = assigned(step, part)
        assert script.index("systemctl daemon-reload") < script.index("except='chat llm'") < script.index("--no-block")


@pytest.mark.parametrize(("except_", "status"), [("", 1), ("other", 1), ("llm other", 0), ("llmx", 1)])
def test_only_named_endpoints_are_left_out_of_that_question(tmp_path: Path, except_: str, status: int) -> None:
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\ncase $1 in ps) echo "1 llm";; exec) exit 1;; inspect) echo true;; esac\n')
    docker.chmod(0o755)
    script = host_script("gpus_kept", **{"except": except_})
    done = subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    assert done.returncode == status


@pytest.mark.parametrize(("runs", "status"), [("true", 1), ("false", 0)])
def test_a_release_that_is_gone_keeps_what_serves_and_lets_the_rest_start(
    tmp_path: Path, runs: str, status: int
) -> None:
    script = host_script("stood_on", endpoint="llm", unit="rackwright-llm.service", file=str(tmp_path / "gone"))
    stand_in = f"reason={tmp_path}/reason\nsystemctl() {{ {runs}; }}\n{script}"
    assert subprocess.run(["sh", "-c", stand_in], check=False).returncode == status


def test_one_that_does_not_serve_is_nobodys_way_back() -> None:
    dead = replace(AT_REST, active="failed", running=None, health=None)
    assert [change.what.split(" at ")[0] for change in pending({"llm": dead})][:1] == ["stop and remove endpoint llm"]


def test_one_beside_the_others_is_stopped_and_removed_as_before() -> None:
    beside = replace(AT_REST, binding=Binding(("GPU-9",)), spec={**AT_REST.spec, "port": 9999})
    first, second = pending({"llm": beside})
    assert first.what == "stop and remove endpoint llm"
    assert "endpoint chat" in second.what


# -- what a cut leaves of several


@pytest.mark.parametrize("after", ["forward", "commit", "step down"])
def test_a_cut_before_the_one_decision_takes_all_of_it_back(tmp_path: Path, after: str) -> None:
    units, notes = tmp_path / "units", tmp_path / "notes"
    for folder in (units, notes, tmp_path / "bin"):
        folder.mkdir()
    (tmp_path / "bin/systemctl").write_text(STAND_INS["systemctl"])
    (tmp_path / "bin/systemctl").chmod(0o755)
    homes = {name: tmp_path / "endpoints" / name for name in ("llm", "a", "b")}
    for name, home in homes.items():
        (home / "releases/r").mkdir(parents=True)
        (home / f"releases/r/rackwright-{name}.service").write_text(name)
    (homes["llm"] / "current").symlink_to("releases/r")
    (homes["llm"] / "proven").symlink_to("releases/r")

    def sh(script: str, *words: str) -> None:
        environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "NOTES": str(notes)}
        subprocess.run(["sh", "-c", script, "sh", *words], env=environment, check=True)

    def part(name: str) -> str:
        names = {"unit": f"rackwright-{name}.service", "home": str(homes[name])}
        if name == "llm":
            return host_script("trial_leaving", **names)
        tried = {"tried": "r", "tried_binding": NEW.text, "previous": "", "previous_binding": ""}
        return host_script("trial_endpoint", **names, units=str(units), decided="trial", **tried)

    held = [str(tmp_path / "held" / name) for name in ("a", "b")]
    trial = homes["a"] / "trial"
    trial.write_text(
        trial_of_several("rackwright-job-switch-a.service", held, [part(name) for name in ("a", "b", "llm")])
    )
    for name in ("a", "b"):
        names = {"unit": f"rackwright-{name}.service", "home": str(homes[name]), "units": str(units), "held": ""}
        sh(durable_script("point", **names, release=str(homes[name] / "releases/r"), binding=NEW.text))
    if after != "forward":
        for name in ("a", "b"):
            sh(durable_script("commit", home=str(homes[name]), release_hash="r", binding=NEW.text, keep=2))
    if after == "step down":
        names = {"unit": "rackwright-llm.service", "home": str(homes["llm"])}
        sh(durable_script("step_down", **names, by="a\nb", wants=str(tmp_path / "wants")))
    (notes / "systemctl").write_text("")
    sh('exec sh "$@"', str(trial), "boot")
    for name in ("a", "b"):
        assert not (homes[name] / "current").is_symlink()
        assert not (homes[name] / "proven").is_symlink()
    assert (homes["llm"] / "proven").is_symlink()
    assert not (homes["llm"] / "replaced-by").exists()
    calls = (notes / "systemctl").read_text().splitlines()
    assert {
        "disable --quiet --no-reload rackwright-a.service",
        "disable --quiet --no-reload rackwright-b.service",
    } <= set(calls)
    assert "enable --quiet --no-reload rackwright-llm.service" in calls
    assert not trial.exists()
    assert not any(Path(path).exists() for path in held)


def test_what_a_name_has_replaced_goes_with_its_next_release(tmp_path: Path) -> None:
    for name in ("llm", "chat", "other"):
        (tmp_path / name / "releases/r").mkdir(parents=True)
    (tmp_path / "llm/replaced-by").write_text("chat\n")
    (tmp_path / "other/replaced-by").write_text("chatty\n")
    commit = durable_script("commit", home=str(tmp_path / "chat"), release_hash="r", binding=OLD.text, keep=2)
    subprocess.run(["sh", "-c", commit], check=True)
    assert not (tmp_path / "llm").exists()
    assert (tmp_path / "other/releases").exists()
