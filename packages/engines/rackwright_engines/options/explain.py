"""An engine's key explained: what it does, its default, the versions that have it, and the source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright_engines.data import PRODUCTS, files, table
from rackwright_engines.key_path import dotted
from rackwright_engines.move import as_yaml
from rackwright_engines.options.commandline import exactly
from rackwright_engines.options.renames import ANY, Form, meanings
from rackwright_engines.options.schema import NO_DEFAULT, Key, lines

REFERENCE = {
    "tensorrt-llm": "https://nvidia.github.io/TensorRT-LLM/llm-api/reference.html",
    "vllm": "https://docs.vllm.ai/en/v0.14.1/cli/serve.html",
    "sglang": "https://docs.sglang.ai/advanced_features/server_arguments.html",
}


def matching(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Keys that a word names: engine and path. The whole path, or its last parts: `backend`, `moe_config.backend`.

    A name that the YAML does not have (`--tp_size`) stands for the key that says the same in the YAML.
    """
    plain = name.removeprefix("engine.").removeprefix("--")
    parts = tuple(str(_elsewhere().get(plain, plain)).split("."))
    found = [(engine, path) for engine in PRODUCTS for path in _paths(engine) if path[-len(parts) :] == parts]
    return found or list(dict.fromkeys(_other_spellings(name.removeprefix("engine."))))


def _other_spellings(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the keys of vLLM and SGLang by an alias, a short flag, `no-NAME`, or with underscores."""
    for engine in ("vllm", "sglang"):
        for schema in lines(engine).values():
            meant = exactly(schema, name)
            if meant:
                yield engine, (meant,)


def speaking_of(name: str) -> list[tuple[str, str]]:
    """Return the keys whose text names a word, as those do whose value is JSON: engine and key."""
    named = re.compile(rf"\b{re.escape(name)}\b")
    return [
        (engine, key)
        for engine in PRODUCTS
        for key, entry in table(f"{engine}/keys").items()
        if name and named.search(entry["does"])
    ]


def _elsewhere() -> dict[str, str]:
    """Return the YAML's keys by names that they have in other places, as on the command line."""
    return dict(table("tensorrt-llm/misplaced"))


def all_names() -> list[str]:
    """Return every key of every engine, with dots."""
    return sorted({dotted(path) for engine in PRODUCTS for path in _paths(engine)})


def _paths(engine: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(path for schema in lines(engine).values() for path in schema.all_keys()))


def explain(engine: str, path: tuple[str, ...]) -> list[str]:
    """Return the lines about one key, the newest version's type and default first."""
    spoken = table(f"{engine}/keys") if "keys" in files(engine) else {}
    entry = spoken.get(dotted(path)) or spoken.get(f"no-{dotted(path)}", {})
    having = {name: schema.all_keys()[path] for name, schema in lines(engine).items() if path in schema.all_keys()}
    newest = list(having.values())[-1]
    return [
        f"{dotted(path)} ({PRODUCTS[engine]})",
        *([f"  {entry['does']}"] if entry else []),
        f"  type: {_type(newest)}",
        *_values(engine, path, having),
        *_defaults(engine, having),
        f"  versions: {_versions(engine, having)}",
        *_renames(engine, path),
        *_other_names(engine, path),
        f"  source: {newest.origin or entry.get('source', REFERENCE[engine])}",
    ]


def _type(key: Key) -> str:
    limits = [f"{sign} {key.bounds[bound]}" for bound, sign in _SIGNS.items() if bound in key.bounds]
    values = f", one of {', '.join(key.values)}" if key.values else ""
    return f"{key.type}{', '.join(['', *limits])}{values}{', or null' if key.nullable else ''}"


_SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


def _values(engine: str, path: tuple[str, ...], having: dict[str, Key]) -> Iterator[str]:
    """Yield the values that not every version with the key takes, or that one is not sure to take."""
    every = dict.fromkeys(value for key in having.values() for value in key.values)
    taking = {value: {name: key for name, key in having.items() if value in key.values} for value in every}
    some = [
        f"{value} {_versions(engine, names)}{_doubt(_unsure(engine, path, value))}"
        for value, names in taking.items()
        if len(names) < len(having)
    ]
    if some:
        yield f"  values: {'; '.join(some)}"


def _unsure(engine: str, path: tuple[str, ...], value: str) -> list[str]:
    """Return the versions that are not sure to take a value of a tag."""
    tags = {name: list(schema.unions.values()) for name, schema in lines(engine).items()}
    return [name for name, all_ in tags.items() if any(one.tag == path[-1] and value in one.unsure for one in all_)]


def _defaults(engine: str, having: dict[str, Key]) -> Iterator[str]:
    """Yield the default, and since when it is that one where it has changed."""
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
    return f"{'all that are known' if first == names[0] and not end else f'from {first} on'}{end}{_doubt(unsure)}"


def _doubt(unsure: list[str]) -> str:
    return f" (not sure for {', '.join(unsure)})" if unsure else ""


def _renames(engine: str, path: tuple[str, ...]) -> Iterator[str]:
    for meaning in meanings(engine):
        if any(form.key == path for form in meaning.forms):
            forms = [f"{_form(form)} from {form.since} on" for form in meaning.forms]
            yield f"  {meaning.meaning}: {', then '.join(forms)}"


def _form(form: Form) -> str:
    if form.key is None:
        return "left out"
    return dotted(form.key) if form.value is ANY else f"`{dotted(form.key)}: {as_yaml(form.value)}`"


def _other_names(engine: str, path: tuple[str, ...]) -> Iterator[str]:
    names = [name for name, key in _elsewhere().items() if key == dotted(path)]
    if engine == "tensorrt-llm" and names:
        yield f"  other names, not for the YAML: {', '.join(names)}"
