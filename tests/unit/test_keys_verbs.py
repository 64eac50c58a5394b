"""`rackwright keys` and `rackwright usage`: what is printed where, and what a gateway that does not answer means."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rackwright.cli import gateway_hosts
from rackwright.cli.main import main
from rackwright.concerns.gateway.usage import Usage, parse_usage, summed
from rackwright.inspect.run_script import HostOutput
from rackwright.loading.gateway_keys import load_keys
from rackwright.messages import RackwrightError
from rackwright.plan.change import Shell
from rackwright.settings.gateway_keys import sha256_of
from tests.refused import refusal

INVENTORY = (
    "from rackwright.inventory import build\n"
    "globals().update(build(__file__, {'rack': ['gpu01'], 'gateway': ['gw1', 'gw2']}))\n"
)
SETTINGS = {
    "group_vars/rack.yml": "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
    "allow_from: private\n",
    "group_vars/gateway.yml": "gateway: {tls: false, port: 80}\n",
    "deploy.py": "",
}
TOOK = HostOutput(True, out=("took 0",))
AWAY = HostOutput(False, err=("cannot be reached",))
Answers = Callable[[Sequence[HostOutput]], list[str]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with an endpoint and two gateways, and the user in it."""
    for name, text in {**SETTINGS, "inventory/lab.py": INVENTORY}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Let the gateways answer; returns the rows of the changes that they get."""

    def answer(outputs: Sequence[HostOutput]) -> list[str]:
        rows = list[str]()

        def spread(hosts: Sequence[object], script: Callable[[object], Shell]) -> dict[str, HostOutput]:
            rows.extend(str(script(None).stdin).splitlines())
            if all(output == AWAY for output in outputs):
                raise RackwrightError("no host could be reached", code="RW1314")
            return dict(zip(("gw1", "gw2"), outputs, strict=True))

        monkeypatch.setattr(gateway_hosts, "spread_over", spread)
        return rows

    return answer


def test_a_new_key_is_alone_on_standard_output(site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    rows = sent([TOOK, TOOK])
    assert main(["keys", "add", "inventory/lab.py", "alice", "--model", "gpt-oss-120b"]) == 0
    found = capsys.readouterr()
    key = found.out.strip()
    assert (found.out, key[:3], len(key)) == (f"{key}\n", "rk-", 46)
    assert key not in (site / "gateway_keys.yml").read_text() + found.err + "".join(rows)
    assert [one.sha256 for one in load_keys(site / "gateway_keys.yml").keys] == [sha256_of(key)]
    assert f"put keys {sha256_of(key)} alice" in rows
    assert ["put", "models", "alice/gpt-oss-120b", "yes"] in [row.split() for row in rows]


def test_the_inventory_may_be_left_out(site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    sent([TOOK, TOOK])
    assert main(["keys", "add", "alice"]) == 0
    assert main(["keys", "list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out.partition("\n")[2])] == ["alice"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["add", "alice"], "RW1036"),
        (["add", "bob", "--model", "gpt-os-120b"], "RW1086"),
        (["rotate", "alcie"], "RW1046"),
        (["revoke", "alcie"], "RW1046"),
        (["rotate", "alice", "--grace", "31d"], "RW1004"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    words: list[str], code: str, site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    sent([TOOK, TOOK])
    assert main(["keys", "add", "alice"]) == 0
    before = (site / "gateway_keys.yml").read_text()
    capsys.readouterr()
    assert main(["keys", *words]) == 1
    found = capsys.readouterr()
    assert (code in found.err, found.out) == (True, "")
    assert (site / "gateway_keys.yml").read_text() == before


def test_a_rotated_key_counts_for_a_day_and_a_grace_of_0_ends_it(
    site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sent([TOOK, TOOK])
    main(["keys", "add", "alice", "--requests-per-minute", "7"])
    assert main(["keys", "rotate", "alice"]) == 0
    old, new = load_keys(site / "gateway_keys.yml").of("alice")
    assert old.expires is not None
    assert ((old.expires - new.created).total_seconds(), new.expires, new.requests_per_minute) == (86400, None, 7)
    assert f"put expiries {old.sha256} {int(old.expires.timestamp())}" in rows
    assert main(["keys", "rotate", "alice", "--grace", "0"]) == 0
    (last,) = load_keys(site / "gateway_keys.yml").keys
    assert {f"gone {old.sha256}", f"gone {new.sha256}"} <= set(rows)
    assert capsys.readouterr().out.count("\n") == 3
    assert last.sha256 not in (old.sha256, new.sha256)


@pytest.mark.parametrize("others", [TOOK, AWAY])
def test_a_gateway_that_did_not_take_it_is_reported(
    others: HostOutput, site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    sent([TOOK, TOOK])
    main(["keys", "add", "alice"])
    capsys.readouterr()
    rows = sent([others, AWAY])
    assert main(["keys", "revoke", "alice"]) == 1
    found = capsys.readouterr()
    assert ("RW1066: gw2" in found.err, found.err.count("RW1066"), found.out) == (True, 1 + (others == AWAY), "")
    refusal(found.err, "RW1066", "gw2", "keys revoke", "inventory/lab.py alice")
    assert load_keys(site / "gateway_keys.yml").keys == ()
    assert "revoke alice" in rows
    sent([TOOK, HostOutput(True, out=("took 1",))])
    assert main(["keys", "revoke", "alice"]) == 0


def test_an_inventory_without_gateways_is_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "inventory/lab.py").write_text(INVENTORY.replace("'gateway'", "'others'"))
    for words in (["keys", "add", "alice"], ["usage"]):
        assert main(words) == 1
        assert "RW1056" in capsys.readouterr().err


def test_a_damaged_file_is_refused_before_anything_is_sent(
    site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sent([TOOK, TOOK])
    (site / "gateway_keys.yml").write_text("keys:\n- name: alice\n")
    for words in (["add", "bob"], ["rotate", "alice"], ["revoke", "alice"], ["list"]):
        assert main(["keys", *words]) == 1
        assert "RW0236" in capsys.readouterr().err
    assert rows == []


# -- usage

ROW = "row\t{}\t{}\t10\t1\t2\t3\t1500\t100\t2000"


def output(*rows: str, begins: str = "0") -> HostOutput:
    return HostOutput(True, out=(f"begins\t{begins}\t100", *rows, "unread\t0"))


def test_usage_sums_over_gateways(site: Path, sent: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    sent([output(ROW.format("alice", "m")), output(ROW.format("alice", "m"), ROW.format("-", "-"))])
    assert main(["usage", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["client"], row["requests"], row["seconds"], row["bytes_out"]) for row in rows] == [
        ("-", 10, 1.5, 2000),
        ("alice", 20, 3.0, 4000),
    ]
    sent([output(ROW.format("alice", "m"), begins="100000"), AWAY])
    assert main(["usage", "--columns", "client,cut"]) == 1
    found = capsys.readouterr()
    assert found.out.splitlines()[-1].split() == ["alice", "3"]
    assert ("RW1076" in found.err, found.err.count("gw1")) == (True, 1)


@pytest.mark.parametrize(
    "rows",
    [
        ["unread\t0", "unread\t0"],
        ["unread\t-1"],
        ["row\ta\tm\t1"],
        [],
    ],
)
def test_an_answer_that_is_not_whole_is_none(rows: list[str]) -> None:
    assert parse_usage(rows) is None


def test_a_host_s_words_are_data() -> None:
    found = parse_usage([ROW.format("\x1b[2Ja", "m"), ROW.format("a", "m").replace("10", "1e9"), "x\ty", "unread\t1"])
    assert found is not None
    assert ([pair[0] for pair in found.rows], found.unread) == (["a"], 1)
    assert summed([found, found])["a", "m"] == Usage(20, 2, 4, 6, 3000, 200, 4000)
