"""What an engine's key does, its default, the versions that have it, and where that is known from."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.engines.check import PRODUCTS
from rackwright.engines.data import files, table
from rackwright.engines.moves import meanings
from rackwright.engines.schema import NO_DEFAULT, Key, lines
from rackwright.settings.move import as_yaml
from rackwright.settings.origin import dotted

REFERENCE = {
    "tensorrt-llm": "https://nvidia.github.io/TensorRT-LLM/llm-api/reference.html",
    "vllm": "https://docs.vllm.ai/en/v0.14.1/cli/serve.html",
    "sglang": "https://docs.sglang.ai/advanced_features/server_arguments.html",
}


def matching(word: str) -> list[tuple[str, tuple[str, ...]]]:
    """Keys that a word names: engine and path. The whole path, or its last parts: `backend`, `moe_config.backend`."""
    parts = tuple(word.removeprefix("engine.").split("."))
    return [(engine, path) for engine in PRODUCTS for path in _paths(engine) if path[-len(parts) :] == parts]


def all_names() -> list[str]:
    """Every key of every engine, with dots."""
    return sorted({dotted(path) for engine in PRODUCTS for path in _paths(engine)})


def _paths(engine: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(path for line in lines(engine).values() for path in line.all_keys()))


def explain(engine: str, path: tuple[str, ...]) -> list[str]:
    """Lines about one key, the newest version's type and default first."""
    told = table(f"{engine}/keys").get(dotted(path), {}) if "keys" in files(engine) else {}
    having = {name: line.all_keys()[path] for name, line in lines(engine).items() if path in line.all_keys()}
    newest = list(having.values())[-1]
    return [
        f"{dotted(path)} ({PRODUCTS[engine]})",
        *([f"  {told['does']}"] if told else []),
        f"  type: {_type(newest)}",
        *_defaults(engine, having),
        f"  versions: {_versions(engine, having)}",
        *_renames(engine, path),
        f"  source: {told.get('source', REFERENCE[engine])}",
    ]


def _type(key: Key) -> str:
    limits = [f"{sign} {key.bounds[bound]}" for bound, sign in _SIGNS.items() if bound in key.bounds]
    values = f", one of {', '.join(key.values)}" if key.values else ""
    return f"{key.type}{', '.join(['', *limits])}{values}{', or null' if key.nullable else ''}"


_SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


def _defaults(engine: str, having: dict[str, Key]) -> Iterator[str]:
    """The default, and since when it is that one where it has changed."""
    found: dict[str, str] = {}
    for name, key in having.items():
        none = "its section's" if key.type in lines(engine)[name].sections else "none"
        shown = none if key.default is NO_DEFAULT else as_yaml(key.default)
        if list(found.values())[-1:] != [shown]:
            found[name] = shown
    words = [shown if len(found) == 1 else f"{shown} from {name} on" for name, shown in found.items()]
    yield f"  default: {', '.join(words)}"


def _versions(engine: str, having: dict[str, Key]) -> str:
    names = list(lines(engine))
    unsure = [name for name, key in having.items() if key.unsure]
    first, last = next(iter(having)), list(having)[-1]
    end = "" if last == names[-1] else f", gone in {names[names.index(last) + 1]}"
    doubt = f" (not sure for {', '.join(unsure)})" if unsure else ""
    return f"{'all that are known' if first == names[0] and not end else f'from {first} on'}{end}{doubt}"


def _renames(engine: str, path: tuple[str, ...]) -> Iterator[str]:
    for meaning in meanings(engine):
        if any(form.key == path for form in meaning.forms):
            forms = [f"{dotted(form.key) if form.key else 'left out'} from {form.since} on" for form in meaning.forms]
            yield f"  {meaning.meaning}: {', then '.join(forms)}"
