"""Runs a site's deploy.py once a host without a connection, to learn what it declares.

Our own steps note themselves here, in this pass and in a real run alike. Operations of the site are listed by name and
not run: pyinfra evaluates nothing as long as nobody asks it to look for changes.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from pyinfra import host as current_host
from pyinfra import logger
from pyinfra.api import Config, Inventory, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state

from rackwright.declared import Declared, problems_of
from rackwright.errors import SettingsError
from rackwright.importing import importing_from
from rackwright.settings.load import InventoryHost
from rackwright.settings.model import HostSettings


@dataclass
class _Noted:
    """What one host's deploy has called so far."""

    steps: list[str] = field(default_factory=list)
    ours: set[int] = field(default_factory=set)
    """Places of our own operations among all of the host's."""


_known: dict[str, Declared] = {}
_noted: WeakKeyDictionary[State, dict[str, _Noted]] = WeakKeyDictionary()


@contextmanager
def noted(step: str) -> Iterator[None]:
    """Note a step of ours for the current host; the pyinfra operations called inside belong to it."""
    _of(current_host.state, current_host.name).steps.append(step)
    with ours():
        yield


@contextmanager
def ours() -> Iterator[None]:
    """Mark the pyinfra operations called inside as ours, and none of the site's own."""
    found = _of(current_host.state, current_host.name)
    begin = len(current_host.op_hash_order)
    yield
    found.ours.update(range(begin, len(current_host.op_hash_order)))


def declared_of(host: Host) -> Declared:
    """What deploy.py declares for a host of this run: all of it, also while it is still being called."""
    return _known.get(host.name) or _noted_so_far(host)


def steps_known(host: Host) -> tuple[str, ...]:
    """The steps of a host, when all of them are known before the first runs; none in a deploy of somebody else's."""
    found = _known.get(host.name)
    return found.steps if found else ()


def remember(declared: Mapping[str, Declared]) -> None:
    """Keep, for this process's one run, what its deploy file declares."""
    _known.update(declared)


def _noted_so_far(host: Host) -> Declared:
    found = _of(host.state, host.name)
    names = [host.state.op_meta[op].names for number, op in enumerate(host.op_hash_order) if number not in found.ours]
    return Declared(tuple(found.steps), tuple(name for several in names for name in sorted(several)))


def _of(state: State, host: str) -> _Noted:
    return _noted.setdefault(state, {}).setdefault(host, _Noted())


def declared_by(root: Path, hosts: Sequence[InventoryHost]) -> dict[str, Declared]:
    """What a site's deploy.py declares, by host. Raises SettingsError with every problem at once."""
    deploy = root / "deploy.py"
    if not deploy.exists():
        raise SettingsError(f"{deploy} is not there, and says which steps there are; next: rackwright init DIR")
    with importing_from(root):
        return check_steps(deploy, hosts)


def check_steps(deploy: Path, hosts: Sequence[InventoryHost]) -> dict[str, Declared]:
    """What a deploy file declares, by host. Raises SettingsError when it cannot be carried out as it stands."""
    found = declare(deploy, hosts)
    _refuse_wrong(deploy, found, {entry.name: entry.settings for entry in hosts})
    return found


def _refuse_wrong(deploy: Path, declared: Mapping[str, Declared], settings: Mapping[str, HostSettings]) -> None:
    wrong: dict[str, list[str]] = {}
    for host, own in declared.items():
        for text in problems_of(own, settings[host]):
            wrong.setdefault(text, []).append(host)
    if wrong:
        told = [f"  {text} ({', '.join(hosts)})" for text, hosts in wrong.items()]
        raise SettingsError("\n".join([f"{deploy}: its steps cannot be carried out; nothing was done:", *told]))


def declare(deploy: Path, hosts: Sequence[InventoryHost]) -> dict[str, Declared]:
    """What a deploy file declares for each host, by name. Nothing is connected, nothing is run.

    Raises SettingsError when the file cannot be run, or asks a host while it declares.
    """
    code = _compiled(deploy)
    inventory = Inventory(([(entry.name, entry.data) for entry in hosts], {}))
    state = State(inventory, Config(), check_for_changes=False)
    state.current_deploy_filename = str(deploy)
    state.set_stage(StateStage.Prepare)
    with ctx_state.use(state), ctx_inventory.use(inventory), ctx_config.use(state.config), _quiet():
        return {host.name: _declare(code, deploy, host) for host in inventory}


def _compiled(deploy: Path) -> Any:
    try:
        return compile(deploy.read_bytes(), str(deploy), "exec")
    except SyntaxError as error:
        raise SettingsError(f"{deploy}:{error.lineno}: {error.msg}: {(error.text or '').strip()}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{deploy}: {error}") from None


def _declare(code: Any, deploy: Path, host: Host) -> Declared:
    host.get_fact = host.connect = _refuse  # type: ignore[method-assign]
    with ctx_host.use(host):
        try:
            exec(code, {"__file__": str(deploy), "__name__": "__main__"})
        except (PyinfraError, SettingsError) as error:
            raise SettingsError(f"{deploy}: {host.name}: {error}") from None
        except Exception as error:
            raise SettingsError(f"{deploy}: {host.name}: {type(error).__name__}: {error}") from error
        return _noted_so_far(host)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise SettingsError(
        "it asks the host for a fact while it declares its steps, and a plan must know them without a connection; "
        "next: ask inside an operation of your own, or decide by host.data"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """What a deploy file prints while its steps are only declared would be printed twice."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
