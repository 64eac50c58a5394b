"""An existing Ansible inventory (INI, YAML, directory, program) as a listing, read by `ansible-inventory`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rackwright.loading.ansible.bounded import ProgramEnd, run_bounded
from rackwright.loading.ansible.command import command, environment, first_error
from rackwright.loading.files import refuse_no_file, refuse_no_files, site_root
from rackwright.loading.load import Listing, Owner
from rackwright.loading.merge import Layer
from rackwright.loading.validate import leaves
from rackwright.loading.vault import NEXT, Plaintext, UndecryptableError, decrypt, opened
from rackwright.loading.yaml_file import Ciphertext
from rackwright.messages import SettingsError
from rackwright.settings.inventory_groups import ALL, UNGROUPED, InventoryGroup, InventoryGroups
from rackwright.settings.origin import Origin
from rackwright.settings.problems import Problem

VAULT, UNSAFE = "__ansible_vault", "__ansible_unsafe"
STRICT = {
    "ANSIBLE_VARS_ENABLED": "",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
}
TIMEOUT = 300
"""Seconds; a dynamic inventory may ask a slow service."""


def listing_of(path: Path, root: Path | None = None) -> Listing:
    """Hosts, groups and the inventory's own values; group_vars and host_vars are left to the loader.

    root: the site's folder; default: that of the path.
    Raises SettingsError with Ansible's reason when the inventory cannot be read.
    """
    if not path.exists():
        raise SettingsError(
            f"{path}: Ansible inventory not found; next: ansible-inventory -i {path} --graph", code="RW0202"
        )
    refuse_no_file(path)
    if path.is_dir():
        refuse_no_files(path)
    site = root or site_root(path)
    answer, warned = _ask(path, site)
    plain = _plain_of(answer, path, site)
    problems = dict(_undecryptable(answer, plain))
    found: dict[str, Any] = opened(_without_marks(answer), lambda value: _vault(value, plain))
    hosts_values: Mapping[str, dict[str, Any]] = found.pop("_meta", {}).get("hostvars", {})
    groups = InventoryGroups([_group(name, body) for name, body in found.items()])
    from rackwright.loading.ansible.config import configured  # noqa: PLC0415 - a Python inventory wants none of it

    hosts = {host: hosts_values.get(host, {}) for host in groups.hosts}
    config = configured(site)
    everywhere = Layer(config.values, {(key,): origin for key, origin in config.origins.items()})
    warnings = (*(f"{path}: Ansible warns: {text}" for text in warned), *config.left_out)
    return Listing(path, groups, hosts, site, True, everywhere=everywhere, warnings=warnings, problems=problems)


def _group(name: str, body: Mapping[str, Any]) -> InventoryGroup:
    children = [child for child in body.get("children", []) if name != ALL or child != UNGROUPED]
    return InventoryGroup(name, list(body.get("hosts", [])), children, dict(body.get("vars", {})))


def _ask(path: Path, site: Path) -> tuple[dict[str, Any], list[str]]:
    """Return what it printed, and what it warned of.

    `--export` keeps a group's values with the group; vars plugins are off, since they would mix group_vars in. Ansible
    itself continues without a source that it cannot read; here that is an error, since its hosts would be missing.
    """
    from rackwright.loading.ansible.remarks import remarks  # noqa: PLC0415 - a Python inventory wants none of it

    answer = _listed(path, site)
    if answer.past:
        words = f": {first_error(answer.errors)}" if answer.errors.strip() else ""
        raise _unreadable(path, f"it took more than {answer.past}{words}")
    if answer.status != 0:
        reasons = [text for text in remarks(answer.errors) if text != first_error(answer.errors)]
        raise _unreadable(path, "; ".join([first_error(answer.errors), *reasons]))
    try:
        loaded: dict[str, Any] = json.loads(answer.output)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"ansible-inventory printed no JSON: {error}") from None
    return loaded, remarks(answer.errors)


def _listed(path: Path, site: Path) -> ProgramEnd:
    return run_bounded(
        [command("ansible-inventory"), "-i", str(path.absolute()), "--list", "--export", "--playbook-dir", str(site)],
        TIMEOUT,
        folder=site,
        environment={**environment(site), **STRICT},
    )


def _unreadable(path: Path, reason: str) -> SettingsError:
    text = f"{path}: Ansible cannot read this inventory: {reason}\nnext: ansible-inventory -i {path} --list"
    return SettingsError(text, code="RW0203")


def _plain_of(value: dict[str, Any], path: Path, site: Path) -> dict[str, Plaintext]:
    """Return what each ciphertext says."""
    found = dict.fromkeys(text for at, text in leaves(value, ()) if at[-1:] == (VAULT,))
    return dict(zip(found, decrypt([Ciphertext(text.strip(), Origin(str(path))) for text in found], site), strict=True))


def _undecryptable(answer: Mapping[str, Any], plain: Mapping[str, Plaintext]) -> Iterator[tuple[Owner, list[Problem]]]:
    """Return the values that could not be decrypted, by the host or group that they are of."""
    hosts = answer.get("_meta", {}).get("hostvars", {})
    groups = {name: body.get("vars", {}) for name, body in answer.items() if name != "_meta"}
    for kind, owners in (("host_vars", hosts), ("group_vars", groups)):
        for name, values in owners.items():
            found = [(at[:-1], plain[text]) for at, text in leaves(values, ()) if at[-1:] == (VAULT,)]
            yield (
                (kind, name),
                [
                    Problem(one.where, at, f"{one.why}; {NEXT}", code=one.code, of_host=True)
                    for at, one in found
                    if isinstance(one, UndecryptableError)
                ],
            )


def _vault(value: Any, plain: Mapping[str, Plaintext]) -> Plaintext | None:
    return plain[value[VAULT]] if isinstance(value, dict) and set(value) == {VAULT} else None


def _without_marks(value: Any) -> Any:
    """Return the values without Ansible's marks of texts that it must not evaluate."""
    if isinstance(value, dict):
        plain = {key: _without_marks(below) for key, below in value.items()}
        return plain[UNSAFE] if set(plain) == {UNSAFE} else plain
    return [_without_marks(below) for below in value] if isinstance(value, list) else value
