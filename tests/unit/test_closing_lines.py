"""A run's last lines: what serves where, how to ask it, what is left to do; or why it failed, and the next command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.record.record import Record, record_of
from rackwright.record.states import RunState
from rackwright.rollout import last_lines
from rackwright.rollout.last_lines import ServingHost, as_wide, closing_lines, url_for

HOSTS = [f"h{number}" for number in range(7)]
INVENTORY = "/site/inventory/lab.py"
DIGEST, COMMIT = "sha256:" + "0" * 64, "c" * 40


def settings(digest: str | None = DIGEST) -> Any:
    endpoint = SimpleNamespace(address="0.0.0.0", port=8000, image_digest=digest)
    return SimpleNamespace(
        follows=False, direct_is_closed=False, is_gateway=False, all_endpoints={"llm": endpoint}, endpoint=endpoint
    )


@pytest.fixture(autouse=True)
def _one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_lines, "served_name", lambda _: "m")
    monkeypatch.setattr(last_lines, "sources_of", lambda _: [SimpleNamespace(commit=COMMIT)])


def record(status: int, hosts: list[str] = HOSTS, **states: str) -> Record:
    begin = {"inventory": INVENTORY, "hosts": hosts}
    found = {host: RunState(states.get(host, "switched")) for host in hosts}
    return Record("1", begin, {"status": status}, {"": found})


def serving(hosts: list[str], digest: str | None = DIGEST) -> list[ServingHost]:
    return [ServingHost(host, host, settings(digest)) for host in hosts]


@pytest.mark.parametrize(
    ("address", "bound", "url"),
    [
        ("10.1.0.7", "0.0.0.0", "http://10.1.0.7:8000"),
        ("fd00::7", "::", "http://[fd00::7]:8000"),
        ("10.1.0.7", "127.0.0.1", "http://127.0.0.1:8000"),
        ("gpu01.example", "fd00::9", "http://[fd00::9]:8000"),
    ],
)
def test_a_url_has_the_address_that_answers(address: str, bound: str, url: str) -> None:
    endpoint: Any = SimpleNamespace(address=bound, port=8000)
    assert url_for(endpoint, address) == url


def test_a_run_that_ended_well_says_in_three_lines_what_serves_how_to_ask_and_what_is_left_text() -> None:
    assert closing_lines(record(0, ["h1"]), "done: 1 switched", serving(["h1"])) == [
        "rackwright: done: 1 switched",
        "  serves:  http://h1:8000/v1, model m",
        f'  ask it:  rackwright chat {INVENTORY} -- "What is the capital of France?"',
        "  left:    nothing",
    ]


def test_a_host_that_rolled_back_serves_text() -> None:
    back = closing_lines(record(0, ["h1"], h1="taken back"), "done: 1 rolled back", serving(["h1"]))
    assert back[1] == "  serves:  http://h1:8000/v1, model m"


def test_many_endpoints_are_counted_text() -> None:
    lines = closing_lines(record(0), "done: 7 switched", serving(HOSTS))
    assert lines[1] == "  serves:  http://h0:8000/v1, model m"
    assert lines[6] == f"           and 2 more: rackwright status {INVENTORY}"
    assert len(lines) == 9


def test_what_is_left_is_named_with_its_command_text() -> None:
    ended = record(0, ["h0", "h1", "h2"], h1="drained", h2="quarantined")
    last = closing_lines(ended, "done", serving(["h0", "h1", "h2"], digest=None))[3:]
    assert last == [
        f"  left:    h1 stays drained: rackwright undrain {INVENTORY} --limit h1",
        "           h2 was skipped: rackwright resume 1, when that is repaired",
        f"           tags and branches are not pinned yet: rackwright pin {INVENTORY}",
    ]


def test_a_model_without_a_commit_is_left_to_pin_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_lines, "sources_of", lambda _: [SimpleNamespace(commit=None)])
    assert "rackwright pin" in closing_lines(record(0, ["h1"]), "done", serving(["h1"]))[-1]


def test_a_failed_run_names_no_endpoint_text() -> None:
    failed = closing_lines(record(1), "RW0823: failed", serving(HOSTS))
    assert failed == ["rackwright: RW0823: failed"]


def test_the_next_command_is_the_last_line_and_its_paths_are_as_typed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_lines, "shortest", lambda path: path.removeprefix("/site/"))
    text = f"RW0823: failed on h1; next: fix the settings, then rackwright rollout {INVENTORY}"
    assert closing_lines(record(1, ["h1"], h1="unreachable"), text) == [
        "rackwright: RW0823: failed on h1",
        "  cause:   h1: no SSH connection, see above",
        "  next:    fix the settings, then rackwright rollout inventory/lab.py",
    ]


def test_a_stopped_plain_run_has_said_so_and_a_rollout_says_it_here_text() -> None:
    begin = {"inventory": INVENTORY, "hosts": ["h1"]}
    stopped = Record("1", begin, {"status": 130}, {})
    assert closing_lines(stopped, "stopped") == ["rackwright: stopped"]
    assert closing_lines(Record("1", {**begin, "plain": True}, {"status": 130}, {}), "stopped") == []


# -- why it failed


def failed(*events: dict[str, Any]) -> list[str]:
    begin = {"kind": "begin", "inventory": INVENTORY, "hosts": HOSTS}
    end = {"kind": "end", "status": 1, "text": "it failed"}
    return [row[len("  cause:   ") :] for row in closing_lines(record_of("1", [begin, *events, end]), "it failed")[1:]]


def host(name: str, state: str, **more: str) -> dict[str, Any]:
    return {"kind": "host", "host": name, "state": state, **more}


def error(name: str, text: str) -> dict[str, Any]:
    return {"kind": "error", "host": name, "text": text}


def test_the_first_error_of_a_host_is_its_cause_and_hosts_that_failed_alike_share_a_line_text() -> None:
    events = [error(name, "RW2903: wrong bytes\n  next: look") for name in ("h0", "h1")]
    events += [error("h1", "RW1316: more"), host("h0", "failed before its switch")]
    events += [host("h1", "failed before its switch"), host("h2", "unreachable"), host("h3", "unchanged")]
    assert failed(*events) == [
        "h0, h1: RW2903: wrong bytes",
        "h2: no SSH connection, see above",
    ]


def test_of_a_refusal_with_several_codes_the_check_is_the_cause_text() -> None:
    text = (
        "RW3101: this host cannot run its endpoints\nRW3143: disk: /srv: 0.1 GiB free\n  fix: make room\nRW3144: more"
    )
    assert failed(error("h0", text), host("h0", "failed before its switch")) == ["h0: RW3143: disk: /srv: 0.1 GiB free"]


def test_a_refused_row_is_the_cause_of_a_way_back_text() -> None:
    row = {"kind": "row", "host": "h0", "row": "a chat answer", "mark": "refused", "seen": "'!!!'"}
    later = {**row, "mark": "proved", "seen": "'42'"}
    gone = error("h0", "RW0705: endpoint llm serves its last proven release again")
    assert failed(row, later, gone, host("h0", "rolled back")) == ["h0: a chat answer: '!!!'"]


def test_a_host_that_waited_for_others_has_no_cause_of_its_own_text() -> None:
    assert failed(host("h0", "not switched", text="h1 failed before it"), host("h2", "switching")) == []


def test_of_many_causes_the_first_few_are_named_text() -> None:
    events = [each for name in HOSTS for each in (error(name, f"RW1: {name}"), host(name, "failed"))]
    lines = failed(*events)
    assert lines[-1] == "and 2 more: rackwright runs 1"
    assert len(lines) == 6


def test_of_many_hosts_that_failed_alike_the_first_few_are_named_text() -> None:
    assert failed(*(host(name, "unreachable") for name in HOSTS)) == [
        "h0, h1, h2, h3, h4 and 2 more: no SSH connection, see above"
    ]


def test_last_lines_are_as_wide_as_the_terminal_and_a_command_stays_whole_text() -> None:
    cause = f"  cause:   h0: {'word ' * 12}end"
    assert max(map(len, as_wide(cause, 50).split("\n"))) <= 50
    assert as_wide(cause, 50).split("\n")[1].startswith(" " * 11)
    step = "  next:    rackwright rollback inventory/a-long-name.py --limit h0 --limit h1"
    assert as_wide(step, 50) == step
    assert as_wide("rackwright: RW0823: failed on h1; h2 not switched", 40).split("\n")[0].startswith("rackwright: RW")
    assert as_wide(cause, None) == cause


def test_a_host_at_work_when_its_run_was_cut_has_begun() -> None:
    begin = {"kind": "begin", "hosts": ["h1", "h2", "h3"]}
    job = {"kind": "job", "host": "h1", "job": "driver-first"}
    assert record_of("1", [begin, job]).counts() == "1 begun, 2 not begun"
