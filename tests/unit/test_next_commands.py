"""Every `next:` and `then:` is followed as far as it goes: the command parses, and does not send its reader back."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.cli.main import parsed, parser
from rackwright.cli.runs import table
from rackwright.record.cause import Cause
from rackwright.record.ending import (
    end_of_drain,
    end_of_reboot,
    end_of_rollback,
    end_of_rollout,
    end_of_undrain,
    result,
)
from rackwright.record.journal import Event
from rackwright.record.record import BY_HAND, DRAIN, FORWARD, REBOOT, UNDRAIN, Record, hosts_in, record_of
from rackwright.record.states import RunState
from rackwright.refusals import sections
from rackwright.rollout.deploy_record import sentence
from rackwright.rollout.forward_and_back import releases_before
from rackwright.rollout.resumable_runs import candidates, chosen, overtaken_runs
from rackwright.rollout.resuming import checked, rest_of, shown_outcome
from tests.refused import refusal, refused
from tests.unit.test_refusals import place_of, trees
from tests.unit.test_resuming import HOSTS, begin, event, failed, host, run, switching

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"\b(?:next|then)\b[^:]{0,40}:?|\bor\b|\binstead\b")
COMMAND = re.compile(r"rackwright [a-z][a-z-]*(?: (?!(?:to|when|which|or|then|and|compares|on|with)\b)[^\s;,)`'>]+)*")
"""A command ends at a comma, at `>`, or at one of these words, where the sentence continues."""


def text_of(node: ast.AST) -> str:
    """Return a literal's text, with a word for each value in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
    return ""


def commands_in(text: str) -> list[str]:
    """Find its commands; what is in quotes is one word."""
    return [re.sub(r"(?<=\w)[.:?]+$", "", one) for one in COMMAND.findall(re.sub(r'"[^"]*"', "WORD", text))]


@cache
def advised() -> dict[str, str]:
    """Each command that a message or the table of refusals tells people to type, with a place that says it."""
    found: dict[str, str] = {}
    for path, tree in trees().items():
        inside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inside |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) not in inside and (step := STEP.search(text_of(node))):
                location = f"{place_of(path)}:{getattr(node, 'lineno', 0)}"
                found |= dict.fromkeys(commands_in(text_of(node)[step.start() :]), location)
    for section in sections():
        for row in section.refusals:
            found |= dict.fromkeys(commands_in(row.next), row.code)
    return found


command_line = cache(parser)


@cache
def complaint(command: str) -> str:
    """Return the real command line's complaint; empty when it takes the command."""
    # The names of a gateway's clients have small letters.
    words = [
        one.lower() if command.startswith("rackwright keys") and one == "VALUE" else one for one in command.split()
    ]
    output = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()):
        parsed(command_line(), words[1:])
    return output.getvalue()


def test_each_command_that_a_message_advises_is_one() -> None:
    assert len(advised()) > 40
    assert {
        f"{location}: {command}": why for command, location in advised().items() if (why := complaint(command))
    } == {}


def test_each_page_that_advice_names_is_there() -> None:
    pages = ROOT / "docs" / "how-to"
    for section in sections():
        for text in [f"{row.means} {row.next}" for rows in (section.refusals, section.lines) for row in rows]:
            for name, _, anchor in (link.partition("#") for link in re.findall(r"\]\((?!https:)([^)]+)\)", text)):
                page = pages / name
                assert page.is_file(), (section.heading, name)
                heads = [
                    heading.lstrip("# ").lower() for heading in page.read_text().splitlines() if heading.startswith("#")
                ]
                slugs = {re.sub(r"[^\w -]", "", head).replace(" ", "-") for head in heads}
                assert not anchor or anchor in slugs, (section.heading, name, anchor)


# -- what a run's end says is what the next command then does


def follow(text: str, records: list[Record]) -> None:
    """Type what a sentence says next; raises what the command would."""
    by_name = {one.id: one for one in records}
    for command in COMMAND.findall(text.partition("next: ")[2]):
        assert complaint(command) == "", command
        verb, *words = shlex.split(command)[1:]
        if verb == "resume":
            assert rest_of(by_name[words[0]] if words else chosen(records)).hosts
        elif verb == "runs":
            assert words[0] in by_name
        elif "--only" in words:
            category, _, name = words[words.index("--only") + 1].partition("@")
            assert hosts_in(by_name[name], category), command


