"""What bench/converge.py makes of its measurements: who changed nothing, medians and ratios, the kept figures' plot."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

from bench import converge, many
from bench.peers import meter, state, tools
from bench.peers.figures import Figure, Sitting, figure_of, ratios, sitting_of, table
from bench.peers.meter import Outcome, Spent
from bench.peers.plot import Scale, picture
from rackwright_engines.quick_yaml import load_yaml

HERE = Path(tools.__file__).parent
RECAP = """
PLAY RECAP *********************************************************************
c-bare1                    : ok=15   changed=0    unreachable=0    failed=0    skipped=0
c-bare2                    : ok=15   changed={changed}    unreachable=0    failed=0    skipped=0
"""
TABLE = """
--> Results:

    Operation                    Hosts   Success   Error   No Change
    Docker | packages            2       -         -       2
    Endpoint | switch            {hosts}       {success}         {error}       2
    Grand total                  2       {success}         {error}       4
"""


def table_of(hosts: str = "2", success: str = "-", error: str = "-") -> Outcome:
    return Outcome(0, TABLE.format(hosts=hosts, success=success, error=error))


HOSTS = ("c-bare1", "c-bare2")
SITTING = Sitting(
    4,
    3,
    31,
    {
        "ansible": Figure(20.0, 30.0, 12.0, 0.2, 900.0, 60),
        tools.OURS: Figure(2.0, 1.5, 1.0, 0.2, 90.0, 1),
        "paramiko": Figure(1.0, 1.2, 0.8, 0.2, 45.0, 1),
    },
)


ALONE = """
    Operation                    Hosts   Success   Error   No Change
    Read the host                2       {success}         {error}       {idle}
    Grand total                  2       {success}         {error}       {idle}
