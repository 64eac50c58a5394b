"""ShareGPT, Spec-Bench and BurstGPT from files, as aiperf takes them: a prompt and a length a line.

A file's SHA-256 goes into `rackwright.bench.lock.yml` of the site at first use; other bytes are refused from then on,
since figures of other requests do not compare.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rackwright.messages import RackwrightError, SettingsError, writing
from rackwright_bench.aiperf.environment import cache_folder
from rackwright_bench.suites.suite import DataSet, Kind, Suite
from rackwright_engines.quick_yaml import load_yaml

LOCK = "rackwright.bench.lock.yml"
HEAD = """\
# Written by `rackwright bench`: the files of requests that were measured with, by SHA-256; keep it with the site.
# To measure with another file of a name, remove its line.
"""
CHARACTERS = 4
"""Of English text a token, about: ShareGPT's answers are counted so where no length is set."""
WORDS = ("harbour", "lantern", "evening", "meadow", "copper", "river", "window", "garden", "silver", "mountain")
"""BurstGPT has lengths and no texts: its prompts are made of these, each a token with the blank before it."""
ROW = re.compile(r"[^\r\n]+")
CAVEAT = "burstgpt has lengths alone: its prompts are made up, so its acceptance is not that of real chats"


def prompt_files(
    suite: Suite, beside: Path, root: Path, out: Path, file: str = "SUITE", rounds: int = 1
) -> dict[str, list[Path]]:
    """Write the requests of each set that is read from a file; returns the files that aiperf takes, by set and round.

    Each round has the next ones of the file, whose end leads to its begin: what is not restarted between two rounds,
    as a tune's settings, has those of the round before in its prefix cache. beside: the folder that relative paths are
    of. file: the suite's name or file, for messages. Raises SettingsError naming the set, its key and what is missing.
    """
    digests_by_set = locked(root)
    needed = max(pattern.requests for pattern in suite.arrivals.values()) + suite.warmup
    found, digests = dict[str, list[Path]](), dict[str, str]()
    for name, data in suite.datasets.items():
        if data.kind != "random":
            content = _content(name, data, beside, digests_by_set.get(name) or data.sha256 or "", file)
            digests[name] = _checked(name, data, content, digests_by_set, root)
            order = cycle(rows(name, data, content.decode(errors="replace"), suite.seed))
            found[name] = [out / f"{name}.{number}.jsonl" for number in range(1, rounds + 1)]
            for path in found[name]:
                path.write_text("".join(f"{json.dumps(_line(row))}\n" for row in islice(order, needed)))
    note_digests(root, digests)
    return found


def store() -> Path:
    """Return the folder of the files that `--fetch` has brought, each by its SHA-256."""
    return cache_folder() / "requests"


@cache
def published(kind: Kind) -> Mapping[str, str]:
    """Return where a kind's file was published: `file`, `hub` or `url`, and `sha256` where that is known of it."""
    found: Mapping[str, str] = load_yaml((files("rackwright_bench") / "data" / "requests.yaml").read_text())[kind]
    return found


def _where(kind: Kind) -> str:
    source = published(kind)
    return f"{source['file']} of {source['url'] if 'url' in source else 'the data set ' + source['hub']}"


def _content(name: str, data: DataSet, beside: Path, digest: str, file: str) -> bytes:
    path = beside / Path(data.path).expanduser() if data.path else store() / digest
    try:
        return path.read_bytes()
    except OSError as error:
        if data.path is None:
            raise SettingsError(
                f"datasets.{name}: {data.kind} is read from a file, and none was fetched; nothing was measured; next: "
                f"rackwright bench INVENTORY --suite {shlex.quote(file)} --fetch published; or set its path to "
                f"{_where(data.kind)}",
                code="RW1516",
            ) from error
        raise SettingsError(
            f"datasets.{name}.path: {path} cannot be read: {error.strerror}; nothing was measured; next: fetch "
            f"{_where(data.kind)}, or leave path out, and --fetch",
            code="RW1516",
        ) from error


