"""Packages of another system with all that they need, by this machine's apt in a root of its own: nothing is installed.

The root knows no installed package, so that every dependency is in the bundle, whatever a host has already. apt itself
verifies the lists by the distribution's keyring, and what it names is fetched by its SHA-256.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.messages import RackwrightError

CODENAMES = {
    "debian-12": "bookworm",
    "debian-13": "trixie",
    "ubuntu-22.04": "jammy",
    "ubuntu-24.04": "noble",
}
"""Systems whose packages can be bundled."""
KEYRINGS = {
    "debian": ("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
    "ubuntu": ("/usr/share/keyrings/ubuntu-archive-keyring.gpg", "ubuntu-keyring"),
}
"""The distribution's keyring on this machine, and the package that has it."""
_SYSTEM = re.compile(r"(debian|ubuntu)-([0-9.]+)-(amd64|arm64)")
_URI = re.compile(r"'([^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})")
_SHA256 = re.compile(r"(?m)^SHA256: ([0-9a-f]{64})$")
SECONDS = 900


@dataclass(frozen=True)
class PackageFile:
    """One package file."""

    url: str
    file: str
    size: int
    sha256: str


def system_of(name: str) -> OperatingSystem:
    """Return a system by its name, as `debian-12-amd64`. Raises RackwrightError for another one."""
    found = _SYSTEM.fullmatch(name)
    codename = CODENAMES.get(name.rpartition("-")[0])
    if found is None or codename is None:
        systems = ", ".join(f"{one}-amd64" for one in CODENAMES)
        raise RackwrightError(f"--system {name} is unknown: {systems}, each also with arm64", code="RW3903")
    return OperatingSystem(found[1], (), codename, found[2], found[3])


def archives(system: OperatingSystem, keyring: Path) -> list[str]:
    """Return the lines of a system's own sources, verified by a keyring."""
    name = system.codename
    signed = f"[arch={system.architecture} signed-by={keyring}]"
    if system.id == "debian":
        base = "http://deb.debian.org/debian"
        security = f"deb {signed} {base}-security {name}-security main"
        return [f"deb {signed} {base} {name} main", f"deb {signed} {base} {name}-updates main", security]
    ours = system.architecture == "amd64"
    base = "http://archive.ubuntu.com/ubuntu" if ours else "http://ports.ubuntu.com/ubuntu-ports"
    return [f"deb {signed} {base} {name}{pocket} main universe" for pocket in ("", "-updates", "-security")]


@dataclass(frozen=True)
class AptRoot:
    """apt's folder for one system."""

    folder: Path
    system: OperatingSystem
    ways: Mapping[str, str] = field(default_factory=dict)
    """apt's options for proxy and authority."""

    def lay(self, sources: Sequence[str], preferences: str = "") -> None:
        """Make the root, and fetch the lists. Raises RackwrightError where apt cannot."""
        if shutil.which("apt-get") is None:
            text = "packages are bundled by apt, which this machine does not have; next: on Debian or Ubuntu"
            raise RackwrightError(f"{text}, or without --system", code="RW3913")
        for name in (
            "etc/preferences.d",
            "etc/sources.d",
            "etc/apt.conf.d",
            "state/lists/partial",
            "cache/archives/partial",
        ):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "state/status").write_text("")
        (self.folder / "etc/sources.list").write_text("".join(f"{row}\n" for row in sources))
        (self.folder / "etc/preferences").write_text(preferences)
        self._run("apt-get", "-qq", "update")

    def packages(self, names: Sequence[str]) -> list[PackageFile]:
        """Return the files of packages and of all that they need. Raises RackwrightError where some are missing."""
        output = self._run("apt-get", "-qq", "-y", "--no-install-recommends", "--print-uris", "install", *names)
        return [
            PackageFile(url, file.replace("%3a", "_"), int(size), sha256)
            for url, file, size, sha256 in _URI.findall(output)
        ]

    def versions(self, names: re.Pattern[str]) -> dict[str, list[str]]:
        """Return the versions of the packages whose names begin so, the newest first."""
        matching = [name for name in self._run("apt-cache", "pkgnames").split() if names.match(name)]
        found: dict[str, list[str]] = {}
        for row in self._run("apt-cache", "madison", *matching).splitlines() if matching else ():
            name, version, _ = (part.strip() for part in row.split("|", 2))
            found.setdefault(name, []).append(version)
        return found

    def records(self, packages: Mapping[str, PackageFile]) -> dict[str, str]:
        """Return what apt's list says of each package, by SHA-256, of files in the same folder."""
        names = list(dict.fromkeys(_name(one) for one in packages.values()))
        records = self._run("apt-cache", "show", *names, check=False).split("\n\n")
        found = {sha256: record for record in records for sha256 in _SHA256.findall(record)}
        if lacking := [one.file for sha256, one in packages.items() if sha256 not in found]:
            raise RackwrightError(
                f"apt has no record of {', '.join(lacking[:3])}; next: the same command", code="RW3913"
            )
        return {sha256: _at(found[sha256], one.file) for sha256, one in packages.items()}

    def _run(self, *words: str, check: bool = True) -> str:
        settings = {
            "Dir::Etc": self.folder / "etc",
            "Dir::Etc::sourcelist": self.folder / "etc/sources.list",
            "Dir::Etc::sourceparts": self.folder / "etc/sources.d",
            "Dir::Etc::preferences": self.folder / "etc/preferences",
            "Dir::Etc::preferencesparts": self.folder / "etc/preferences.d",
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "state/status",
            "Dir::Cache": self.folder / "cache",
            "APT::Architecture": self.system.architecture,
            "APT::Architectures": self.system.architecture,
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::ForceHash": "SHA256",
            "Acquire::Retries": 3,
            **self.ways,
        }
        options = [f"-o{key}={value}" for key, value in settings.items()]
        done = subprocess.run(
            [words[0], *options, *words[1:]], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if check and done.returncode:
            why = " ".join(row for row in done.stderr.splitlines() if row.startswith(("E:", "The following")))[:500]
            text = f"{words[0]} for {self.system.id} {self.system.version}: {why or 'it ended with an error'}"
            raise RackwrightError(f"{text}; next: the same command again", code="RW3913")
        return done.stdout


def _name(package: PackageFile) -> str:
    return package.file.partition("_")[0]


def _at(record: str, file: str) -> str:
    """Return a record of a file in the folder of its list."""
    return f"{re.sub(r'(?m)^Filename: .*$', f'Filename: {file}', record.strip())}\n"
