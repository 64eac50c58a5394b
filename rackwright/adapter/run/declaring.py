"""Runs a site's deploy.py without a connection, to learn what it declares: once for hosts that it cannot tell apart.

Our own steps note themselves here, in this pass and in a real run alike. Operations of the site are listed by name and
not run: pyinfra evaluates nothing until it is asked to look for changes.
"""

from __future__ import annotations

import ast
import io
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn

from pyinfra import host as current_host
from pyinfra import logger
from pyinfra.api import Config, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state

from rackwright.adapter.patch import patch
from rackwright.adapter.run.current_run import current_state, inventory_of, state_beside
from rackwright.adapter.run.importing import importing_from
from rackwright.adapter.run_context import part_of
from rackwright.concerns.deploy_steps import Declared, StepProblem, counting, problems_of
from rackwright.loading.files import refuse_no_file
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import overlaid, standalone
from rackwright.loading.validate import Known
from rackwright.messages import RackwrightError, SettingsError, coded
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.origin import Origin


@dataclass
class _Noted:
    """The calls that one host's deploy has made."""

    steps: list[str] = field(default_factory=list)
    ours: set[int] = field(default_factory=set)
    """Places of our own operations among all of the host's."""
    arguments: dict[str, Any] = field(default_factory=dict)
    implied: dict[str, str] = field(default_factory=dict)


@dataclass
class _Deploy:
    """The declarations of a run's deploy file, by host."""

    by_host: dict[str, Declared] = field(default_factory=dict)
    """All of it, from before the run."""
    noted: dict[str, _Noted] = field(default_factory=dict)
    declares_only: bool = False
    """Nothing is done in this run but declaring."""


WITH_SETTINGS = ("site", "docker", "firewall", "registry", "encodings", "models", "endpoint")
"""Steps that take settings as arguments."""
PLAIN = (
    "the inventory is a plain one of pyinfra's: it does not call build(), so group_vars/ and host_vars/ are not read; "
    'next, in the inventory: globals().update(build(__file__, {"GROUP": ["HOST"]})), as inventory/b200.py does'
)


@contextmanager
def noted(step: str) -> Iterator[None]:
    """Note a Rackwright step for the current host; the pyinfra operations called inside belong to it."""
    _learn(current_host)
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


def say_settings(section: str, arguments: Mapping[str, Any]) -> None:
    """Note what a call says of its own settings. section: its section; empty for keys of the top level."""
    if arguments:
        _learn(current_host)
        arguments_of = _of(current_host.state, current_host.name).arguments
        arguments_of.update({section: {**arguments_of.get(section, {}), **arguments}} if section else arguments)


def implies(caller: str, step: str) -> bool:
    """Return whether a step must bring another one, because the current host's deploy has not called that before."""
    found = _of(current_host.state, current_host.name)
    if step in found.steps:
        return False
    found.implied[step] = caller
    return True


def _learn(host: Host) -> None:
    """Declare the file of a foreign deploy first, whose inventory does not call build(), for this host.

    Facts that it asks for on the way are the host's own: it is connected by now.
    """
    deploy = host.state.current_deploy_filename
    run = part_of(host.state, _Deploy)
    if host.name in run.by_host or run.declares_only or not deploy:
        return
    real = host.state.inventory.get_host(host.name)
    root = Path(deploy).resolve().parent
    with importing_from(root):
        found = declare(Path(deploy), [(host.name, real.data.dict())], ask=real.get_fact)
    settings = standalone(host.name, found[host.name].arguments, Origin(deploy), root).settings
    if "endpoint" in found[host.name] and not settings.all_endpoints and (root / "group_vars").is_dir():
        raise SettingsError(f"{deploy}: {PLAIN}", code="RW1317")
    _refuse_wrong(Path(deploy), found, {host.name: settings})
    run.by_host[host.name] = found[host.name]


def is_declaring(host: Host) -> bool:
    """Return whether its deploy file is only run to learn what it declares."""
    return part_of(host.state, _Deploy).declares_only


def declared_of(host: Host) -> Declared:
    """Return what deploy.py declares for a host of this run: all of it, also while it is still being called."""
    return part_of(host.state, _Deploy).by_host.get(host.name) or _noted_so_far(host)


def steps_known(host: Host) -> tuple[str, ...]:
    """Return the steps of a host, when all are known before the first runs; none in a foreign deploy."""
    found = part_of(host.state, _Deploy).by_host.get(host.name)
    return found.steps if found else ()


