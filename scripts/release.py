"""Makes a release in dist/: wheels and source archives, a list of what they need, checksums and signatures.

`make release` runs it. It uploads nothing. Each archive is built twice, from two copies of the commit, and must have
the same bytes; the wheel then works in an environment of its own, from whose packages the list is made.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import sbom

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist"
PACKAGES = (".", "packages/bench", "packages/lab")
"""The projects that are released, each with a wheel and a source archive."""
PUBLIC_KEY = ROOT / "minisign.pub"
SUMS = "SHA256SUMS"
KEY = "RACKWRIGHT_RELEASE_KEY"
"""The variable that names minisign's secret key."""
TRIED = (
    ("rackwright", "--version"),
    ("rackwright", "explain", "RW0705"),
    ("rackwright", "schema"),
    ("pyinfra", "--version"),
)
"""What the wheel must do in its own environment."""


class ReleaseError(Exception):
    """Why nothing can be released, and the next command."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the release; returns the exit status."""
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("--unsigned", action="store_true", help="make all of it but the signatures")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to write to, emptied before")
    args = parser.parse_args(words)
    try:
        for row in release(args.out.absolute(), "" if args.unsigned else secret_key()):
            print(row)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def release(out: Path, key: str) -> list[str]:
    """Make the release of the commit that is checked out; returns its files with their sums."""
    version, epoch = version_of((ROOT / "rackwright/__init__.py").read_text()), commit_time()
    refuse_unfit(version, _run("git", "status", "--porcelain"), (ROOT / "CHANGELOG.md").read_text())
    with tempfile.TemporaryDirectory(prefix="rackwright-release-") as folder:
        first, second = built(Path(folder) / "first", epoch), built(Path(folder) / "another", epoch, TZ="Asia/Tokyo")
        refuse_unlike(first, second)
        needs = tried(Path(folder) / "alone", first, version, epoch)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for path in first.values():
            shutil.copy(path, out)
    (out / f"rackwright-{version}.cdx.json").write_text(needs)
    rows = sums_of(out)
    (out / SUMS).write_text("".join(f"{row}\n" for row in rows))
    if key:
        sign(out, key, f"rackwright {version}, commit {_run('git', 'rev-parse', 'HEAD').strip()}")
    return rows


def refuse_unfit(version: str, status: str, changelog: str) -> None:
    """Raise ReleaseError for changes that are in no commit, and for a version of which the changelog says nothing."""
    if status.strip():
        raise ReleaseError(f"this tree has changes that are in no commit:\n{status}next: git commit, or git stash")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no line `## [{version}] - YYYY-MM-DD`; next: name the section so")


def version_of(text: str) -> str:
    """Return the version that a module's text sets."""
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise ReleaseError("rackwright/__init__.py sets no __version__")
    return found[1]


def commit_time() -> int:
    """Return the commit's time, which all files of an archive have."""
    return int(_run("git", "log", "-1", "--format=%ct"))


def built(folder: Path, epoch: int, **environment: str) -> dict[str, Path]:
    """Build every package from a copy of the commit; returns the archives by name."""
    source, out = folder / "source", folder / "built"
    source.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", source], stdin=archive.stdout, check=True)
    if archive.wait():
        raise ReleaseError("git archive HEAD failed")
    for package in PACKAGES:
        build = (sys.executable, "-m", "hatchling", "build", "--directory", str(out))
        _run(*build, cwd=source / package, SOURCE_DATE_EPOCH=str(epoch), **environment)
    return {path.name: path for path in sorted(out.iterdir())}


def refuse_unlike(first: Mapping[str, Path], second: Mapping[str, Path]) -> None:
    """Raise ReleaseError unless two builds have the same files with the same bytes."""
    if first.keys() != second.keys():
        raise ReleaseError(f"two builds have different files: {', '.join(sorted(first.keys() ^ second.keys()))}")
    unlike = [name for name, path in first.items() if path.read_bytes() != second[name].read_bytes()]
    if unlike:
        raise ReleaseError(f"two builds of {', '.join(unlike)} have different bytes; next: diffoscope FIRST SECOND")


def tried(folder: Path, archives: Mapping[str, Path], version: str, epoch: int) -> str:
    """Install the product's wheel alone with the locked packages, run it, and return the list of what it needs."""
    wheel = archives[f"rackwright-{version}-py3-none-any.whl"]
    _run(sys.executable, "-m", "uv", "venv", "--quiet", str(folder))
    install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(folder / "bin/python"))
    _run(*install, "--constraint", str(ROOT / "requirements/dev.txt"), str(wheel))
    for program, *words in TRIED:
        _run(str(folder / "bin" / program), *words, cwd=folder)
    packages, content = sbom.environment(folder), {wheel.name: wheel.read_bytes()}
    return sbom.text(sbom.document("rackwright", packages, content, epoch))


def sums_of(folder: Path) -> list[str]:
    """Return a line a file, as `sha256sum --check` reads it."""
    return [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(folder.iterdir())]


def secret_key() -> str:
    """Return the path of minisign's secret key. Raises ReleaseError without one."""
    path = Path(os.environ.get(KEY) or "~/.minisign/minisign.key").expanduser()
    if not path.is_file():
        raise ReleaseError(
            f"{path} is missing, the secret key that signs a release; next: export {KEY}=FILE, or once: "
            f"$(scripts/minisign)/bin/minisign -G -p minisign.pub -s {path}; or, unsigned: make release UNSIGNED=1"
        )
    if not PUBLIC_KEY.is_file():
        raise ReleaseError(f"{PUBLIC_KEY} is missing, by which users verify a release; next: commit it")
    return str(path)


def sign(folder: Path, key: str, comment: str) -> None:
    """Sign each file, and hold the signatures against the public key of the checkout.

    minisign asks for the key's password itself, on the terminal.
    """
    program = shutil.which("minisign") or f"{_run(str(ROOT / 'scripts/minisign')).strip()}/bin/minisign"
    files = sorted(path.name for path in folder.iterdir())
    subprocess.run(
        [program, "-S", "-s", key, "-t", comment, "-m", *files], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    for name in files:
        _run(program, "-V", "-q", "-p", str(PUBLIC_KEY), "-m", name, cwd=folder)


def _run(*words: str, cwd: Path = ROOT, **environment: str) -> str:
    """Return what a command prints. Raises ReleaseError with the end of its errors when it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(
            f"{' '.join(words)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