STATE = st.sampled_from(sorted(set(RunState) - {RunState.UNSEEN, RunState.STAGING, RunState.WAITING}))
STORY = st.lists(
    st.tuples(st.none() | STATE, st.sampled_from([None, *Cause]), st.booleans(), st.integers(0, 2)),
    min_size=1,
    max_size=len(HOSTS),
)
Story = list[tuple[RunState | None, Cause | None, bool, int]]


def events_of(story: Story, phase: str = "") -> Iterator[Event]:
    if phase:
        yield event("phase", name=phase)
    for name, (state, cause, served, wave) in zip(HOSTS, story, strict=False):
        if state in (RunState.SWITCHED, RunState.ROLLED_BACK, RunState.NOTHING_SERVES, RunState.SWITCHING):
            yield event("host", host=name, state="switching", before={"llm": "old"} if served else {})
        if state is not None:
            yield host(name, state)
        if cause is not None and state is not None:
            yield failed(name, cause, wave)


def ended(record: Record, status: int, text: str, **more: Any) -> Record:
    """Return the record with its end, as the run writes it."""
    end = {"status": status, "text": text, **more}
    return record_of(record.id, [dict(record.begin), *own_events(record), event("end", **end)])


def own_events(record: Record) -> list[Event]:
    return list(record.begin["said"])


def made(story: Story, purpose: str, **fields: Any) -> Record:
    phase = "" if fields.get("plain") else purpose
    events = list(events_of(story, phase))
    names = HOSTS[: len(story)]
    first = begin(purpose, what=f"{purpose} i.py", hosts=names, said=events, **fields)
    return record_of("r", [first, *events])


@settings(max_examples=300, deadline=None)
@given(STORY, st.sampled_from([0, 1, 130]), st.booleans())
def test_a_plain_run(story: Story, status: int, executed: bool) -> None:
    record = made(story, "deploy", plain=True)
    text = sentence(record, status, executed)
    done = ended(record, status, text, executed=executed or None)
    follow(text, [done])
    follow(shown_outcome(done), [done])


@settings(max_examples=300, deadline=None)
@given(STORY, st.sampled_from([0, 1]))
def test_a_rollout(story: Story, status: int) -> None:
    record = made(story, FORWARD)
    forward = result(own_events(record), FORWARD)
    leaving = releases_before(forward, {}) if forward.judgement.is_the_releases else {}
    advice = end_of_rollout("/s/i.py", record.hosts, status, forward, None, leaving)
    follow_the_end(record, *advice)


@settings(max_examples=200, deadline=None)
@given(STORY, st.sampled_from([0, 1]), st.sampled_from([BY_HAND, REBOOT, DRAIN, UNDRAIN]))
def test_the_other_verbs(story: Story, status: int, purpose: str) -> None:
    record = made(story, purpose)
    found = result(own_events(record), purpose)
    if purpose == DRAIN:
        advice = end_of_drain(record.hosts, status, found, "rackwright undrain /s/i.py --limit h1")
    else:
        ends = {BY_HAND: end_of_rollback, REBOOT: end_of_reboot, UNDRAIN: end_of_undrain}
        advice = ends[purpose](record.hosts, status, found)
    follow_the_end(record, *advice)


def follow_the_end(record: Record, status: int, text: str) -> None:
    """As the run writes it, and as ce5c140 wrote it and `runs` shows it today."""
    old = ended(record, status, text)
    new = ended(record, status, checked(old, text))
    for done in (new, old):
        follow(shown_outcome(done), [done])
    assert "rackwright resume r" in checked(old, text) or "rackwright resume" not in checked(old, text)


