"""Prints the versions of pyinfra, paramiko and gevent, loads every module, and replaces what Rackwright replaces.

`scripts/newest` runs it in an environment of the newest versions. Exits with 1, and names each module and each name
that is not there.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, metadata

import rackwright
import rackwright_engines
from rackwright.adapter.patch import supported_version

ADAPTER = "rackwright.adapter"
STEPS = (
    f"{ADAPTER}.ssh.cooperation:cooperate",
    f"{ADAPTER}.ssh.client:use_patient_client",
    f"{ADAPTER}.ssh.passwords:refuse_passwords",
    f"{ADAPTER}.cheap_lookups:use_cheap_lookups",
    f"{ADAPTER}.terminal:tame_output",
    f"{ADAPTER}.terminal:say_when_nobody_answers",
)
"""What replaces names, in the order of a command that connects."""
RUN = {"host", "hostside", "deploys", "ansible_inventory", "__main__"}
"""Parts of the names of modules that do something when they are loaded, or want another Python."""


def main() -> int:
    """Print what is wrong; returns the exit status."""
    for name in ("pyinfra", "paramiko", "gevent"):
        print(f"newest: {name} {metadata.version(name)} (supported: {supported_version(name)})")
    wrong = [*_wrong(STEPS, _replace), *_wrong(modules(), import_module)]
    print("\n".join(wrong) or "newest: every module loads, and everything that is replaced is there")
    return 1 if wrong else 0


def modules() -> list[str]:
    """Names of all modules but those that hosts and images run, and files that pyinfra or Ansible's inventory runs."""
    packages = (rackwright, rackwright_engines)
    names = [
        one.name for package in packages for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [name for name in names if not RUN & set(name.split("."))]


def _replace(step: str) -> None:
    module, _, name = step.partition(":")
    getattr(import_module(module), name)()


def _wrong(names: list[str] | tuple[str, ...], attempt: Callable[[str], object]) -> Iterator[str]:
    for name in names:
        try:
            attempt(name)
        except Exception as error:
            yield f"newest: {name}: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
