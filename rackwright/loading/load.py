"""Settings of all hosts of an inventory: files found, decrypted, merged and validated before any connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rackwright.loading.ansible.foreign import Foreign, own_keys_in, without_a_model
from rackwright.loading.ansible.jinja import HostJinja, evaluated, has_jinja
from rackwright.loading.ansible.ssh_config import jump_of
from rackwright.loading.choice import EVERYBODY, Choice
from rackwright.loading.files import Site, site_root
from rackwright.loading.gateways import is_gateway, problems_behind, problems_between, with_gateways
from rackwright.loading.group import Unjudged, grouped, kept_in_group
from rackwright.loading.host import InventoryHost
from rackwright.loading.merge import Layer, merge
from rackwright.loading.peers import with_peers
from rackwright.loading.profiles import ProfileChoice, SiteProfiles, refused_argument
from rackwright.loading.secret_sources import with_printed
from rackwright.loading.validate import Known, leaves, validate
from rackwright.loading.vault import NEXT, VAULT_FILE, Plaintext, UndecryptableError, decrypt, opened
from rackwright.loading.wording import is_secret
from rackwright.loading.yaml_file import VAULT_HEADER, Ciphertext, Document, parse
from rackwright.messages import SettingsError, coded
from rackwright.settings.connection import defaults, placed, rename
from rackwright.settings.host_settings import SITE, HostSettings
from rackwright.settings.inventory_groups import ALL, PRIORITY, UNGROUPED, InventoryGroups
from rackwright.settings.origin import Origin
from rackwright.settings.problems import InvalidSettingsError, Problem, some
from rackwright.settings.secret import Secret
from rackwright.settings.ssh.known_hosts import not_followed
from rackwright_engines.key_path import KeyPath

DATA_OPTION = "--data"
CLEAR = "in clear"
"""The origin of a secret that a file or an inventory has as plain text."""
SIZE = 1 << 20
"""Bytes of a settings file at most: a hundred hosts' settings have a tenth of it."""
TOO_LARGE = "is larger than 1 MiB, and no file of settings is: is it another program's?"
HOST = re.compile(r"@[a-z]+(/[A-Za-z0-9._:/-]+)?|[A-Za-z0-9_:][A-Za-z0-9._:-]*")
"""A host's name: one of DNS, an address, or one of pyinfra's with its connector."""


Owner = tuple[str, str]
"""`group_vars` or `host_vars`, and the group or host."""
Said = tuple[Layer, bool]
"""Values of one source, in its own words, and whether it is a file of the site."""


@dataclass(frozen=True)
class Listing:
    """The hosts and groups that an inventory names, with the values that it gives them itself."""

    path: Path
    groups: InventoryGroups
    hosts: Mapping[str, Mapping[str, Any]]
    """Hosts in the inventory's order."""
    root: Path | None = None
    """Folder of the site; default: that of the path."""
    is_ansible: bool = False
    """True for an existing Ansible inventory: what is not for us is left out, and hosts without a model are."""
    named: str = ""
    """The argument that names it, where that is not its path."""
    everywhere: Layer = field(default_factory=lambda: Layer({}, {}))
    """ansible.cfg's values for every host, weaker than all else."""
    warnings: Sequence[str] = ()
    """Ansible's warnings, line by line."""
    problems: Mapping[Owner, Sequence[Problem]] = field(default_factory=dict)
    """Problems of the values that it gives to a host or group itself."""


@dataclass(frozen=True)
class Loaded:
    """The hosts of a listing, and what an Ansible inventory has for others."""

    hosts: list[InventoryHost]
    foreign: Foreign
    unused: Sequence[str] = ()
    """Lines on files that belong to nothing."""
    refused: Mapping[str, Unjudged] = field(default_factory=dict)
    """Hosts that were not chosen and whose settings are not valid."""

    def remarks(self, inventory: str) -> list[str]:
        """Return what was left out, line by line."""
        return [*self.unused, *self.foreign.lines(inventory), *refused_line(list(self.refused), inventory)]


def refused_line(names: Sequence[str], inventory: str) -> list[str]:
    """Return the line on hosts that a command is not for, and whose settings are not valid."""
    if not names:
        return []
    text = f"{some(names)} skipped: the settings are not valid; next: rackwright check {inventory}"
    return [coded("RW0245", text)]


