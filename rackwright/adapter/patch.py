"""Replaces what pyinfra, paramiko and gevent call; raises an error when such a name is gone.

An assignment would add an unused name: a jump host's key, for example, would not be checked.
"""

from __future__ import annotations

import re
from importlib import metadata
from inspect import isclass, ismodule, signature
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from rackwright.messages import RackwrightError


class ChangedPackageError(RackwrightError):
    """Another version of a package than this one supports: what is replaced in it is not there."""

    code = "RW1327"


def patch(owner: Any, name: str, new: Any, *, takes: str = "", builtin: bool = False) -> None:
    """Replace a name of another package's module, class or object. Safe to repeat.

    takes: the parameters of what is replaced, in order, where `new` relies on them. builtin: the module has no such
    name, since it calls Python's builtin function.
    Raises ChangedPackageError when the name is not there, is not called, or takes other parameters.
    """
    if builtin:
        _called(owner, name)
    elif getattr(owner, name, None) is not new:
        held(owner, name, takes)
    setattr(owner, name, new)


def held(owner: Any, name: str, takes: str = "") -> Any:
    """Return what another package has by this name, for what overrides or reads it.

    takes: as in `patch`. Raises ChangedPackageError when it is not there, or takes other parameters.
    """
    if not hasattr(owner, name):
        _refuse(owner, f"has no {name} in {_full_name(owner)}, which Rackwright replaces")
    found = getattr(owner, name)
    parameters = " ".join(signature(found).parameters) if takes else ""
    if parameters != takes:
        _refuse(owner, f"calls {_full_name(owner)}.{name} with ({parameters}), and Rackwright knows ({takes})")
    return found


def _called(module: ModuleType, name: str) -> None:
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    if not any(name in function.__code__.co_names for function in functions):
        _refuse(module, f"does not call {name} in {module.__name__}, which Rackwright replaces")


def _full_name(owner: Any) -> str:
    if ismodule(owner):
        return owner.__name__
    found = owner if isclass(owner) else type(owner)
    return f"{found.__module__}.{found.__qualname__}"


def _refuse(owner: Any, text: str) -> NoReturn:
    """Raise the error, with the package's version and the one to install."""
    package = _full_name(owner).partition(".")[0]
    name = next(iter(metadata.packages_distributions().get(package, [])), package)
    advice = f"; next: pip install '{supported}'" if (supported := supported_version(name)) else ""
    raise ChangedPackageError(f"{name} {_version(name)} {text}: this version is not supported{advice}")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "(of no version)"


def supported_version(distribution: str) -> str:
    """Return what Rackwright requires of a package, such as `pyinfra>=3.10,<3.11`; empty where it requires nothing."""
    names = re.compile(rf"{re.escape(distribution)}(?![\w.-])", re.IGNORECASE)
    return next((one for one in metadata.requires("rackwright") or () if names.match(one)), "")