@given(STORY, st.sampled_from([FORWARD, BY_HAND, REBOOT, DRAIN, UNDRAIN, "teardown", "rebuild", "bench", "deploy"]))
def test_a_run_that_was_cut_or_stopped(story: Story, purpose: str) -> None:
    record = made(story, purpose, plain=True) if purpose == "deploy" else made(story, purpose)
    follow(shown_outcome(record), [record])
    text = "stopped from outside: hosts finish what they have begun; next: rackwright resume"
    stopped = ended(record, 130, text)
    follow(shown_outcome(stopped), [stopped])
    follow(checked(stopped, text), [stopped])


def test_a_bad_release_is_fixed_and_not_pushed_on() -> None:
    events = (switching("h1"), host("h1", "rolled back"), failed("h1", Cause.CHECK))
    record = run(*events, purpose="deploy", plain=True, hosts=["h1"])
    text = sentence(record, 1, executed=True)
    assert refusal(text, "RW0823", "h1; next: fix the settings ", ", then pyinfra /s/i.py /s/deploy.py") == text
    others = run(host("h2", "switched"), *events, purpose="deploy", plain=True, hosts=["h1", "h2"])
    assert sentence(others, 1, executed=True).endswith(" rackwright rollback /s/i.py --only switched@r")


def test_a_plain_run_names_the_hosts_on_which_nothing_serves() -> None:
    events = (host("h1", "rolled back"), host("h2", "nothing serves"), host("h3", "not switched"))
    record = run(*events, purpose="deploy", plain=True, hosts=["h1", "h2", "h3"])
    refusal(sentence(record, 1, executed=True), "RW0823", "h1, h2; ", " on h2; ", "h3 ")


def test_what_was_stopped_at_its_prompt_has_nothing_left() -> None:
    prompt = run(purpose="deploy", plain=True)
    text = sentence(prompt, 130, executed=False)
    assert refusal(text, "RW0822", "5 not begun", "; next: the same command") == text
    meant = run(host("h1", "failed before its switch"), purpose="deploy", plain=True, hosts=["h1"])
    # As ce5c140 wrote it, and where the terminal was closed at the prompt.
    for end in ([event("end", status=130, text="RW0822: stopped; next: rackwright resume r")], []):
        no = record_of("no", [begin("deploy", plain=True), *end])
        assert [one.record.id for one in candidates([meant, no])] == ["r"]
        assert chosen([meant, no]).id == "r"
        with refused("RW0816", ": 5 not begun"):
            rest_of(no)
        assert "resume" not in shown_outcome(no)


def test_what_was_begun_before_the_stop_is_left() -> None:
    stopped = run(event("end", status=130, text="x", executed=True), purpose="deploy", plain=True)
    assert rest_of(stopped).hosts == tuple(HOSTS), "steps of the site's own leave no word of a host"
    job = run(event("job", host="h1", job="pull-x", state="began"), purpose="deploy", plain=True)
    assert rest_of(job).hosts == tuple(HOSTS)


@pytest.mark.parametrize("status", [130, None])
def test_once_it_is_resumed_a_run_says_so_and_sends_nobody_back(status: int | None) -> None:
    text = "stopped from outside: hosts finish what they have begun; next: rackwright resume"
    end = [event("end", status=status, text=text)] if status else []
    first = run(switching("h1"), *end, event("resumed", by="r2"))
    assert shown_outcome(first).endswith("; continued as r2")
    assert "resume" not in shown_outcome(first)


def test_a_run_whose_hosts_later_ones_took_over_is_told_so() -> None:
    first = run(event("phase", name=FORWARD), switching("h1"), host("h1", "failed"), hosts=["h1"])
    well = (event("phase", name=FORWARD), host("h1", "switched"), event("end", status=0, text="done"))
    later = record_of("later", [begin(hosts=["h1"]), *well])
    assert overtaken_runs([first, later]) == {"r"}
    assert "later runs took over its hosts" in table([first, later], overtaken_runs([first, later]))


def test_a_bench_is_told_by_its_cells_and_is_not_resumed_text() -> None:
    cells = [event("cell", name="one", measured={}), event("cell", name="two")]
    cut = run(*cells, purpose="bench", what="bench i.py")
    assert cut.counts() == "1 of 2 cells measured"
    assert shown_outcome(cut) == "was cut; next: the same command again"