def locked(root: Path) -> dict[str, str]:
    """Return the SHA-256 of each set that a site has measured with, or fetched. Raises RackwrightError."""
    try:
        found = load_yaml((root / LOCK).read_text()) or {}
        return {str(name): str(value) for name, value in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError, AttributeError) as error:
        why = f"{root / LOCK} is not readable: {error}; next: git checkout {LOCK}"
        raise RackwrightError(why, code="RW1517") from error


def note_digests(root: Path, digests: Mapping[str, str]) -> None:
    """Write the SHA-256 of sets that the lock file lacks. Raises RackwrightError."""
    digests_by_set = locked(root)
    if digests.keys() - digests_by_set.keys():
        with writing(root / LOCK):
            (root / LOCK).write_text(HEAD + yaml.safe_dump({**digests, **digests_by_set}))


def _checked(name: str, data: DataSet, content: bytes, digests_by_set: Mapping[str, str], root: Path) -> str:
    found = hashlib.sha256(content).hexdigest()
    for by, digest in ((root / LOCK, digests_by_set.get(name)), ("the suite", data.sha256)):
        if digest not in (None, found):
            raise RackwrightError(
                f"datasets.{name}.path: its SHA-256 is {found}, and {by} has {digest}: figures of other requests do "
                "not compare; nothing was measured; next: the former file, or remove the line",
                code="RW1517",
            )
    return found


# -- the three forms


class Request(NamedTuple):
    """One request of a file. Small: a file of BurstGPT has a million of them, of which a bench sends some hundred."""

    length: int
    """Tokens of the answer."""
    text: str = ""
    """The prompt; empty where it is made up."""
    made: int = 0
    """Words of a prompt that is made up."""
    number: int = 0
    """Its row in the file, of which a prompt is made up."""


def _line(request: Request) -> dict[str, Any]:
    """Return a request as aiperf takes it."""
    text = request.text or " ".join(random.Random(request.number).choices(WORDS, k=request.made))
    return {"text": text, "output_length": max(1, request.length)}


def rows(name: str, data: DataSet, text: str, seed: int) -> list[Request]:
    """Return all requests of a file, in an order by the seed. Raises SettingsError for a file of another form."""
    try:
        found = list(READ[data.kind](text, data.output))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise SettingsError(
            f"datasets.{name}.path: no file of {_where(data.kind)}: {error!r}", code="RW1518"
        ) from error
    if not found:
        raise SettingsError(f"datasets.{name}.path: the file has no requests: {_where(data.kind)}?", code="RW1518")
    random.Random(seed).shuffle(found)
    return found


def _sharegpt(text: str, output: int | None) -> Iterator[Request]:
    """Yield the first question of each talk, and the length of its answer."""
    for talk in json.loads(text):
        turns: Sequence[Mapping[str, str]] = talk["conversations"]
        if len(turns) > 1 and turns[0]["value"].strip() and turns[1]["value"].strip():
            yield Request(output or len(turns[1]["value"]) // CHARACTERS, turns[0]["value"])


def _spec_bench(text: str, output: int | None) -> Iterator[Request]:
    """Yield the first turn of each question."""
    for row in text.splitlines():
        if row.strip():
            yield Request(output or 1, str(json.loads(row)["turns"][0]))


def _burstgpt(text: str, output: int | None) -> Iterator[Request]:
    """Yield the lengths of GPT-4's requests, as `vllm bench serve` takes them, with prompts that are made up."""
    for number, row in enumerate(csv.DictReader(found[0] for found in ROW.finditer(text))):
        if row["Model"] == "GPT-4" and (answered := int(row["Response tokens"])) > 0:
            yield Request(output or answered, made=max(1, int(row["Request tokens"])), number=number)


READ = {"sharegpt": _sharegpt, "spec_bench": _spec_bench, "burstgpt": _burstgpt}
"""The reader of each kind of file: its text, and the length of answers where the suite sets one."""
