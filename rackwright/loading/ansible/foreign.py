"""Variables of an Ansible inventory for other tools: left out of the layers, counted, and reported in one line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_origin

from rackwright.loading.merge import Layer
from rackwright.loading.wording import section
from rackwright.messages import counted
from rackwright.settings import connection
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.ssh import args as ssh_args

NEAR = 0.8
"""The least likeness of a name to a key of Rackwright's: at 0.6 `docker_version` would match `docker`."""
PROFILE = "profile"
SHOWN = 3
"""Variables and hosts that the line lists."""
KEYS = (*HostSettings.model_fields, *connection.KEYS, *connection.RENAMED, *connection.REFUSED, *ssh_args.KEYS)
MAPPINGS = frozenset(
    key
    for key, field in HostSettings.model_fields.items()
    if section(field.annotation) is not None or get_origin(field.annotation) is dict
)
"""Keys of Rackwright's whose value is a mapping; elsewhere `environment: production` means something else."""


@dataclass
class Foreign:
    """Variables left out of an inventory. own_keys: patterns of names that the site lets pass."""

    own_keys: Sequence[str] = ()
    warnings: Sequence[str] = ()
    """Ansible's own warnings, line by line."""
    profiles: Collection[str] = ()
    """Names of profiles: elsewhere `profile: production` means something else."""
    not_taken: dict[str, None] = field(default_factory=dict)
    """Ansible's variables for the way to a host that do not count here."""
    ignored: dict[str, None] = field(default_factory=dict)
    near: dict[str, None] = field(default_factory=dict)
    """Sentences on variables that may have been meant for us."""
    skipped: list[str] = field(default_factory=list)
    """Hosts that nothing gives a model."""

    def without(self, layer: Layer, ours: bool) -> Layer:
        """Return a layer with our keys alone. ours: the file is a Rackwright site's, where a slip stays in."""
        retained = {key: value for key, value in layer.values.items() if self._is_kept(key, value, ours)}
        for key in layer.values.keys() - retained.keys():
            self._leave_out(key, layer, ours)
        return Layer(
            retained, {path: origin for path, origin in layer.origins.items() if path[:1] and path[0] in retained}
        )

    def _is_kept(self, key: str, value: Any, ours: bool) -> bool:
        if key in connection.NOT_TAKEN:
            self.not_taken[key] = None
        if key.startswith("ansible_") or connection.is_own(key, self.own_keys):
            return True
        if key == PROFILE and not ours:
            return isinstance(value, str) and value in self.profiles
        if key in KEYS:
            return ours or key not in MAPPINGS or value is None or isinstance(value, Mapping)
        return ours and bool(_meant(key))

    def _leave_out(self, key: str, layer: Layer, ours: bool) -> None:
        meant = self._near_profile(layer.values[key]) if key == PROFILE else _meant(key)
        if not ours and meant:
            self.near[f"{layer.origins.get((key,), '')}: {key}: ignored as another program's; {meant}"] = None
        else:
            self.ignored[key] = None

    def _near_profile(self, value: Any) -> str:
        """Return the profile that a value may have been meant for; empty when none is near."""
        found = difflib.get_close_matches(str(value), sorted(self.profiles), n=1, cutoff=NEAR)
        return f"did you mean {found[0]}?" if found else ""

    def lines(self, inventory: str) -> list[str]:
        """Return what may have been meant for us, line by line, and one line on all the rest."""
        parts = []
        if self.ignored:
            parts.append(f"{counted(len(self.ignored), 'variable')} of other programs ignored ({_some(self.ignored)})")
        if self.skipped:
            parts.append(f"skipped, since nothing gives them a model: {', '.join(self.skipped)}")
        summary = f"{inventory}: not taken of Ansible's: {', '.join(sorted(self.not_taken))}"
        messages = [*self.warnings, *([summary] if self.not_taken else [])]
        return [*self.near, *messages, *([f"{inventory}: {'; '.join(parts)}"] if parts else [])]


def _meant(key: str) -> str:
    """Return the key of Rackwright's that a name may have been meant for; empty when none is near."""
    if key in MAPPINGS:
        return f"Rackwright's {key} is a mapping of `key: value` lines"
    found = difflib.get_close_matches(key, [*HostSettings.model_fields, *connection.KEYS], n=1, cutoff=NEAR)
    return f"did you mean {found[0]}?" if found else ""


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def own_keys_in(layers: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the patterns that any layer of a site lets pass."""
    patterns_of = [layer.get("own_keys") for layer in layers]
    return [str(pattern) for patterns in patterns_of if isinstance(patterns, list | tuple) for pattern in patterns]


def without_a_model(
    values: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, Any], gateways: Collection[str] = ()
) -> list[str]:
    """Return the hosts that nothing gives a model while others have one: a management host among GPU hosts.

    Where every host lacks one, deploy.py gives it, or does without. values: by host. overrides: what `--data` says.
    gateways: hosts that need none.
    """
    with_one = {name for name, layer in values.items() if {"model", "endpoints"} & {*layer, *overrides}}
    return [name for name in values if name not in with_one and name not in gateways] if with_one else []
