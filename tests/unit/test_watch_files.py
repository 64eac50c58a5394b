"""The watch's files on a host: what is written, enabled, removed, and what counts as moved."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.concerns.deploy_steps import Declared, left_of
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.seen import SeenEndpoint, SeenEndpoints
from rackwright.concerns.watch.concern import SeenWatch, WantedWatch, WatchFile, as_left, changes, parse, wanted
from rackwright.concerns.watch.engine_check import engine_check_files
from rackwright.concerns.watch.files import LEFT, all_files, enabled_units
from rackwright.paths import ETC, STATE, UNITS, WATCH_UNITS, questions_file
from rackwright.plan.change import Change, Owned, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.peer_host import PeerHost
from rackwright.settings.secret import Secret
from rackwright_engines.data import table
from rackwright_engines.metrics import series
from tests.unit.machines import settings

SERVICE, TIMER = WATCH_UNITS
SETTINGS: HostSettings = settings()
FOLLOWER = 2
"""Number of the host that serves together with a head."""
WANTED = wanted(SETTINGS, HostReading({}))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def settled(wanted: WantedWatch) -> SeenWatch:
    """Return a host as a deploy leaves it."""
    files = {path: WatchFile(sum_, "644:root") for path, sum_ in wanted.sums.items()}
    return SeenWatch(files, wanted.sums, frozenset(enabled_units(wanted.files)))


def only(found: list[Change]) -> Change:
    (change,) = found
    return change


def written(change: Change) -> set[str]:
    return {step.path for step in change.steps if isinstance(step, WriteFile)}


def test_a_bare_host_gets_every_file_and_the_timer() -> None:
    change = only(changes(WANTED, SeenWatch()))
    assert written(change) == {*all_files(SETTINGS), LEFT}
    assert Owned("unit", TIMER) in change.owns
    start = change.steps[-1]
    assert isinstance(start, Shell)
    assert TIMER in start.script


def test_a_second_run_changes_nothing() -> None:
    assert changes(WANTED, settled(WANTED)) == []


def test_an_edit_by_hand_and_a_disabled_timer_have_moved_on_their_own() -> None:
    path = f"{UNITS}/{TIMER}"
    reading = settled(WANTED)
    edited = replace(reading, files={**reading.files, path: WatchFile(sha256("x"), "644:root")})
    removed = replace(reading, files={name: one for name, one in reading.files.items() if name != path})
    for moved in (edited, removed, replace(reading, running=frozenset())):
        assert only(changes(WANTED, moved)).by_itself
        assert not as_left(moved)


def test_an_open_mode_is_closed_again() -> None:
    path = f"{ETC}/watch"
    reading = settled(WANTED)
    assert path in written(
        only(
            changes(
                WANTED,
                replace(reading, files={**reading.files, path: WatchFile(reading.files[path].sha256, "666:root")}),
            )
        )
    )


def test_new_settings_have_not_moved_on_their_own() -> None:
    reading = settled(WANTED)
    later = WantedWatch({**WANTED.files, f"{ETC}/watched/other": "port=1\n"})
    change = only(changes(later, reading))
    assert (change.by_itself, as_left(reading)) == (False, True)
    assert f"{ETC}/watched/other" in written(change)


def test_what_is_no_longer_wanted_is_removed_and_a_foreign_file_stays() -> None:
    gone = {f"{ETC}/watched/old": "x", f"{UNITS}/rackwright-notify.timer": "y"}
    before = settled(WantedWatch({**WANTED.files, **gone}))
    foreign = f"{ETC}/watch.d/firewall"
    change = only(changes(WANTED, replace(before, files={**before.files, foreign: WatchFile("a" * 64, "644:root")})))
    assert set(change.disowns) == {Owned("file", f"{ETC}/watched/old"), Owned("unit", "rackwright-notify.timer")}
    scripts = "".join(step.script for step in change.steps if isinstance(step, Shell))
    assert all(path in scripts for path in gone)
    assert foreign not in scripts


def test_a_secret_file_is_roots_alone_and_known_by_its_sum() -> None:
    path = f"{ETC}/notify-secret"
    change = only(changes(WantedWatch({path: Secret("abcdefgh")}), SeenWatch()))
    (step,) = (one for one in change.steps if isinstance(one, WriteFile) and one.path == path)
    assert step.mode == "0600"
    assert "abcdefgh" not in repr(change)


def test_the_list_of_sums_is_roots_alone() -> None:
    # The sum of a short secret beside its known text would say which one it is.
    steps = only(changes(WANTED, SeenWatch())).steps
    (mode,) = (step.mode for step in steps if isinstance(step, WriteFile) and step.path == LEFT)
    assert mode == "0600"


def test_an_endpoint_that_is_no_longer_watched_leaves_no_state_mark_or_open_event(tmp_path: Path) -> None:
    path = f"{ETC}/watched/old"
    before = settled(WANTED)
    reading = replace(before, files={**before.files, path: WatchFile("0" * 64, "644:root")})
    (script,) = [
        one.script for one in only(changes(WANTED, reading)).steps if isinstance(one, Shell) and path in one.script
    ]
    gone = (
        "run/watch/old",
        "run/watch/old.connections",
        "state/marks/watch-old",
        "state/watch/acts-old",
        "etc/watched/old",
    )
    stays = ("run/watch/older", "state/marks/sick-old", "state/notify/sent/sick-old")
    for name in (*gone, *stays):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("fired=hang\n")
    for folder, name in {"/run/rackwright": "run", STATE: "state", ETC: "etc"}.items():
        script = script.replace(folder, str(tmp_path / name))
    subprocess.run(["sh", "-c", script], check=True)
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    events = {name for name in files if "/events/" in name}
    assert files - events == set(stays)
    texts = sorted("".join((tmp_path / name).read_text().splitlines(True)[1:3]) for name in events)
    assert texts == ["key=hang-old\nstate=resolved\n", "key=sick-old\nstate=resolved\n"]


def test_a_reading_is_parsed() -> None:
    reading = parse(f"watched {'a' * 64} 644:root {ETC}/watch\nrunning {TIMER}")
    assert reading == SeenWatch({f"{ETC}/watch": WatchFile("a" * 64, "644:root")}, {}, frozenset({TIMER}))


def test_the_timer_stays_as_long_as_one_of_its_two_steps_is_called() -> None:
    record = [Owned("unit", unit) for unit in WATCH_UNITS] + [Owned("file", f"{ETC}/watched/llm")]
    assert left_of(Declared(("firewall", "endpoint")), record) == {"watch": record[-1:]}
    assert left_of(Declared(("watch", "endpoint")), record) == {}
    assert left_of(Declared(("endpoint",)), record).keys() == {"firewall", "watch"}


def with_endpoint(**changed: Any) -> HostReading:
    facts = {"address": "0.0.0.0", "port": 8000, "served_name": "m", "hash": "0123456789ab", "image": "i@sha256:1"}
    binding = Binding(("GPU-1",))
    proven = SeenEndpoint(proven="0123456789ab", proven_spec=facts, proven_binding=binding, **changed)
    return HostReading({"endpoint": SeenEndpoints(True, {"llm": proven}, {}, True)})


def test_questions_of_an_earlier_version_s_release_are_stored_where_the_watch_may_restart_it() -> None:
    restarting = settings(watch={"act": "restart"})
    asking = wanted(restarting, with_endpoint())
    change = only(changes(asking, settled(asking)))
    [step] = [step for step in change.steps if isinstance(step, WriteFile)]
    assert (step.path, step.mode) == (questions_file("llm", "0123456789ab"), "0600")
    assert changes(wanted(restarting, with_endpoint(askable=True)), settled(asking)) == []
    assert wanted(SETTINGS, with_endpoint()).questions == {}


# -- what is looked at


def watched(found: HostSettings, *addresses: str) -> dict[str, str]:
    text = engine_check_files(found, addresses)[f"{ETC}/watched/llm"]
    return dict(row.split("=", 1) for row in text.splitlines())


def fleet(**values: Any) -> HostSettings:
    peers = tuple(PeerHost(f"h{n}", 8010, n == FOLLOWER, partial(str, f"10.0.0.{n}")) for n in range(1, 6))
    return settings(**values).with_peers({"llm": peers})


def test_a_host_without_peers_is_alone() -> None:
    rows = watched(SETTINGS, "10.0.0.1")
    assert [rows[key] for key in ("hosts", "index", "peers", "lone")] == ["1", "0", "", "yes"]


def test_a_host_finds_itself_among_its_peers_by_its_address() -> None:
    rows = watched(fleet(rollout={"max_unavailable": "50%"}), "172.17.0.1", "10.0.0.3")
    assert [rows[key] for key in ("hosts", "index", "lone", "max_unavailable")] == ["4", "1", "no", "2"]
    assert rows["peers"] == "h1=10.0.0.1:8010 h4=10.0.0.4:8010 h5=10.0.0.5:8010"


def test_a_host_behind_another_address_is_the_last_and_asks_all() -> None:
    rows = watched(fleet(), "192.168.0.1")
    assert (rows["hosts"], rows["index"], len(rows["peers"].split())) == ("4", "4", 4)


def test_nothing_is_looked_at_where_the_watch_is_off() -> None:
    assert engine_check_files(settings(watch={"act": "off"})) == {}


def test_after_is_the_engines_unless_it_is_set() -> None:
    assert watched(SETTINGS)["after"] == "330"
    assert watched(settings(watch={"after": 90}))["after"] == "90"


def test_the_json_metrics_of_tensorrt_llm_are_never_read() -> None:
    for engine in ({}, {"return_perf_metrics": True}):
        assert (
            watched(settings(engine=engine, image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1"))["metrics"] != "/metrics"
        )


def test_the_most_requests_come_from_the_options_alone() -> None:
    assert watched(settings(engine={"max_batch_size": 1}))["batch"] == "1"
    assert watched(settings())["batch"] == "2048", "its default"
    assert watched(settings(engine_kind="vllm", image="vllm/vllm-openai:v0.32.0"))["batch"] == "128", (
        "the least default"
    )
    assert watched(settings(engine_kind="sglang", image="lmsysorg/sglang:v0.5.23"))["batch"] == "0", "it is unknown"


def test_the_metrics_of_the_signs_exist() -> None:
    for kind, facts in table("watch").items():
        if kind == "compilers":
            continue
        listed = {
            name
            for version in ("0.5.2", "0.5.11", "0.10.0", "1.1.0rc5", "1.4.0rc1", "99")
            for name in series(kind, version)
        }
        sleep = [facts["sleep"]["name"]] if "sleep" in facts else []
        assert {*facts["steps"], *facts["moves"], *sleep} - listed == set()


def test_addresses_are_read() -> None:
    found = parse("address 10.0.0.1\naddress fd000000000000000000000000000001").addresses
    assert found == {"10.0.0.1", "fd00::1"}