def load(listing: Listing, overrides: Mapping[str, Any] | None = None, choice: Choice = EVERYBODY) -> Loaded:
    """Load and validate the settings of every host of a listing, in its order.

    `overrides` are pyinfra's `--data` values, a section's key as `SECTION.KEY`: they count for the typed settings,
    and stay out of `data`. choice: the hosts whose settings must be valid.
    Raises InvalidSettingsError with every problem of the files that concern them, and of these hosts, at once.
    """
    _refuse_empty(listing)
    site = Site(listing.root or site_root(listing.path), listing.path, listing.is_ansible)
    overrides_by_section = nested(overrides or {})
    reader = _reader(site, listing, _typed(overrides_by_section), choice.profiles_as_shipped)
    merged = {name: _placed(layer, site.root) for name, layer in reader.all_merged().items()}
    if listing.is_ansible:
        reader.foreign.skipped = without_a_model(
            {name: layer.values for name, layer in merged.items()},
            overrides_by_section,
            [name for name in merged if is_gateway(listing.groups.of(name))],
        )
    names = [name for name in listing.hosts if name not in reader.foreign.skipped]
    printed = with_printed({name: merged[name] for name in names}, site.root)
    merged = {name: layer for name, (layer, _) in printed.items()}
    _look_up({name: {**merged[name].values, **overrides_by_section} for name in names})
    refused = {name: problems for name, (_, problems) in printed.items()}
    common = [*reader.common, *_command_line(overrides_by_section)]
    judged = [_host(name, merged[name], reader, overrides_by_section, refused[name], bool(common)) for name in names]
    groups = listing.groups
    unjudged = [Unjudged(name, tuple(groups.of(name)), merged[name].values) for name in names if refused[name]]
    grouping = grouped([host for host in judged if host], unjudged, refused)
    chosen = [name for name in names if choice.takes(name, groups.of(name))]
    _judge_gateways([name for name in names if is_gateway(groups.of(name))], grouping.hosts, refused)
    wrong = [*common, *_of_chosen(chosen, refused, grouping.held)]
    wrong_hosts = [name for name in names if refused[name] or name in grouping.held]
    if wrong:
        verb = "pin" if choice.profiles_as_shipped else "check"
        again = f"rackwright {verb} {listing.named or listing.path}"
        raise InvalidSettingsError(wrong, again, chosen if common else [name for name in chosen if name in wrong_hosts])
    skipped = {
        name: Unjudged(name, tuple(groups.of(name)), merged[name].values)
        for name in wrong_hosts
        if name not in choice.without
    }
    hosts = with_gateways(with_peers(grouping.hosts), unjudged)
    return Loaded([host for host in hosts if not refused[host.name]], reader.foreign, reader.unused, skipped)


