"""Reads the names of an engine's Prometheus metrics out of its source, by version. Nothing of it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rackwright_engines.version import parse_version
from scripts.engine_data.source import sources

FILES = {
    "vllm": ("vllm/v1/metrics/loggers.py", "vllm/v1/spec_decode/metrics.py"),
    "sglang": ("sglang/srt/metrics/collector.py", "sglang/srt/observability/metrics_collector.py"),
    "tensorrt-llm": ("tensorrt_llm/metrics/collector.py", "tensorrt_llm/metrics/batch_metrics.py"),
}
"""The collectors: those of features that a dashboard does not show (offloading, encoders, RL) are not among them."""
KINDS = ("counter", "gauge", "histogram", "summary")
HEADS = {
    "vllm": "path: /metrics\nunless: disable-log-stats\n",
    "sglang": "path: /metrics\nneeds: enable-metrics\n",
}
"""Their sources: vllm/entrypoints/serve/instrumentator/metrics.py, sglang/srt/entrypoints/http_server.py."""
PREFIX = "metric_prefix"
"""The variable of TensorRT-LLM's collector with what all of its names begin with."""


def as_file(engine: str, versions: Sequence[str], cache: Path) -> str:
    """Return the text of an engine's `metrics.yaml`. Raises SettingsError for a version that cannot be had."""
    newest = max(versions, key=lambda one: parse_version(one) or ())
    rows = (
        f"  {name}: {{{', '.join(f'{key}: {value}' for key, value in facts.items())}}}\n"
        for name, facts in sorted(names(engine, versions, cache).items())
    )
    return (
        f"# Made by scripts/engine-metrics from {len(versions)} versions up to {newest}: `in` says the files.\n"
        "# `since`: the first of them that has the name; `until`: the first that lacks it. A counter's series ends with"
        " _total.\n"
        "# `once`: its kind before the version `turned`.\n"
        f"{HEADS[engine]}in: [{', '.join(FILES[engine])}]\nnames:\n{''.join(rows)}"
    )


def names(engine: str, versions: Sequence[str], cache: Path) -> dict[str, dict[str, str]]:
    """Return each metric with its kind, the first version that has it, and the first later one that does not.

    One that became another kind has its former one as `once`, and the first version with the new one as `turned`.
    """
    found: dict[str, dict[str, str]] = {}
    for version in sorted(versions, key=lambda one: parse_version(one) or ()):
        here = dict(names_in(engine, sources(engine, version, cache)))
        for name, kind in sorted(here.items()):
            row = found.setdefault(name, {"kind": kind, "since": version})
            row.pop("until", None)
            if row["kind"] != kind:
                row |= {"kind": kind, "once": row["kind"], "turned": version}
        for name in found.keys() - here.keys():
            found[name].setdefault("until", version)
    return found


def names_in(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each metric that the sources in a folder make, with its kind."""
    for name in FILES[engine]:
        if (file := folder / name).is_file():
            tree = ast.parse(file.read_text(encoding="utf-8"))
            yield from _of_collector(tree) if engine == "tensorrt-llm" else _of_file(tree, f"{engine}:")


def _of_collector(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the metrics that calls make whose names are put together of a prefix and a text, as TensorRT-LLM does."""
    nodes = [*ast.walk(tree)]
    values = [
        one.value for one in nodes if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]).endswith(PREFIX)
    ]
    prefix = next((str(one.value) for one in values if isinstance(one, ast.Constant)), "")
    for call in nodes:
        if isinstance(call, ast.Call) and (kind := _kind(call)):
            named = [one.value for one in call.keywords if one.arg == "name"] or call.args[:1]
            yield from ((text, kind) for one in named if (text := _put_together(one, prefix)))


def _put_together(node: ast.expr, prefix: str) -> str:
    """Return the text of an expression in which variables stand for the prefix; empty for another one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and ast.unparse(node.left).endswith(PREFIX):
        end = _put_together(node.right, prefix)
        return f"{prefix}{end}" if end else ""
    return ""


def _of_file(tree: ast.AST, prefix: str, kind: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names below a node, with the kind of the nearest call around them."""
    for node in ast.iter_child_nodes(tree):
        inner = _kind(node) or kind
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(rf"{prefix}\w+", node.value):
                yield node.value, inner or ("gauge" if node.value.endswith("_info") else "counter")
        else:
            yield from _of_file(node, prefix, inner)


def _kind(node: ast.AST) -> str:
    """Return the kind of metric that a call makes: `Counter(...)`, `self._gauge_cls(...)`; empty for other nodes."""
    called = ast.unparse(node.func).lower() if isinstance(node, ast.Call) else ""
    return next((kind for kind in KINDS if kind in called.rpartition(".")[2]), "")