"""


def test_one_reading_by_pyinfra_alone_has_succeeded_on_every_host() -> None:
    tools.table_changed_alone(Outcome(0, ALONE.format(success=2, error="-", idle="-")), HOSTS)
    for words in ({"success": 1, "error": 1, "idle": "-"}, {"success": "-", "error": "-", "idle": 2}):
        with pytest.raises(tools.ChangedError):
            tools.table_changed_alone(Outcome(0, ALONE.format(**words)), HOSTS)
    with pytest.raises(tools.ChangedError):
        tools.table_changed_alone(Outcome(0, ALONE.format(success=2, error="-", idle="-")), (*HOSTS, "c-bare3"))


def test_a_recap_without_changes_is_believed() -> None:
    tools.recap_unchanged(Outcome(0, RECAP.format(changed=0)), HOSTS)


@pytest.mark.parametrize(
    ("outcome", "hosts"),
    [
        (Outcome(0, RECAP.format(changed=1)), HOSTS),
        (Outcome(2, RECAP.format(changed=0)), HOSTS),
        (Outcome(0, RECAP.format(changed=0)), (*HOSTS, "c-bare3")),
        (Outcome(0, ""), HOSTS),
    ],
)
def test_a_recap_with_a_change_a_failure_or_a_host_too_few_is_not(outcome: Outcome, hosts: tuple[str, ...]) -> None:
    with pytest.raises(tools.ChangedError):
        tools.recap_unchanged(outcome, hosts)


def test_a_table_without_changes_is_believed() -> None:
    tools.table_unchanged(table_of(), HOSTS)


@pytest.mark.parametrize(
    "outcome", [table_of(success="1"), table_of(error="1"), table_of(hosts="1"), Outcome(1, table_of().output)]
)
def test_a_table_with_a_change_an_error_or_a_host_too_few_is_not(outcome: Outcome) -> None:
    with pytest.raises(tools.ChangedError):
        tools.table_unchanged(outcome, HOSTS)


@pytest.mark.parametrize("output", ["no json", '{"c-bare1": "half", "c-bare2": "half"}', "{}"])
def test_a_reading_that_broke_off_or_did_not_come_is_not(output: str) -> None:
    with pytest.raises(tools.ChangedError):
        tools.readings_whole(Outcome(0, output), HOSTS)


def test_a_plan_says_by_its_status_that_something_is_pending() -> None:
    tools.nothing_pending(Outcome(0, ""), HOSTS)
    with pytest.raises(tools.ChangedError):
        tools.nothing_pending(Outcome(2, ""), HOSTS)


def test_ansible_checks_host_keys_as_strictly() -> None:
    data = {"ssh_hostname": "10.79.1.4", "ssh_user": "ops", "ssh_key": "/k", "ssh_known_hosts_file": "/known"}
    variables = tools.ansible_data(data)
    assert variables["ansible_host"] == "10.79.1.4"
    assert variables["ansible_ssh_common_args"] == "-o UserKnownHostsFile=/known -o StrictHostKeyChecking=yes"


# -- the state


@pytest.mark.parametrize(
    ("rule_line", "rule"),
    [
        (
            '-A INPUT -s 10.79.0.0/16 -p tcp -m tcp --dport 8000 -m comment --comment "rackwright:llm" -j ACCEPT',
            {
                "chain": "INPUT",
                "source": "10.79.0.0/16",
                "protocol": "tcp",
                "port": 8000,
                "comment": "rackwright:llm",
                "jump": "ACCEPT",
            },
        ),
        ("-A INPUT -m comment --comment rackwright:x -m conntrack --ctstate NEW -j DROP", None),
        ("-A INPUT -j ACCEPT", None),
    ],
)
def test_rules_are_told_in_the_modules_words_or_not_at_all(rule_line: str, rule: dict[str, Any] | None) -> None:
    assert state.rule_of(rule_line) == rule


def test_the_playbook_names_what_the_state_has() -> None:
    (play,) = load_yaml((HERE / "playbook.yml").read_text())
    loops = {task["loop"].strip("{} ") for task in play["tasks"] if "loop" in task}
    assert loops == {f"files.{topic}" for topic in state.TOPICS} | {"docker_users", "rules", "checksums", "services"}
    assert all(task["name"] for task in play["tasks"])
    alone = len(play["tasks"]) - len(loops)
    nothing: dict[str, Any] = {"files": {}, "docker_users": [], "rules": [], "checksums": [], "services": []}
    assert state.tasks_of(nothing) == alone
    assert state.tasks_of({**nothing, "files": {"docker": [1, 2]}, "rules": [1]}) == alone + 3


# -- what was measured


def test_busy_seconds_leave_out_what_is_idle_or_counted_twice() -> None:
    ticks = meter.TICKS
    stat = f"cpu  {1 * ticks} {2 * ticks} {3 * ticks} 999999 888888 {4 * ticks} {5 * ticks} {6 * ticks} 777 666\ncpu0 1"
    assert meter.busy_seconds(stat) == 21.0


def test_memory_of_one_process_is_its_peak() -> None:
    from os import getpid  # noqa: PLC0415

    assert meter.memory([getpid()]) > 10 * 2**20
    assert meter.memory([]) == 0


def test_medians_and_ratios() -> None:
    rounds = [Spent(3.0, 1.0, 2.0, 0.1), Spent(9.0, 5.0, 5.0, 0.9), Spent(4.0, 2.0, 2.5, 0.3)]
    figure = figure_of(rounds, 50 * 2**20, 2)
    assert figure == Figure(4.0, 4.5, 2.0, 0.3, 50.0, 2)
    assert ratios(SITTING, "wall", tools.OURS) == {"ansible": 10.0, tools.OURS: 1.0, "paramiko": 0.5}
    assert ratios(SITTING, "cpu", tools.OURS)["ansible"] == 20.0


def test_the_table_has_a_row_a_tool() -> None:
    lines = table(SITTING, tools.OURS)
    assert lines[2] == "| ansible | 20.00 | 10.00 | 30.00 | 12.00 | 20.00 | 900 | 60 | 0.2 cores |"
    assert {row.count("|") for row in lines} == {10}


def test_figures_are_read_as_they_were_kept() -> None:
    assert sitting_of(SITTING.as_json) == SITTING


def test_sittings_grow_by_four_up_to_all_hosts() -> None:
    assert [converge.counts(total) for total in (1, 4, 16, 100)] == [[1], [1, 4], [1, 4, 16], [1, 4, 16, 64, 100]]


# -- the plot


def test_a_scale_is_logarithmic() -> None:
    scale = Scale(1.0, 100.0, 0.0, 10.0)
    assert [scale(value) for value in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 5.0, 10.0])


def test_a_picture_has_a_line_a_tool_and_panel_and_fetches_nothing() -> None:
    drawn = picture([SITTING, Sitting(16, 3, 31, SITTING.figures)], tools.OURS)
    assert drawn.count("<circle") == 2 * 2 * len(SITTING.figures)
    assert drawn.count(">paramiko<") == 1
    assert drawn.replace("http://www.w3.org/2000/svg", "").count("http") == 0


def test_keeping_a_sitting_replaces_the_one_of_as_many_hosts_and_draws_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converge, "KEPT", tmp_path / "figures" / "converge.json")
    monkeypatch.setattr(converge, "PLOT", tmp_path / "converge.svg")
    more = Sitting(16, 3, 31, SITTING.figures)
    for done in (more, Sitting(4, 1, 31, SITTING.figures), SITTING):
        converge.keep(done)
    assert converge.stored() == [SITTING, more]
    assert converge.PLOT.read_text() == picture([SITTING, more], tools.OURS)


def test_what_is_measured_is_compiled_as_an_installation_is(tmp_path: Path) -> None:
    module = tmp_path / "rackwright" / "plan" / "one.py"
    module.parent.mkdir(parents=True)
    module.write_text("ONE = 1\n")
    meter.compile_as_installed(tmp_path)
    assert Path(cache_from_source(str(module))).exists()


def test_many_names_are_compared_round_by_round() -> None:
    def one(wall: float, cpu: float) -> Spent:
        return Spent(wall, cpu / 2, cpu / 2, 0.0)

    rounds = [{"paramiko": one(2, 4), "ours": one(3, 4)}, {"paramiko": one(4, 8), "ours": one(4, 4)}]
    bare, ours = many.table("2 names", {"paramiko": (2**20, 9), "ours": (2**21, 8)}, rounds)[2:]
    name, *figures = bare.strip("| ").split(" | ")
    assert (name, figures) == ("paramiko", ["3.0", "6.0", "3.0", "1", "9", *["1.00 (1.00 to 1.00)"] * 2])
    name, *figures = ours.strip("| ").split(" | ")
    assert (name, figures) == ("ours", ["3.5", "4.0", "2.0", "2", "8", "1.25 (1.00 to 1.50)", "0.75 (0.50 to 1.00)"])
