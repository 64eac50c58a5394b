"""The documentation says what is so: links lead somewhere, commands parse, settings validate, messages exist."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyinfra
import pytest

from rackwright.cli.main import Parser, parsed, parser
from rackwright.loading import secret_sources
from rackwright.loading.merge import Layer, merge
from rackwright.loading.secret_sources import with_printed
from rackwright.loading.validate import validate
from rackwright.loading.yaml_file import Ciphertext, Document, parse
from rackwright.profiles import catalog
from rackwright.settings.secret import Secret
from rackwright.sources.lockfile import FILE, load_lock

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "packages").glob("*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FAILED = ROOT / "docs" / "how-to" / "when-a-deploy-failed.md"
PROFILE = "group_vars/b200.yml"
"""Under the examples, which say only what they are about."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def blocks(language: str) -> list[Any]:
    """All fenced blocks of a language, for parametrization."""
    return [
        pytest.param(text, id=f"{name(page)}-{number}")
        for page in PAGES
        for number, (kind, text) in enumerate(FENCE.findall(page.read_text()))
        if kind == language
    ]


# -- the glossary


def test_every_word_of_the_glossary_has_one_row() -> None:
    words = re.findall(r"\*\*(.+?)\*\*", (ROOT / "docs/reference/glossary.md").read_text())
    assert len(words) > 30
    assert {argument for argument in words if words.count(argument) > 1} == set()


# -- links


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    lost = [link for link in LINK.findall(prose(page)) if "://" not in link and not leads(page, link)]
    assert not lost, f"{name(page)} links to what is not there"