def counts(step: str) -> bool:
    """Return False for a step that deploy.py calls for the current host, and that has no meaning there."""
    found = part_of(current_host.state, _Deploy).by_host.get(current_host.name)
    return found is None or step not in found.silent


def remember(declared: Mapping[str, Declared]) -> None:
    """Keep what the deploy file of the current run declares."""
    part_of(current_state(), _Deploy).by_host.update(declared)


def _noted_so_far(host: Host) -> Declared:
    found = _of(host.state, host.name)
    names = [host.state.op_meta[op].names for number, op in enumerate(host.op_hash_order) if number not in found.ours]
    others = tuple(name for several in names for name in sorted(several))
    return Declared(tuple(found.steps), others, dict(found.arguments), dict(found.implied))


def _of(state: State, host: str) -> _Noted:
    return part_of(state, _Deploy).noted.setdefault(host, _Noted())


def declared_by(root: Path, hosts: Sequence[InventoryHost]) -> dict[str, Declared]:
    """Return what a site's deploy.py declares, by host. Raises SettingsError with every problem at once."""
    deploy = root / "deploy.py"
    if not deploy.exists():
        raise SettingsError(
            f"{deploy} is missing, which calls the steps of a deploy; next: rackwright init DIR, and copy its "
            "deploy.py",
            code="RW1302",
        )
    with importing_from(root):
        return check_steps(deploy, hosts)


def check_steps(deploy: Path, hosts: Sequence[InventoryHost]) -> dict[str, Declared]:
    """Return what a deploy file declares, by host. Raises SettingsError when it cannot be carried out as is."""
    found = declare(deploy, [(entry.name, entry.data) for entry in hosts])
    settings = {entry.name: entry.settings for entry in overlay_all(hosts, found, deploy)}
    counting_steps = _counting(found, settings)
    _refuse_wrong(deploy, counting_steps, settings)
    return counting_steps


def _counting(declared: Mapping[str, Declared], settings: Mapping[str, HostSettings]) -> dict[str, Declared]:
    """Return the steps of each host that count there; hosts that share them and their settings still do."""
    found: dict[tuple[int, int], Declared] = {}
    for host, calls in declared.items():
        alike = id(calls), id(settings[host])
        if alike not in found:
            found[alike] = counting(calls, settings[host])
    return {host: found[id(calls), id(settings[host])] for host, calls in declared.items()}


def with_arguments(root: Path, hosts: Sequence[InventoryHost]) -> list[InventoryHost]:
    """Return hosts with what the site's deploy.py says as arguments; it only runs where any call there says something.

    A broken file blocks only the commands that need it: a status or a rollback uses the files alone.
    """
    deploy = root / "deploy.py"
    if not deploy.exists() or not any(says_something(file) for file in (deploy, *(root / "tasks").glob("*.py"))):
        return list(hosts)
    try:
        with importing_from(root):
            found = declare(deploy, [(entry.name, entry.data) for entry in hosts])
        return overlay_all(hosts, found, deploy)
    except SettingsError as error:
        logger.warning(f"{error}\nso its arguments are not known, and the settings in files count alone")
        return list(hosts)


def says_something(file: Path) -> bool:
    """Return whether a file calls one of our operations by name, with keyword arguments of its own."""
    refuse_no_file(file)
    try:
        calls = (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Call))
    except (SyntaxError, ValueError, OSError):
        return True
    return any(
        _name(call) in WITH_SETTINGS and any(keyword.arg not in (None, "wait") for keyword in call.keywords)
        for call in calls
    )


def _name(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))


def overlay_arguments(
    entry: InventoryHost, declared: Declared, deploy: Path, checked: Known | None = None
) -> InventoryHost:
    """Return a host with its deploy file's arguments applied. Raises InvalidSettingsError with every problem at once.

    checked: settings of other hosts that were found right.
    """
    return overlaid(entry, declared.arguments, Origin(str(deploy)), checked)


def overlay_all(hosts: Sequence[InventoryHost], declared: Mapping[str, Declared], deploy: Path) -> list[InventoryHost]:
    """Do the same for hosts of one site; a host of which nothing is declared stays unchanged."""
    checked = Known(hosts[0].root) if hosts else None
    return [
        overlay_arguments(entry, declared[entry.name], deploy, checked) if entry.name in declared else entry
        for entry in hosts
    ]


