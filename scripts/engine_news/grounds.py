"""The parts of an engine that the product rests on: options, checks, metrics, paths, names, log lines, and their users.

Each is read from where the product has it, so that nothing is listed twice; what only code says is WORDS.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.proof import drafts, engine_steps
from rackwright.concerns.options.host import build_options, in_image, walk_options
from rackwright.engines.group import OURS
from rackwright_engines.data import table
from rackwright_engines.load_counters import ABSENT, COUNTERS
from rackwright_engines.options.pairs import rules_of
from rackwright_engines.options.schema import Json, is_of, start_bounds
from rackwright_engines.pace_counters import PACE
from rackwright_engines.quick_yaml import load_yaml
from scripts.dashboards import DASHBOARDS

ROOT = Path(__file__).parents[2]
PREFIXES = {"vllm": "vllm:", "sglang": "sglang:", "tensorrt-llm": "trtllm_"}
MODULES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt_llm"}
VARIABLES = {"vllm": ("VLLM_",), "sglang": ("SGLANG_", "SGL_"), "tensorrt-llm": ("TRTLLM_", "TLLM_", "TRT_LLM_")}
COMMAND_LINE: Mapping[str, tuple[str, ...]] = {
    "vllm": ("host", "port", "served-model-name"),
    "sglang": ("model-path", "host", "port", "served-model-name"),
    "tensorrt-llm": (),
}
"""Options that each endpoint's own command line has (server_command in concerns/endpoint/container.py)."""
WORDS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "vllm": (("gate: /health", ("/health",)), ("metrics", ("/metrics",))),
    "sglang": (
        ("gate: /health", ("/health",)),
        ("gate row accepted drafts", ("/generate",)),
        ("gate row accepted drafts", ("spec_verify_ct",)),
        ("gate row accepted drafts", ("spec_correct_drafts_histogram", "spec_accept_histogram")),
        ("gate row engine steps", ("/server_info", "/get_server_info")),
    ),
    "tensorrt-llm": (
        ("gate: /health", ("/health",)),
        ("gate row accepted drafts", ("avg_decoded_tokens_per_iter",)),
        ("metrics", ("/prometheus/metrics",)),
        ("every endpoint's command line", ("--extra_llm_api_options",)),
    ),
}
"""Paths and fields of answers that the product reads: whose ground, and the names of which one must be there."""


class Kind(Enum):
    """The way in which a ground is looked up."""

    OPTION = "option"
    CHECK = "check"
    METRIC = "metric"
    WORD = "word"
    MODULE = "module"
    LOG = "log"


@dataclass(frozen=True)
class Ground:
    """Something of an engine that something of the product rests on."""

    owner: str
    """The rule, row or file that would be wrong without it."""
    kind: Kind
    names: tuple[str, ...]
    """Its names, of which one is enough; of a check, the file and the class or function in it."""
    fields: tuple[str, ...] = ()
    """Options that a check is about."""
    history: bool = False
    """True for data of many releases: it counts where the release before has it."""

    @property
    def name(self) -> str:
        """The names for people."""
        return " or ".join(self.names)


def grounds(engine: str, version: str) -> list[Ground]:
    """Return what the product rests on at a version of an engine, each once."""
    every = (
        *_rules(engine, version),
        *_paths_and_keys(engine),
        *_rights(engine, version),
        *_metrics(engine),
        *_modules(engine),
        *_api_key(engine, version),
        *(Ground("every endpoint's command line", Kind.OPTION, (name,)) for name in COMMAND_LINE[engine]),
        *(Ground("several hosts", Kind.OPTION, (name,)) for name in sorted(OURS.get(engine, ()))),
        *(Ground("gateway: served paths", Kind.WORD, (path,)) for path in table("served_paths")[engine]["inference"]),
        *(Ground(owner, Kind.WORD, names) for owner, names in WORDS[engine]),
    )
    return list(dict.fromkeys(every))


def _rules(engine: str, version: str) -> Iterator[Ground]:
    """Yield the options and checks of the rules between options, and of the numbers that are checked at the start."""
    trtllm = engine == "tensorrt-llm"
    rows = table(f"{engine}/checks") if trtllm else rules_of(engine)
    for name, row in rows.items():
        if is_of(row, version):
            yield from _checked(f"rule {name}", row["options"] if trtllm else _options_of(row), row["source"])
    for option, row in start_bounds(engine).items():
        if is_of(row, version):
            yield from _checked(f"bounds of {option}", {option}, row["source"])


def _options_of(rule: Json) -> set[str]:
    """Return the options that a rule names: those that it asks of, and those that it compares with."""
    tests = [test for test in rule["when"].values() if isinstance(test, Mapping)]
    compared = {other for test in tests for other in test.values() if isinstance(other, str)}
    return {rule["at"], *rule["when"], *compared}


def _checked(owner: str, options: Iterable[str], source: str) -> Iterator[Ground]:
    names = sorted(options)
    yield from (Ground(owner, Kind.OPTION, (name,)) for name in names)
    file, _, symbol = source.partition(" ")
    yield Ground(owner, Kind.CHECK, (file, symbol), tuple(names))


