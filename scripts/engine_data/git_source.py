"""Reads an engine's Python files out of a git repository on this machine, at a tag or a commit.

Nothing is checked out, so that a repository without a work tree will do, and nothing of the engine runs.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rackwright.messages import SettingsError
from rackwright_engines.data import PRODUCTS
from rackwright_engines.version import bare, parse_version
from scripts.engine_data.source import NoSourceError, kept_files, package_of, save

ABOVE = {"vllm": "", "sglang": "python/", "tensorrt-llm": ""}
"""The folder of a repository in which an engine's package is."""
VERSION = re.compile(r"""__version__\s*=\s*["']([^"']+)["']""")
SHORT = 8
"""Letters of a commit that tell two sources of the same version apart."""


def sources_of_git(repository: Path, name: str, cache: Path) -> tuple[str, str, Path]:
    """Return the engine and version of a repository's tag, branch or commit, and the folder with its Python files.

    A tag that is a version says it. Of other commits the sources do, and the commit is written behind it: `1.4.0+9f3c`.
    Raises SettingsError for a folder, or a name in it, without an engine's sources.
    """
    if not repository.is_dir():
        raise SettingsError(f"{repository} is not a folder")
    tagged = _commit(repository, f"refs/tags/{name}") if parse_version(name) else ""
    commit = tagged or _commit(repository, name)
    if not commit:
        raise SettingsError(f"{repository} has no {name}; next: git -C {repository} tag --list, or fetch it there")
    engine, files = _engine_files(repository, commit, name)
    version = bare(name) if tagged else _version_in(repository, commit, name, engine)
    folder = cache / engine / f"{bare(version)}+{commit[:SHORT]}"
    if not folder.is_dir():
        save(dict(_contents(repository, commit, ABOVE[engine], files)), folder)
    return engine, version, folder


def _commit(repository: Path, name: str) -> str:
    """Return the commit of a name; empty for an unknown one."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return _git(repository, words, missing=True).decode().strip()


def _engine_files(repository: Path, commit: str, name: str) -> tuple[str, list[str]]:
    """Return the engine whose package a commit has, and the package's files that are kept, by their path below it."""
    every = _git(repository, ("ls-tree", "-r", "-z", "--name-only", commit)).decode("utf-8", "replace").split("\0")
    for engine, above in ABOVE.items():
        wanted = kept_files(engine)
        inside = [path.removeprefix(above) for path in every if path.startswith(f"{above}{package_of(engine)}/")]
        if files := [path for path in inside if wanted.fullmatch(path)]:
            return engine, files
    raise NoSourceError(f"{repository} at {name} has no Python files of {', '.join(PRODUCTS.values())}")


def _version_in(repository: Path, commit: str, name: str, engine: str) -> str:
    file = f"{commit}:{ABOVE[engine]}{package_of(engine)}/version.py"
    found = VERSION.search(_git(repository, ("show", file), missing=True).decode("utf-8", "replace"))
    if found is None or not parse_version(found[1]):
        raise SettingsError(
            f"{repository} at {name}: its sources do not say their version; next: a tag, such as {repository}@v0.33.0"
        )
    return f"{found[1]}+{commit[:SHORT]}"


def _contents(repository: Path, commit: str, above: str, files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a commit with their content."""
    words = ("archive", "--format=tar", commit, "--", *(f"{above}{path}" for path in files))
    with tarfile.open(fileobj=io.BytesIO(_git(repository, words))) as tar:
        for member in tar:
            if member.isreg() and (content := tar.extractfile(member)):
                yield member.name.removeprefix(above), content.read()


def _git(repository: Path, words: Sequence[str], missing: bool = False) -> bytes:
    """Return what git prints. missing: True where git's refusal says only that something is not there.

    Raises SettingsError in git's own words.
    """
    variables = {**os.environ, "GIT_LITERAL_PATHSPECS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=False, env=variables)
    except FileNotFoundError:
        raise SettingsError(f"{repository} cannot be read: git is not installed") from None
    if done.returncode and not (missing and b"not a git repository" not in done.stderr):
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"git {words[0]} failed"]
        raise SettingsError(f"{repository} cannot be read: {lines[0]}")
    return b"" if done.returncode else done.stdout