def _refuse_wrong(deploy: Path, declared: Mapping[str, Declared], settings: Mapping[str, HostSettings]) -> None:
    wrong: dict[StepProblem, list[str]] = {}
    found: dict[tuple[int, int], list[StepProblem]] = {}
    for host, calls in declared.items():
        alike = id(calls), id(settings[host])  # shared by hosts with equal settings
        if alike not in found:
            found[alike] = problems_of(calls, settings[host])
        for problem in found[alike]:
            wrong.setdefault(problem, []).append(host)
    if wrong:
        problems = [f"  {coded(*problem)} ({', '.join(hosts)})" for problem, hosts in wrong.items()]
        raise SettingsError(
            "\n".join([f"{deploy}: its steps cannot be carried out; nothing was done:", *problems]), code="RW1303"
        )


def declare(
    deploy: Path, hosts: Sequence[tuple[str, Mapping[str, Any]]], ask: Callable[..., Any] | None = None
) -> dict[str, Declared]:
    """Return what a deploy file declares for each host, by name. Nothing is run.

    hosts: name and data of each. ask: answers what the file asks a host for; without, nothing is connected.
    Raises SettingsError when the file cannot be run, or asks a host that cannot be asked.
    """
    code = _compiled(deploy)
    if not hosts:  # pyinfra makes no State of none
        return {}
    # Imported late: who only looks at hosts loads inventories too, and declares nothing.
    from rackwright.adapter.run.host_reads import alike_to  # noqa: PLC0415

    alike = alike_to(deploy, hosts)
    inventory = inventory_of([hosts[first] for first, _ in alike])
    state = state_beside(inventory, Config(), check_for_changes=False)
    part_of(state, _Deploy).declares_only = True
    state.current_deploy_filename = str(deploy)
    state.set_stage(StateStage.Prepare)
    with ctx_state.use(state), ctx_inventory.use(inventory), ctx_config.use(state.config), _quiet():
        declared = {host.name: _declare(code, deploy, host, ask or _refuse) for host in inventory}
    found = {name: declared[hosts[first][0]] for first, names in alike for name in names}
    return {name: found[name] for name, _ in hosts}


def alike_hosts(deploy: Path, hosts: Sequence[InventoryHost]) -> list[list[InventoryHost]]:
    """Return lots of hosts that have the same settings and that a deploy file cannot tell apart."""
    from rackwright.adapter.run.host_reads import alike_to  # noqa: PLC0415 - as in `declare`

    by_name, lots = {host.name: host for host in hosts}, dict[tuple[int, int], list[InventoryHost]]()
    for first, names in alike_to(deploy, [(host.name, host.data) for host in hosts]):
        for name in names:
            lots.setdefault((first, id(by_name[name].settings)), []).append(by_name[name])
    return list(lots.values())


def _compiled(deploy: Path) -> Any:
    refuse_no_file(deploy)
    try:
        return compile(deploy.read_bytes(), str(deploy), "exec")
    except SyntaxError as error:
        row, text = f":{error.lineno}" if error.lineno else "", (error.text or "").strip()
        raise SettingsError(f"{deploy}{row}: {error.msg}{f': {text}' if text else ''}", code="RW1304") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{deploy}: {error}", code="RW1304") from None


def _line_of(error: Exception, deploy: Path) -> int:
    """Return the line of deploy.py that a mistake was met at, also where a module that it imports made it."""
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(deploy)]
    return lines[-1] if lines else 1


def _declare(code: Any, deploy: Path, host: Host, ask: Callable[..., Any]) -> Declared:
    patch(host, "get_fact", ask)
    patch(host, "connect", _refuse)
    with ctx_host.use(host):
        try:
            exec(code, {"__file__": str(deploy), "__name__": "__main__"})
        except RackwrightError as error:
            raise SettingsError(f"{deploy}: {host.name}: {error.text}", code=error.code or "RW1305") from None
        except PyinfraError as error:
            raise SettingsError(f"{deploy}: {host.name}: {error}", code="RW1305") from None
        except Exception as error:
            where = f"{deploy}:{_line_of(error, deploy)}: {host.name}"
            raise SettingsError(f"{where}: {type(error).__name__}: {error}", code="RW1305") from error
        return _noted_so_far(host)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise SettingsError(
        "it asks the host for a fact while it declares its steps, and a plan must know them without a connection; "
        "next: ask inside an operation of your own, or decide by host.data",
        code="RW1301",
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence a deploy file while its steps are only declared: its output would be printed twice."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