def _paths_and_keys(engine: str) -> Iterator[Ground]:
    """Yield options and variables that name something in the container, and those that `explain` describes."""
    facts = table("paths")
    named = [("paths.yaml", Kind.OPTION, name) for name in facts[engine]["options"] if name != "config"]
    named += [("paths.yaml", Kind.WORD, name) for name in _variables(engine, facts["environment"])]
    named += [("keys.yaml", Kind.OPTION, name) for name in table(f"{engine}/keys")]
    yield from (Ground(owner, kind, (name,), history=True) for owner, kind, name in named)
    facts = table(f"{engine}/metrics")
    yield from (Ground("metrics", Kind.OPTION, (facts[name],)) for name in ("needs", "unless") if name in facts)
    yield Ground("watch.yaml", Kind.OPTION, (table("watch")[engine]["batch"],))


def _variables(engine: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(VARIABLES[engine])]


def _rights(engine: str, version: str) -> Iterator[Ground]:
    """Yield the options whose values give a container more rights."""
    rows = load_yaml((ROOT / "rackwright" / "data" / "rights.yaml").read_text())["needs"]
    for row in rows:
        if row["engine"] == engine and is_of(row, version):
            yield from (Ground("rights.yaml", Kind.OPTION, (name,)) for name in row.get("options", ()))


def _metrics(engine: str) -> Iterator[Ground]:
    watch, pace, load = table("watch")[engine], PACE[engine], COUNTERS[engine]
    named = {
        "watch.yaml: steps": [watch["steps"]],
        "watch.yaml: sleep": [[watch["sleep"]["name"]]] if "sleep" in watch else [],
        "rackwright top": [[one] for one in (load.tokens, load.running, load.waiting) if one != ABSENT],
        "gate: slower_by": [[f"{name}_sum" for name in pace.first], pace.token_seconds, pace.tokens],
        "gate: slower_by, drafts": [one for one in (pace.drafted, pace.accepted) if one],
        "gate row engine steps": [engine_steps.COUNTED[engine].split("|")] if engine in engine_steps.COUNTED else [],
        "gate row accepted drafts": _draft_counters(engine),
        **dict(_queried(engine)),
    }
    yield from (Ground("watch.yaml: moves", Kind.METRIC, (name,), history=True) for name in watch["moves"])
    for owner, groups in named.items():
        yield from (Ground(owner, Kind.METRIC, tuple(names)) for names in groups)


def _draft_counters(engine: str) -> list[list[str]]:
    """Return the counters of drafts, whose names drafts.py makes of a beginning."""
    if not drafts.WAYS[engine].counted:
        return []
    ends = ("drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos")
    return [[f"{drafts.VLLM_COUNTERS}{end}_total"] for end in ends]


def _queried(engine: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the metrics of each dashboard and of the alerts."""
    name = re.compile(rf"\b{PREFIXES[engine]}\w+")
    for board in DASHBOARDS:
        queries = [query.expression for panel in board.panels for query in panel.queries]
        found = sorted(
            {one for text in [*queries, *(query for _, query in board.choices)] for one in name.findall(text)}
        )
        yield f"dashboard {board.name}", [[one] for one in found]
    alerts = (ROOT / "docs" / "monitoring" / "rackwright-alerts.yml").read_text()
    yield "alerts", [[one] for one in sorted(set(name.findall(alerts)))]


def _modules(engine: str) -> Iterator[Ground]:
    """Yield what the programs that run inside an image import of the engine."""
    for program in (build_options, walk_options):
        for call in ast.walk(ast.parse(inspect.getsource(program))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "first":
                names = tuple(name for argument in call.args for name in _spelled(argument))
                if names and names[0].partition(":")[0].partition(".")[0] == MODULES[engine]:
                    yield Ground(f"check --in-image ({program.__name__.rpartition('.')[2]})", Kind.MODULE, names)


def _spelled(argument: ast.expr) -> tuple[str, ...]:
    """Return the names that an argument of `first` stands for."""
    if isinstance(argument, ast.Starred):
        return tuple(getattr(in_image, ast.unparse(argument.value)))
    return (str(argument.value),) if isinstance(argument, ast.Constant) else ()


def _api_key(engine: str, version: str) -> Iterator[Ground]:
    """Yield how an engine takes a key, and the lines of its log that would show one."""
    facts: Mapping[str, Any] = load_yaml((ROOT / "rackwright" / "data" / "api_key.yaml").read_text())[engine]
    if "option" not in facts:
        return
    yield Ground("api_key.yaml", Kind.OPTION, (facts["option"],))
    yield Ground("api_key.yaml", Kind.WORD, (facts["logging"],))
    for clash in facts.get("clashes", ()):
        if "engine" in clash:
            yield Ground("api_key.yaml", Kind.OPTION, (clash["engine"],))
        else:
            yield from (
                Ground("api_key.yaml", Kind.WORD, (name,)) for name in _variables(engine, [clash["environment"]])
            )
    if is_of({"since": "0.0.0", **({"until": facts["until"]} if "until" in facts else {})}, version):
        yield from (Ground("api_key.yaml", Kind.LOG, (logger,)) for logger in facts["logs"])
