"""The command `scripts/engine-news`: newest releases by the package index, or those of files on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rackwright.messages import RackwrightError, SettingsError
from rackwright.tables import shown_width
from rackwright_engines.data import PRODUCTS
from rackwright_engines.options.schema import all_versions, line_for
from rackwright_engines.options.schema import lines as known_lines
from rackwright_engines.version import not_before, parse_version
from scripts.engine_data.source import newest
from scripts.engine_news.news import DONE, FAILED, NEWS, News, lines, news, page
from scripts.engine_news.release import TRTLLM, Release, fetched_tree, given_release, known_release, read_release
from scripts.engine_news.tree import SourceTree

CACHE = Path.home() / ".cache" / "rackwright" / "engine-data"
NO_SOURCE = "the package index has no source of it, so nothing of it was read; next: {next}"
NEXT_TRTLLM = (
    "make newest TRTLLM=FOLDER with a git repository of it; or PIP_EXTRA_INDEX_URL=https://pypi.nvidia.com make "
    "newest; or scripts/engine-news --from FILE with that version's trtllm-serve-config.schema.json"
)
EPILOG = """\
exit status: 0 nothing is new, and all that the product rests on is there; 1 something could not be read; 2 a newer
release, or something that the product rests on is gone or changed
"""


def main(words: Sequence[str] | None = None) -> int:
    """Print what is new; returns the exit status."""
    args = _parser().parse_args(words)
    status, every = DONE, list[News]()
    try:
        since = dict(_since(args.since))
        for one in _given(args.file, since, args.cache) if args.file else _indexed(args, since):
            every.append(one)
            print("\n".join(lines(one, shown_width(), args.diff)), end="\n\n", flush=True)
            status = FAILED if FAILED in (status, one.status) else max(status, one.status)
        if args.page:
            args.page.write_text(page(every, datetime.now(UTC).strftime("%Y-%m-%d")), encoding="utf-8")
    except (RackwrightError, OSError) as error:
        print(f"engine-news: {error}", file=sys.stderr)
        return FAILED
    print(f"engine-news: {SAYS[status]}")
    return status


SAYS = {
    DONE: "nothing is new, and all that the product rests on is there",
    FAILED: "a newer release could not be read",
    NEWS: "there is something to look at",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="engine-news", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engines", nargs="*", choices=[*PRODUCTS, []], metavar="ENGINE", help="default: all three")
    source = (
        "an archive of the package index, REPOSITORY@TAG of a git repository here, TensorRT-LLM's source tree or its "
        "schema; may be repeated: two releases of an engine are compared with each other; no index is asked"
    )
    parser.add_argument("--from", dest="file", action="append", type=Path, metavar="FILE", help=source)
    tags = "a git repository of TensorRT-LLM here, for releases of which the index has no source: their tags are read"
    parser.add_argument("--trtllm", type=Path, metavar="FOLDER", help=tags)
    since = "the known release to compare with, such as vllm=0.32.0; default: the newest that the data know"
    parser.add_argument("--since", action="append", default=[], metavar="ENGINE=VERSION", help=since)
    parser.add_argument("--diff", action="store_true", help="show conditions of the engine's code that differ")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page of the documentation as well")
    parser.add_argument("--cache", type=Path, default=CACHE, metavar="FOLDER", help=f"sources (now: {CACHE})")
    return parser


def _since(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in words:
        engine, _, version = text.partition("=")
        if engine not in PRODUCTS or version not in all_versions(engine):
            raise SettingsError(f"--since {text}: must be ENGINE=VERSION with a version that the data know exactly")
        yield engine, version


def newest_known(engine: str) -> str:
    """Return the newest version that the data know."""
    return all_versions(engine)[-1]


def _indexed(args: argparse.Namespace, since: dict[str, str]) -> Iterator[News]:
    """Yield the news of the newest releases in the package index."""
    cache: Path = args.cache
    for engine in args.engines or PRODUCTS:
        candidates = any("rc" in name for name in known_lines(engine))
        latest = newest(engine, candidates)
        old = since.get(engine, newest_known(engine))
        if not_before(old, latest):
            latest = old
        tree = fetched_tree(engine, latest, cache)
        if tree is None and args.trtllm:
            yield _of_repository(args.trtllm, old, latest, cache)
        elif tree is None:
            yield _unread(engine, old, latest)
        else:
            yield news(_old(engine, old, cache), read_release(engine, latest, tree.folder))


def _of_repository(repository: Path, old: str, latest: str, cache: Path) -> News:
    """Return the news of TensorRT-LLM by the tags of a repository; says why where it lacks one of them."""
    try:
        before, new = (given_release(Path(f"{repository}@v{version}"), cache) for version in (old, latest))
    except SettingsError as error:
        return News(TRTLLM, old, latest, unread=str(error))
    return news(before, new)


def _unread(engine: str, old: str, latest: str) -> News:
    ways = NEXT_TRTLLM if engine == TRTLLM else f"scripts/engine-news --from FILE with {engine} {latest}'s archive"
    return News(engine, old, latest, unread=NO_SOURCE.format(next=ways))


def _old(engine: str, version: str, cache: Path) -> Release:
    return known_release(engine, version, fetched_tree(engine, version, cache))


def _given(files: Sequence[Path], since: dict[str, str], cache: Path) -> Iterator[News]:
    """Yield the news of releases on this machine: of two of an engine, the older one is what is compared with."""
    by_engine: dict[str, list[Release]] = {}
    for file in files:
        one = given_release(file, cache)
        by_engine.setdefault(one.engine, []).append(one)
    for engine, releases in by_engine.items():
        *older, new = sorted(releases, key=lambda one: parse_version(one.version) or ())
        yield news(older[0] if older else _cached(engine, since.get(engine, newest_known(engine)), cache), new)


def _cached(engine: str, version: str, cache: Path) -> Release:
    """Return a known release with its sources where they were read before; no index is asked."""
    folder = cache / engine / version
    exact = line_for(engine, version)[1]
    return known_release(engine, version, SourceTree(folder) if exact and folder.is_dir() else None)