def leads(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_link_leaves_the_pages_of_the_site() -> None:
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        local = [link.partition("#")[0] for link in LINK.findall(prose(page)) if "://" not in link]
        outside = [link for link in local if link and not (page.parent / link).resolve().is_relative_to(docs)]
        assert outside == [], page


def test_every_page_is_linked_from_another() -> None:
    found = {target for page in PAGES for target in targets(page) if target != page.resolve()}
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"]
    assert pages
    assert [name(page) for page in pages if page.resolve() not in found] == []


def targets(page: Path) -> Iterator[Path]:
    for link in LINK.findall(prose(page)):
        yield (page.parent / link.partition("#")[0]).resolve()


# -- commands


def commands(text: str) -> Iterator[list[str]]:
    """Return the simple commands of a shell block, without variables before them."""
    for row in text.replace("\\\n", " ").splitlines():
        words = list(shlex.shlex(row, posix=True, punctuation_chars="&|;"))  # only to see that quotes are closed
        assert words or not row.split("#")[0].strip()
        for part in re.split(r"&&|\||;", row.split(" #")[0]):
            split = shlex.split(part, comments=True)
            while split and re.match(r"^\w+=", split[0]):
                split = split[1:]
            if split:
                yield split


@pytest.mark.parametrize("text", blocks("sh"))
def test_every_rackwright_command_parses(text: str) -> None:
    for words in commands(text):
        if Path(words[0]).name == "rackwright" and words[1:] != ["--version"]:
            parsed(one_parser(), words[1:])  # exits, and says why, for what it does not know


@cache
def one_parser() -> Parser:
    """Return one for all commands: to make it costs a hundred times what a command does."""
    return parser()


def test_every_pyinfra_command_names_shipped_files_and_real_options() -> None:
    # One test, so that one process alone asks pyinfra.
    options_of_pyinfra = pyinfra_help()
    found = [words for page in PAGES for words in pyinfra_commands(page)]
    assert found
    for words in found:
        files = [argument for argument in words if argument.startswith("inventory/") or argument == "deploy.py"]
        assert all((ROOT / file).is_file() for file in files), words
        options = [argument.split("=")[0] for argument in words if argument.startswith("--")]
        assert all(re.search(rf"(?<!\S){option}\b", options_of_pyinfra) for option in options), words


def pyinfra_commands(page: Path) -> Iterator[list[str]]:
    for kind, text in FENCE.findall(page.read_text()):
        if kind == "sh":
            yield from (words for words in commands(text) if Path(words[0]).name == "pyinfra")


def pyinfra_help() -> str:
    command = [str(Path(sys.executable).parent / "pyinfra"), "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_verb_in_the_text_is_one(page: Path) -> None:
    for words in re.findall(r"`rackwright ((?:[a-z]+ ?)+)", prose(page)):
        verb, table = words.split()[0], (ROOT / "docs/reference/commands.md").read_text()
        assert f"## rackwright {verb}" in table or f"\n| {verb} |" in table, f"{name(page)}: {verb}"


# -- settings


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_example_of_settings_validates(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "answers_of", lambda commands: dict.fromkeys(commands, Secret("example-key")))
    file = re.match(r"^# (\S+)", text)
    assert file, "the first line of a YAML block names its file"
    document = parse(text, file[1])
    assert not document.problems
    if file[1] == FILE:
        (tmp_path / FILE).write_text(text)
        assert load_lock(tmp_path).images
    elif file[1].startswith(("group_vars/", "host_vars/")):
        below = [opened(parse((ROOT / profile).read_text(), profile)) for profile in profiles_below(text)]
        merged, wrong = with_printed({"example": merge([*below, opened(document)])}, tmp_path)["example"]
        assert not wrong
        settings, problems = validate("example", merged.values, dict(merged.origins))
        assert settings is not None, [f"{problem.where}: {problem.path}: {problem.text}" for problem in problems]


def profiles_below(text: str) -> list[str]:
    """Return the files of the profile that an example names, or of one for its engine."""
    if named := re.search(r"^profile: (\w+)", text, re.MULTILINE):
        return [f"group_vars/{file}" for file in catalog.profile(named[1]).files]
    return ["group_vars/rtx_pro_6000_vllm.yml" if "engine_kind: vllm" in text else PROFILE]


def opened(document: Document) -> Layer:
    """Load a document with its vault values as secrets; those of examples are no real ciphertexts."""
    return Layer(_opened(document.values), document.origins)


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _opened(below) for key, below in value.items()}
    return Secret("example-of-a-secret") if isinstance(value, Ciphertext) else value


@pytest.mark.parametrize("text", blocks("python"))
def test_every_python_example_is_python(text: str) -> None:
    ast.parse(text)


# -- messages


def messages() -> list[str]:
    """Return the messages on the page about failures: the cell after the code of each row, in backticks."""
    quoted = re.findall(r"^\| \w* \| `([^`]+)` \|", FAILED.read_text(), re.MULTILINE)
    return [message.replace("\\|", "|") for message in quoted]


def all_texts() -> str:
    """Every text in the product's code, and in pyinfra's where it speaks of SSH."""
    package = ROOT / "rackwright"
    python = [
        *package.rglob("*.py"),
        *(ROOT / "packages").rglob("*.py"),
        *(Path(pyinfra.__file__).parent / "connectors").rglob("*.py"),
    ]
    other = [path for kind in ("*.sh", "*.j2") for path in (*package.rglob(kind), *(ROOT / "templates").rglob(kind))]
    return "\n".join([*(path.read_text() for path in other), *(text for path in python for text in literals(path))])


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_page_about_failures_quotes_enough() -> None:
    assert len(messages()) > 50


def test_every_quoted_message_is_in_the_code() -> None:
    # One test, so that one process alone reads all code.
    texts = all_texts()
    parts = [part.strip() for message in messages() for part in message.split("…")]
    lost = [part for part in parts if part and part not in texts]
    assert not lost, f"nothing says: {lost}"


# -- what is made from the code


@pytest.mark.parametrize("page", ["commands.md", "preflight.md"])
def test_the_made_pages_are_up_to_date(page: str) -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "reference.py"))["pages"]()
    assert (ROOT / "docs" / "reference" / page).read_text() == made[page], "next: python scripts/reference.py"


def test_the_sites_page_of_contributing_is_up_to_date() -> None:
    docs = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
    assert docs["CONTRIBUTE"].read_text() == docs["contribute"](), "next: python scripts/docs.py"


def test_every_page_has_its_place_in_the_site() -> None:
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(listed) == pages, "a line of `nav:` in mkdocs.yml"


# -- what has no place there


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_speaks_of_the_machine_it_was_written_on(page: Path) -> None:
    text = page.read_text()
    assert str(ROOT) not in text
    assert not re.search(r"(?<![\w.])/(?:work|home)/|\bdocs-(?:bare|lived)\d|TODO|FIXME", text)
