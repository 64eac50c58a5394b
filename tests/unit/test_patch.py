"""Names that are replaced in another package must be there, and only `patch` replaces them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyinfra
import pytest
from pyinfra.connectors import util

from rackwright.adapter.patch import ChangedPackageError, held, patch, supported_version

ROOT = Path(__file__).parents[2]
FOLDERS = ("rackwright", "packages", "tasks", "inventory", "bench", "scripts")
OURS = {"rackwright", "rackwright_bench", "rackwright_engines", "rackwright_lab", "tasks", "bench", "tests"}
OWN = {
    "bench/peers/own_operations.py: config.SUDO",
    "rackwright/adapter/patch.py: setattr(owner, name, new)",
    "rackwright/adapter/ssh/bounded_commands.py: vars(within)['limited']",
    "rackwright/settings/host_settings.py: vars(copied).pop(cached, None)",
    "rackwright/settings/host_settings.py: vars(found)['judged']",
    "rackwright/settings/host_settings.py: vars(found).pop(key, None)",
}
"""On objects of Rackwright's own, in the one line of `patch`, and pyinfra's `config`, which is there to be set."""


def later(**names: object) -> ModuleType:
    """Return a module of pyinfra as a later version might have it: with these names only."""
    found = ModuleType("pyinfra.connectors.util")
    vars(found).update(names)
    return found


def test_a_name_that_is_there_is_replaced() -> None:
    module = later(getpass=input)
    patch(module, "getpass", print)
    assert module.getpass is print


def test_a_name_that_is_absent_is_refused_with_the_version_to_install() -> None:
    module = later()
    with pytest.raises(ChangedPackageError) as caught:
        patch(module, "getpass", print)
    assert caught.value.code == "RW1327"
    assert not hasattr(module, "getpass")
    version = supported_version("pyinfra")
    assert version.startswith("pyinfra<")
    named = (f"pyinfra {pyinfra.__version__}", "getpass", "pyinfra.connectors.util", f"next: pip install '{version}'")
    assert [one for one in named if one not in caught.value.text] == []


def test_other_parameters_are_refused() -> None:
    def read(stdout: object, timeout: int) -> None: ...

    module = later(read=read)
    with pytest.raises(ChangedPackageError, match=r"\(stdout timeout\), .* \(stdout\)"):
        patch(module, "read", print, takes="stdout")
    assert module.read is read
    patch(module, "read", print, takes="stdout timeout")
    patch(module, "read", print, takes="stdout timeout")
    assert module.read is print


def test_a_method_that_is_overridden_must_be_there() -> None:
    with pytest.raises(ChangedPackageError, match=r"no parse_config in types.SimpleNamespace"):
        held(SimpleNamespace(), "parse_config")


def test_a_builtin_must_be_called_by_the_module() -> None:
    def confirm() -> str:
        return input()

    def ask() -> str:
        return ""

    module = later(confirm=confirm)
    patch(module, "input", print, builtin=True)
    patch(module, "input", print, builtin=True)
    assert module.input is print
    with pytest.raises(ChangedPackageError, match="does not call input"):
        patch(later(ask=ask), "input", print, builtin=True)


WITHOUT = """
import os, sys
from importlib import import_module
import paramiko, pyinfra_cli.main
from rackwright.messages import RackwrightError

def replace_all():
    from rackwright.adapter.cheap_lookups import use_cheap_lookups
    from rackwright.adapter.ssh.client import use_patient_client
    from rackwright.adapter.ssh.passwords import refuse_passwords
    from rackwright.adapter.terminal import say_when_nobody_answers
    for step in use_patient_client, refuse_passwords, use_cheap_lookups, say_when_nobody_answers:
        step()

for module, path in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork():
        os.wait()
        continue
    owner, names = import_module(module), path.split(".")
    for name in names[:-1]:
        owner = getattr(owner, name)
    delattr(owner, names[-1])
    try:
        replace_all()
    except RackwrightError as error:
        print(error.code, path, flush=True)
    os._exit(0)
"""
REPLACED = (
    ("pyinfra.connectors.sshuserclient.client", "get_host_keys"),
    ("pyinfra.connectors.sshuserclient.client", "SSHClient.parse_config"),
    ("pyinfra.connectors.ssh", "read_output_buffers"),
    ("pyinfra.connectors.util", "getpass"),
    ("pyinfra.api.util", "stack"),
    ("pyinfra_cli.cli", "_do_confirm"),
    ("paramiko", "Transport._channel_handler_table"),
)


def test_no_run_begins_without_what_is_replaced() -> None:
    words = [sys.executable, "-c", WITHOUT, *(one for pair in REPLACED for one in pair)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"RW1327 {path}" for _, path in REPLACED]


VERB = """
import sys
import paramiko
del paramiko.Transport._channel_handler_table
from rackwright.cli.main import main
sys.exit(main(["status", "inventory/fleet.py"]))
"""


def test_a_verb_says_so_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", VERB], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("rackwright: RW1327: ")
    assert len(done.stderr.splitlines()) == 1


def test_pyinfra_asks_for_passwords_by_the_name_that_is_replaced() -> None:
    assert "getpass" in util.execute_command_with_sudo_retry.__code__.co_names


# -- only patch does it


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Python of Rackwright that runs on the control machine; an image's own Python runs the rest."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not {"host", "fetch_model"} & set(path.parts):
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def foreign(tree: ast.Module) -> set[str]:
    """Names that a module imports from other packages than Python's and Rackwright's."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_foreign(node.module or ""):
            found |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.asname or one.name.partition(".")[0] for one in node.names if is_foreign(one.name)}
    return found


def is_foreign(module: str) -> bool:
    return module.partition(".")[0] not in OURS | sys.stdlib_module_names


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_namespace(node: ast.expr) -> bool:
    """`vars(x)` or `x.__dict__`."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def targets(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what is assigned to or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Delete):
            for target in node.targets:
                yield from target.elts if isinstance(target, ast.Tuple) else [target]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target


def patches(tree: ast.Module) -> Iterator[ast.expr]:
    """Each way round `patch`: an assignment to a foreign name, to a namespace, or a call that does the same."""
    for target in targets(tree):
        is_attribute = isinstance(target, ast.Attribute) and root_of(target) in foreign(tree)
        if is_attribute or (isinstance(target, ast.Subscript) and is_namespace(target.value)):
            yield target
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and writes(node):
            yield node


def writes(call: ast.Call) -> bool:
    """Return True for `setattr(x, ...)` and `vars(x).update(...)`; a name that begins with rackwright is our own."""
    if isinstance(call.func, ast.Attribute) and is_namespace(call.func.value):
        first = call.args[0] if call.args else None
        is_ours = isinstance(first, ast.Constant) and str(first.value).startswith("rackwright")
        return call.func.attr in ("update", "setdefault", "pop") and not is_ours
    return isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr")


def test_only_patch_replaces_a_foreign_name() -> None:
    found = {f"{file}: {ast.unparse(node)}" for file, tree in sources() for node in patches(tree)}
    assert found == OWN, "use rackwright.adapter.patch"


@pytest.mark.parametrize(
    "text",
    [
        "from pyinfra.connectors import util\nutil.getpass = None",
        "import paramiko.client\nparamiko.client.SSHClient, x = None, 1",
        "vars(module).update(getpass=None)",
        "vars(module)['getpass'] = None",
        "module.__dict__['getpass'] = None",
        "setattr(module, 'getpass', None)",
    ],
)
def test_the_walk_sees_each_way(text: str) -> None:
    assert len(list(patches(ast.parse(text)))) == 1
