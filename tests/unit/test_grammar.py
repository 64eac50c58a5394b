"""One form for all verbs: an inventory behind the verb, hosts by `--limit`; old forms work and name the new one."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.cli.inventories import SHARED
from rackwright.cli.main import main, parsed, parser
from rackwright.cli.old_forms import renewed
from rackwright.cli.verbs import EXAMPLES, VERBS

ROOT = Path(__file__).parents[2]
WITH_VALUES = {
    "--limit",
    "--reason",
    "--data",
    "--for",
    "--lines",
    "--fingerprint",
    "--timeout",
    "--out",
    "--site",
    "--compare",
}
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
INVENTORY = "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': ['gpu01', 'gpu02']}))\n"
READ_NO_INVENTORY = {
    "init",
    "profiles",
    "questions",
    "runs",
    "report",
    "resume",
    "explain",
    "advise",
    "schema",
    "completion",
}


OF_A_CLIENT = {f"rackwright keys {verb}" for verb in ("add", "rotate", "revoke")}
"""They name a client of the gateways, which is neither a host nor a group."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with two hosts and one inventory, and the user in it."""
    for name, text in (("group_vars/all.yml", MODEL), ("inventory/lab.py", INVENTORY), ("deploy.py", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RACKWRIGHT_INVENTORY", raising=False)
    return tmp_path


def leaves(above: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the verbs that do something, those of verbs included."""
    below = [action for action in above._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for name, verb in action.choices.items():
            if name != "lab":
                yield from leaves(verb)
    if not below:
        yield above


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_an_example_that_parses_and_stands_in_its_help(verb: str) -> None:
    top = parser()
    args = parsed(top, shlex.split(EXAMPLES[verb])[1:])
    assert args.command == verb
    assert top.verbs is not None
    assert EXAMPLES[verb] in " ".join(top.verbs.choices[verb].format_help().split())
    assert EXAMPLES[verb] in top.format_help()


def test_no_help_says_a_default_that_is_nothing() -> None:
    assert not [leaf.prog for leaf in leaves(parser()) if re.search(r"\(default:\s*\)", leaf.format_help())]


def test_the_table_in_the_docs_has_each_verb_once() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text()
    table = page.partition("## All verbs")[2].partition("\n## ")[0]
    assert re.findall(r"^\| \[([a-z-]+)\]", table, re.MULTILINE) == list(VERBS)


def test_a_positional_is_an_inventory_that_may_be_left_out() -> None:
    for verb in leaves(parser()):
        words = [action for action in verb._actions if not action.option_strings]
        name = [("NAME", None)] if verb.prog in OF_A_CLIENT else []
        if verb.prog.split()[1] not in READ_NO_INVENTORY:
            assert [(one.metavar, one.nargs) for one in words] == [("INVENTORY", "?"), *name], verb.prog


def test_shared_options_are_the_same_everywhere() -> None:
    for verb in leaves(parser()):
        for action in verb._actions:
            shared = SHARED.get(action.option_strings[-1].removeprefix("--")) if action.option_strings else None
            if shared:
                assert tuple(action.option_strings) == shared[0], verb.prog
                assert str(action.help).startswith(shared[1]["help"]), verb.prog


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lock i.py --from-hosts", "pin i.py --from-hosts"),
        ("unlock i.py --limit h1 -y", "lease break i.py --limit h1 -y"),
        ("drain h1 h2 --reason x -i i.py", "drain i.py --limit h1 --limit h2 --reason x"),
        ("drain h1 --reason x -y", "drain --limit h1 --reason x -y"),
        ("drain @ssh/h1 --reason x", "drain --limit @ssh/h1 --reason x"),
        ("undrain h1 --inventory=i.py", "undrain i.py --limit h1"),
        ("rebuild h1 -i i.py --fingerprint SHA256:x", "rebuild i.py --limit h1 --fingerprint SHA256:x"),
        ("firewall pause i.py h1 h2 --for 1h", "firewall pause i.py --limit h1 --limit h2 --for 1h"),
        ("quarantine i.py --release h1", "quarantine i.py --limit h1 --release"),
        ("quarantine i.py --add h1 --why RMA", "quarantine i.py --limit h1 --add --reason RMA"),
        ("chat i.py 'Who are you?' --limit h1", "chat i.py --limit h1 -- 'Who are you?'"),
        ("exec i.py uptime", "exec i.py -- uptime"),
        ("bench compare one last --site .", "bench --compare-runs one last --site ."),
        ("check i.py --host h1", "check i.py --limit h1"),
        ("reboot i.py --limit h1 --back-within 60", "reboot i.py --limit h1 --timeout 60"),
        ("reboot i.py --all --back-within=60", "reboot i.py --all --timeout=60"),
        ("bench i.py --time-limit 1.5 --compare a,b", "bench i.py --compare a,b --timeout 90"),
        ("render i.py --host=h1 --out d", "render i.py --limit=h1 --out d"),
    ],
)
def test_an_old_form_works_and_is_the_new_one(old: str, new: str) -> None:
    words = renewed(shlex.split(old), WITH_VALUES)
    assert words == shlex.split(new)
    assert renewed(words, WITH_VALUES) == words
    parsed(parser(), words)


@pytest.mark.parametrize("new", [*EXAMPLES.values(), "rackwright firewall show i.py", "rackwright exec -- ls -i /tmp"])
def test_a_new_form_is_left_as_it_is(new: str) -> None:
    words = shlex.split(new)[1:]
    assert renewed(words, WITH_VALUES) == words


def test_the_text_of_an_old_form_says_the_new_one(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--host", "gpu01"]) == 0
    output = capsys.readouterr()
    assert output.err == "rackwright: this form ends with the next version; type: rackwright check --limit gpu01\n"
    assert "1 host, the settings are valid" in output.out


@pytest.mark.parametrize(
    "words",
    [
        "drain --reason x",
        "undrain",
        "reboot",
        "rebuild",
        "teardown",
        "quarantine --add",
        "firewall pause --for 1h",
        "watch pause --for 1h",
    ],
)
def test_what_takes_hosts_out_of_service_is_told_which(
    words: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 1
    output = capsys.readouterr().err
    assert "RW1038" in output
    assert "--limit HOST" in output
    assert "--all" in output


def test_the_text_for_a_host_in_the_inventory_s_place_is_the_right_line(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["exec", "gpu02", "--timeout", "9", "--", "uptime"]) == 1
    output = capsys.readouterr().err
    assert "RW1028" in output
    assert output.endswith("next: rackwright exec inventory/lab.py --timeout 9 --limit gpu02 -- uptime\n")
    assert main(["status", "gpu09"]) == 1
    assert "RW1306" in capsys.readouterr().err


def test_what_takes_one_host_says_so(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rebuild", "--all", "-y"]) == 1
    assert "RW1019" in capsys.readouterr().err
    assert main(["render", "--limit", "rack", "--out", "x"]) == 1
    assert "RW1019" in capsys.readouterr().err


def test_the_list_of_quarantined_hosts_is_changed_by_limit(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quarantine", "--add", "--limit", "gpu01", "--reason", "RMA 4711"]) == 0
    assert "RMA 4711" in capsys.readouterr().out
    assert main(["quarantine", "--release", "--limit", "gpu02"]) == 1
    assert "RW1010" in capsys.readouterr().err
    assert main(["quarantine", "--release", "--all"]) == 0
    assert "no host is quarantined" in capsys.readouterr().out


def test_a_question_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["chat", "i.py"])
    assert "are required: -- QUESTION" in capsys.readouterr().err