def _of_chosen(
    chosen: Sequence[str], refused: Mapping[str, Sequence[Problem]], held: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Return what is wrong with the chosen hosts, and with those that serve an endpoint together with one of them."""
    with_them: dict[str, None] = {}
    for name in chosen:
        yield from refused[name]
        others = [other for other in dict.fromkeys(held.get(name, ())) if other not in chosen]
        with_them |= dict.fromkeys(others)
        if others:
            text = f"serves an endpoint together with {some(others)}, and what is wrong there counts here too"
            yield Problem(None, (), text, name, code="RW0255")
    for other in with_them:
        yield from refused[other]


def _judge_gateways(gateways: Sequence[str], hosts: Sequence[InventoryHost], refused: dict[str, list[Problem]]) -> None:
    """Add what does not fit between gateways and the hosts behind them; a gateway needs all of these to be right."""
    for problem in problems_between(hosts):
        refused[problem.host].append(problem)
    wrong = [name for name, problems in refused.items() if problems]
    for gateway in gateways:
        refused[gateway] += problems_behind(gateway, [name for name in wrong if name != gateway])


def _look_up(hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Ask ssh at once about all hosts whose login only its configuration knows: the answers are remembered."""
    wanted = {name: values for name, values in hosts.items() if "_sudo" not in values and not values.get("ssh_user")}
    with suppress(SettingsError, ValueError, OSError):  # found again, and reported, host by host
        not_followed((name, {**values, **jump_of(name, values)}) for name, values in wanted.items())


def _refuse_empty(listing: Listing) -> None:
    if not listing.hosts:
        raise SettingsError(
            f"{listing.path} names no hosts; next: write one into a group that has a file in group_vars/, then: "
            f"rackwright check {listing.named or listing.path}",
            code="RW0225",
        )


def _typed(overrides: Mapping[str, Any]) -> Layer:
    """Return what `--data` says as a layer."""
    return _renamed(Layer(overrides, {(key,): Origin(DATA_OPTION) for key in overrides}))


def _reader(site: Site, listing: Listing, typed: Layer, profiles_as_shipped: bool) -> _Reader:
    try:
        return _Reader(site, listing, typed, profiles_as_shipped)
    except OSError as error:
        named = error.filename
        raise SettingsError(f"{named}: cannot be read: {error.strerror}; next: ls -ld {named}", code="RW0223") from None


def _host(
    name: str,
    merged: Layer,
    reader: _Reader,
    overrides: Mapping[str, Any],
    problems: list[Problem],
    is_partial: bool = False,
) -> InventoryHost | None:
    """Return the host, or add what is wrong to `problems`. is_partial: a file that may be the host's is not read."""
    problems += [*_names(reader.listing.path, name), *reader.of(name)]
    is_partial = is_partial or bool(problems)
    try:
        host = _validated(name, merged, reader, overrides, problems, is_partial)
    except SettingsError as error:  # ssh, asked about this host alone
        problems.append(Problem(None, (), error.text, name, code=error.code))
        return None
    return None if problems else host


def _validated(
    name: str,
    merged: Layer,
    reader: _Reader,
    overrides: Mapping[str, Any],
    problems: list[Problem],
    is_partial: bool,
) -> InventoryHost | None:
    ours = _typed(overrides)
    final = merge([merged, ours]) if overrides else merged
    settings, found = validate(name, final.values, dict(final.origins), reader.checked)
    found = [reader.advised(name, problem) for problem in found]
    problems += found if not is_partial else [problem for problem in found if problem.path]
    if settings is None:
        return None
    jump = jump_of(name, final.values)
    data = {**merged.values, **jump, **defaults(name, {**final.values, **jump})}
    groups = tuple(reader.listing.groups.of(name))
    return InventoryHost(name, groups, data, settings, dict(final.origins), (merged, ours), reader.site.root)


def overlaid(
    host: InventoryHost, arguments: Mapping[str, Any], origin: Origin, checked: Known | None = None
) -> InventoryHost:
    """Return a host with what its deploy file says as arguments: stronger than the settings, weaker than `--data`.

    arguments: settings by section, or by key at the top level. origin: the deploy file. checked: those of other hosts.
    Raises InvalidSettingsError with every problem at once.
    """
    if not arguments:
        return host
    if wrong := refused_argument(host.name, arguments, origin):
        raise InvalidSettingsError(wrong, "the same command again")
    layer = Layer(arguments, {path[:depth]: origin for path, _ in leaves(arguments, ()) for depth in (1, 2)})
    files, typed = host.layers
    whole = merge([files, layer, typed])
    final, unread = with_printed({host.name: whole}, host.root)[host.name]
    settings, problems = validate(host.name, _hidden(final.values), dict(final.origins), checked or Known(host.root))
    if settings is None or unread:
        raise InvalidSettingsError([*unread, *problems], "the same command again")
    settings = kept_in_group(host, settings, "the same command again").placed_as(host.settings)
    return replace(host, settings=settings, origins=dict(final.origins))


def standalone(name: str, arguments: Mapping[str, Any], origin: Origin, root: Path) -> InventoryHost:
    """Return a host of a foreign inventory: arguments and defaults, and nothing of its host data.

    root: where relative files and templates are looked for. Raises InvalidSettingsError with every problem at once.
    """
    plain = HostSettings.model_validate({}, context={SITE: root})
    return overlaid(InventoryHost(name, (), {}, plain, {}, root=root), arguments, origin)


def _names(path: Path, name: str) -> list[Problem]:
    """Refuse a name that no host can have: it would be a word of a command, or a folder."""
    if HOST.fullmatch(name):
        return []
    text = f"{name!r} is not a host's name: letters, digits and ._- make one"
    return [Problem(Origin(str(path)), (), text, name, code="RW0222")]


def _placed(layer: Layer, root: Path) -> Layer:
    return Layer(placed(layer.values, root), layer.origins)


def nested(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`SECTION.KEY` as a key of its section."""
    found: dict[str, Any] = {}
    for name, value in overrides.items():
        section, dot, key = name.partition(".")
        if not dot:
            value = {**found[name], **value} if isinstance(found.get(name), dict) and isinstance(value, dict) else value
            found[name] = value
        else:
            within = found.get(section)
            found[section] = {**(within if isinstance(within, dict) else {}), key: value}
    return found


def _command_line(overrides: Mapping[str, Any]) -> list[Problem]:
    text = (
        "a secret on the command line shows in the process list: put it into an ansible-vault value, or the command "
        "that prints it into a file of settings"
    )
    return [
        Problem(Origin(DATA_OPTION), path, text, code="RW0221")
        for key, value in overrides.items()
        for path, leaf in leaves(value, (key,))
        if any(is_secret(path[: depth + 1]) for depth in range(len(path))) and leaf
    ]


class _Reader:
    """The documents of a site, and the layers that they make for a host."""

    def __init__(self, site: Site, listing: Listing, typed: Layer, profiles_as_shipped: bool) -> None:
        """typed: what `--data` says."""
        self.site = site
        self.listing = listing
        self.checked = Known(site.root)
        self._typed = typed
        self._of_groups: dict[tuple[str, ...], list[Layer]] = {}
        """Values for hosts of the same groups, the weakest first."""
        self._shared: dict[tuple[tuple[str, ...], ProfileChoice], Layer] = {}
        """The variables that hosts of the same groups and profile share."""
        self._choices: dict[str, ProfileChoice] = {}
        self._profiles = SiteProfiles(site.root, profiles_as_shipped, lambda found: _decrypted(found, site))
        groups = listing.groups.names
        self._files = {
            (folder, kind, name): site.files(folder, kind, name)
            for folder in site.folders
            for kind, names in (("group_vars", [*groups, UNGROUPED]), ("host_vars", listing.hosts))
            for name in names
        }
        self._documents = _documents({path for paths in self._files.values() for path in paths}, site)
        self._inline = Origin(site.display(listing.path))
        self.unused = [
            *site.unused_files("group_vars", [*groups, UNGROUPED]),
            *site.unused_files("host_vars", list(listing.hosts)),
        ]
        self.foreign = Foreign(own_keys_in(self._sources()), listing.warnings, self._profiles.names())
        self._owned = self._problems_of_files()
        owners = {(kind, name) for host in listing.hosts for kind, name in self._files_of(host)}
        self.common = [
            *site.unknown_files("group_vars", [*groups, UNGROUPED]),
            *site.unknown_files("host_vars", list(listing.hosts)),
            *(problem for owner, found in self._owned.items() if owner not in owners for problem in found),
        ]
        """Problems of the site that belong to no host that could be named."""

    def _problems_of_files(self) -> dict[Owner, list[Problem]]:
        """Return what is wrong with the files, and in the inventory, by the group or host that they are for."""
        found = {owner: list(problems) for owner, problems in self.listing.problems.items()}
        for (_, kind, name), paths in self._files.items():
            found.setdefault((kind, name), []).extend(p for path in paths for p in self._documents[path].problems)
        for kind in ("group_vars", "host_vars"):
            for name, problem in (*self.site.unusable(kind), *self.site.duplicates(kind)):
                found.setdefault((kind, name), []).append(problem)
        return {owner: problems for owner, problems in found.items() if problems}

    def _files_of(self, host: str) -> list[Owner]:
        return [*(("group_vars", name) for name in (ALL, *self.listing.groups.of(host))), ("host_vars", host)]

    def of(self, host: str) -> list[Problem]:
        """Return what is wrong with the files of a host."""
        if not self._owned:
            return []
        found = [problem for owner in self._files_of(host) for problem in self._owned.get(owner, ())]
        return [replace(problem, host=host) for problem in found]

    def advised(self, host: str, problem: Problem) -> Problem:
        """Return a problem of a host, with what to do where an older profile has it."""
        return self._profiles.advised(problem, self._choices[host])

    def _sources(self) -> Iterator[Mapping[str, Any]]:
        """Yield what each file and each entry of the inventory says."""
        yield from (document.values for document in self._documents.values())
        yield from (self.listing.groups.values(name) for name in self.listing.groups.names)
        yield from self.listing.hosts.values()

    def all_merged(self) -> dict[str, Layer]:
        """All variables of each host in our words; where Ansible's hold Jinja for the way to it, what that makes."""
        found = {host: self._merged(host) for host in self.listing.hosts}
        with_jinja = [host for host in found if self.listing.is_ansible and has_jinja(found[host].values)]
        if with_jinja:
            made = evaluated(self.listing.path, [self._jinja_of(host, found[host]) for host in with_jinja])
            for host, (values, problems) in zip(with_jinja, made, strict=True):
                found[host] = Layer(values, found[host].origins)
                self._owned.setdefault(("host_vars", host), []).extend(_at_origin(one, found[host]) for one in problems)
        return found

    def _merged(self, host: str) -> Layer:
        groups = tuple(self.listing.groups.of(host))
        if groups not in self._of_groups:
            self._of_groups[groups] = [self._ours(*layers) for layers in self._said_of_groups(groups)]
        of_groups, of_host = self._of_groups[groups], [self._ours(*layers) for layers in self._said_of_host(host)]
        choice = self._profiles.choose([*of_groups, *of_host, self._typed])
        self._choices[host] = choice
        if choice.problems:
            self._owned.setdefault(("host_vars", host), []).extend(choice.problems)
        if (groups, choice) not in self._shared:
            self._shared[groups, choice] = merge([*self._profiles.layers(choice), *of_groups])
        return merge([self._shared[groups, choice], *of_host])

    def _jinja_of(self, host: str, layer: Layer) -> HostJinja:
        groups = tuple(self.listing.groups.of(host))
        declared = merge(layer for layer, _ in (*self._said_of_groups(groups), *self._said_of_host(host)))
        return HostJinja(host, groups, layer.values, declared.values)

    def _said_of_host(self, host: str) -> Iterator[Said]:
        yield self._inline_layer(self.listing.hosts[host])
        for folder in self.site.folders:
            yield from self._read(folder, "host_vars", host)

    def _said_of_groups(self, groups: Sequence[str]) -> Iterator[Said]:
        """Yield what groups and their files say, the weakest first: Ansible's order of precedence."""
        yield self.listing.everywhere, False
        yield from (self._group_values(name) for name in (ALL, *groups) if name in self.listing.groups.names)
        for folder in self.site.folders:
            yield from self._read(folder, "group_vars", ALL)
        for folder in self.site.folders:
            for name in groups:
                yield from self._read(folder, "group_vars", name)

    def _group_values(self, name: str) -> Said:
        values = self.listing.groups.values(name)
        return self._inline_layer({key: value for key, value in values.items() if key != PRIORITY})

    def _inline_layer(self, values: Mapping[str, Any]) -> Said:
        return Layer(values, {(key,): self._inline for key in values}), not self.listing.is_ansible

    def _read(self, folder: Path, kind: str, name: str) -> Iterator[Said]:
        ours = self.site.is_ours(folder)
        for path in self._files[folder, kind, name]:
            document = self._documents[path]
            yield Layer(document.values, document.origins), ours

    def _ours(self, layer: Layer, ours: bool) -> Layer:
        """Return a layer in our words, without what an Ansible inventory has for others."""
        return _renamed(self.foreign.without(layer, ours) if self.listing.is_ansible else layer)


def _at_origin(problem: Problem, layer: Layer) -> Problem:
    """Return a problem with the place of its key."""
    ours = rename(str(problem.path[0]), None)[0]
    return replace(problem, where=layer.origins.get((ours,), problem.where))


def _renamed(layer: Layer) -> Layer:
    """Return a layer with pyinfra's names for Ansible's connection variables, and secrets in clear as such.

    That is done before layers are merged: hosts of one group then share what its files say, object by object.
    """
    values = dict(rename(key, value) for key, value in layer.values.items())
    return Layer(_hidden(values), dict(_renamed_origin(path, origin) for path, origin in layer.origins.items()))


def _renamed_origin(path: KeyPath, origin: Origin) -> tuple[KeyPath, Origin]:
    """Return the origin of a value under its new name, with the one that was written."""
    new = rename(str(path[0]), None)[0]
    return (new, *path[1:]), origin if new == path[0] else replace(origin, written=str(path[0]))


def _documents(paths: set[Path], site: Site) -> dict[Path, Document]:
    """Return all files parsed, with every vault value as a Secret; two decryption commands at most."""
    texts, broken = _texts(paths, site)
    whole = [path for path, text in texts.items() if text.startswith(VAULT_HEADER)]
    plain = decrypt([Ciphertext(texts[path].strip(), Origin(site.display(path))) for path in whole], site.root)
    documents = broken | {path: parse(text, site.display(path)) for path, text in texts.items() if path not in whole}
    for path, found in zip(whole, plain, strict=True):
        documents[path] = _whole(found, site.display(path))
    return _decrypted(documents, site)


def _whole(plain: Plaintext, file: str) -> Document:
    """Return the document of an encrypted file."""
    if isinstance(plain, UndecryptableError):
        return _broken(Origin(file), f"{plain.why}; {NEXT}", plain.code)
    document = parse(plain, file)
    return Document(_all_secret(document.values), document.origins, document.problems)


def _texts(paths: set[Path], site: Site) -> tuple[dict[Path, str], dict[Path, Document]]:
    """Return the files' texts, and for those that cannot be read a document that says why."""
    texts, broken = dict[Path, str](), dict[Path, Document]()
    for path in sorted(paths):
        try:
            if path.stat().st_size > SIZE:
                broken[path] = _broken(Origin(site.display(path)), TOO_LARGE, "RW0224")
                continue
            texts[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            line_number = path.read_bytes()[: error.start].count(b"\n") + 1
            broken[path] = _broken(Origin(site.display(path), line_number), "is not UTF-8: save it as UTF-8")
        except OSError as error:
            broken[path] = _broken(Origin(site.display(path)), f"cannot be read: {error.strerror}")
    return texts, broken


def _broken(where: Origin, text: str, code: str = "RW0223") -> Document:
    return Document({}, {}, (Problem(where, (), text, code=code),))


def _decrypted(documents: Mapping[Path, Document], site: Site) -> dict[Path, Document]:
    found = {
        leaf: None
        for document in documents.values()
        for _, leaf in leaves(document.values, ())
        if isinstance(leaf, Ciphertext)
    }
    plain = dict(zip(found, decrypt(list(found), site.root), strict=True))
    return {path: _with_plain(document, plain) for path, document in documents.items()}


def _with_plain(document: Document, plain: Mapping[Ciphertext, Plaintext]) -> Document:
    """Return a document with its secrets; what could not be decrypted is missing in it, and among its problems."""
    wrong = [
        Problem(leaf.where, path, f"{error.why}; {NEXT}", code=error.code)
        for path, leaf in leaves(document.values, ())
        if isinstance(leaf, Ciphertext) and isinstance(error := plain[leaf], UndecryptableError)
    ]
    values = opened(document.values, lambda value: plain[value] if isinstance(value, Ciphertext) else None)
    return Document(values, document.origins, (*document.problems, *wrong))


def _all_secret(value: Any) -> Any:
    """Every text and number of an encrypted file is a secret."""
    if isinstance(value, dict):
        return {key: _all_secret(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_all_secret(below) for below in value]
    return value if value is None or isinstance(value, bool | Ciphertext) else Secret(str(value), VAULT_FILE)


def _hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """Secrets that were written in clear are masked from here on, too."""
    return {key: _hide((key,), value) for key, value in values.items()}


def _hide(path: KeyPath, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hide((*path, key), below) for key, below in value.items()}
    return Secret(value, CLEAR) if is_secret(path) and isinstance(value, str) else value
