"""Releases on the host: each endpoint's files in a folder named by content that appears whole and stays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright.concerns.endpoint.binding import Binding, binding_path, key_digest
from rackwright.concerns.endpoint.container import Added, Resolved, endpoint_spec
from rackwright.concerns.endpoint.group.words import HEADLESS
from rackwright.concerns.endpoint.release.files import SUMS, Release, build_release
from rackwright.concerns.endpoint.release.keys import KEY_LINES, SeenKeys, key_changes, parse_keys, read_keys
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import digest_of
from rackwright.concerns.models import commit_of, host_path
from rackwright.engines.api_key import key_option, quiet
from rackwright.engines.rights import pids_limit, rights
from rackwright.hostside import durable_script
from rackwright.paths import RELEASE_MOUNT, STATE, endpoint_dir
from rackwright.plan.change import Change, Owned, Refuse, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import decode, lines_of
from rackwright.settings.group import Group
from rackwright.settings.host_settings import ENDPOINTS, EndpointSettings, HostSettings
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Hardware, ModelSource


@dataclass(frozen=True)
class Unresolved:
    """The parts of an endpoint that are unknown before its image and models are staged."""

    missing: tuple[str, ...]


@dataclass(frozen=True)
class SeenReleases:
    """Release folders on the host by endpoint: hash to the text of SHA256SUMS, or None when files differ from it."""

    sums: Mapping[str, Mapping[str, str | None]]
    keys: SeenKeys = field(default_factory=SeenKeys)


@dataclass(frozen=True)
class WantedReleases:
    """Each endpoint's release, and the key that its clients send, where they need one."""

    releases: Mapping[str, Release | Unresolved]
    keys: Mapping[str, Secret] = field(default_factory=dict)


def wanted_releases(settings: HostSettings, reading: HostReading) -> dict[str, Release | Unresolved]:
    """Return the release of each endpoint, as far as the host's reading resolves it."""
    return {
        name: wanted_release(name, endpoint, settings, reading) for name, endpoint in settings.all_endpoints.items()
    }


def wanted_release(
    name: str, endpoint: EndpointSettings, settings: HostSettings, reading: HostReading
) -> Release | Unresolved:
    """One endpoint's release, or what is missing to know it."""
    digest = digest_of(endpoint, reading)
    model, draft = _located(endpoint.model, settings, reading), _located(endpoint.draft, settings, reading)
    missing = [
        text
        for text, value in (
            (f"the digest of {endpoint.image}", digest),
            ("the UUIDs of its GPUs", binding_of(endpoint, reading, settings).gpus),
            (f"the commit of {endpoint.model.repository if endpoint.model else 'its model'}", model),
            (f"the commit of {endpoint.draft.repository if endpoint.draft else ''}", draft or endpoint.draft is None),
        )
        if not value
    ]
    if digest is None or model is None or missing:
        return Unresolved(tuple(missing))
    drafted = draft or (None, None)
    resolved = Resolved(digest, model[0], model[1], drafted[0], drafted[1])
    return release_of(name, endpoint, settings, resolved)


def release_of(name: str, endpoint: EndpointSettings, settings: HostSettings, resolved: Resolved) -> Release:
    """Return an endpoint's release; rendered once for all hosts that ask for the same by the same templates."""
    site, encodings = settings.site, settings.encodings.folder
    key = (name, endpoint.model_dump_json(), settings.hardware, encodings, site, _templates(site), resolved)
    if key not in _rendered:
        spec = endpoint_spec(name, endpoint, encodings, resolved, _added(endpoint, settings.hardware))
        _rendered[key] = build_release(spec, endpoint, site)
    return _rendered[key]


def _added(endpoint: EndpointSettings, hardware: Hardware) -> Added:
    environment, files = quiet(endpoint, RELEASE_MOUNT)
    given = rights(endpoint, hardware, "several hosts" if endpoint.size > 1 else "one host")
    return Added(environment, files, key_option(endpoint), given, pids_limit(endpoint))


_rendered: dict[tuple[object, ...], Release] = {}


def _templates(site: Path) -> tuple[tuple[str, int, int], ...]:
    """Return the site's own templates as they are now: name, time and size."""
    files = [(file.name, file.stat()) for file in (site / "templates").glob("*") if file.exists()]
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in files))


def binding_of(endpoint: EndpointSettings, reading: HostReading, settings: HostSettings) -> Binding:
    """Return the endpoint's own values on this host, by today's GPUs and its rank among other hosts."""
    return bound_to(endpoint, {gpu.index: gpu.uuid for gpu in reading[GPUS].gpus}, settings.group)


def bound_to(endpoint: EndpointSettings, uuids: Mapping[int, str], group: Group | None = None) -> Binding:
    """Return the binding with a host's GPUs, UUIDs by index; with none of them when one is missing."""
    chosen = sorted(uuids if endpoint.gpus == "all" else set(endpoint.gpus))
    gpus = tuple(uuids[index] for index in chosen) if uuids.keys() >= set(chosen) else ()
    return _placed(gpus, endpoint, group)


def _placed(gpus: tuple[str, ...], endpoint: EndpointSettings, group: Group | None) -> Binding:
    bound = Binding(gpus, _key(endpoint))
    if endpoint.size == 1 or group is None:
        return bound
    addresses = tuple(member.address for member in group.members)
    headless = "" if group.is_head else HEADLESS.get(endpoint.engine_kind, "")
    return replace(bound, rank=group.rank, addresses=addresses, headless=headless)


def _key(endpoint: EndpointSettings) -> str:
    return key_digest(endpoint.api_key) if endpoint.api_key else ""


def _located(source: ModelSource | None, settings: HostSettings, reading: HostReading) -> tuple[str, str] | None:
    commit = commit_of(source, reading) if source else None
    return (commit, host_path(settings, source, commit)) if source and commit else None


def read(_: HostSettings) -> str:
    """List every release folder with its sums, and whether its files still match them."""
    return f"""\
for d in {STATE}/endpoints/*/releases/*/; do
  [ -f "$d/{SUMS}" ] || continue
  case " $reading_whole" in *" $d "*) ok=ok ;; *) ok=bad ;; esac
  carry "$ok $d" "${{d}}{SUMS}"
done
{read_keys(f"{STATE}/endpoints")}
exit 0"""


def parse(output: str) -> SeenReleases:
    """Parse the listing."""
    sums: dict[str, dict[str, str | None]] = {}
    lines = lines_of(output)
    for state, folder, text in (row.split(" ") for row in lines if not row.startswith(KEY_LINES)):
        endpoint, release = folder.rstrip("/").split("/")[-3::2]
        sums.setdefault(endpoint, {})[release] = decode(text) if state == "ok" else None
    return SeenReleases(sums, parse_keys(lines))


def changes(wanted: WantedReleases, reading: SeenReleases) -> list[Change]:
    """Write each release that is not there, or not as it was written."""
    found = key_changes(wanted.keys, reading.keys)
    for name, release in wanted.releases.items():
        if isinstance(release, Unresolved):
            found.append(_unresolved(name, release))
        elif reading.sums.get(name, {}).get(release.hash) != release.sums:
            found.append(_put_back(release) if release.hash in reading.sums.get(name, {}) else _write(release))
    return found


def _unresolved(name: str, release: Unresolved) -> Change:
    why = f"known once staged: {', '.join(release.missing)}"
    refusal = Refuse(
        f"the release of endpoint {name} cannot be made: unknown: {', '.join(release.missing)}",
        final=False,
        code="RW3301",
    )
    return Change(f"write the release of endpoint {name}", why, (refusal,))


def _write(release: Release) -> Change:
    what = f"write release {release.hash} of endpoint {release.spec.name}"
    owned = Owned("directory", endpoint_dir(release.spec.name))
    return Change(what, "it is not on the host", (_written(release),), owns=(owned,), endpoint=release.spec.name)


def _put_back(release: Release) -> Change:
    what = f"put back files of release {release.hash} of endpoint {release.spec.name}"
    return Change(what, "they are not what its SHA256SUMS names", (_written(release),), endpoint=release.spec.name)


def _written(release: Release) -> Shell:
    return Shell(durable_script("write_release", path=release.path, sums=SUMS), stdin=payload(release))


def payload(release: Release) -> str:
    """Names and contents, a line a file, base64."""
    files = {**release.files, SUMS: release.sums}
    return "".join(f"{name} {base64.b64encode(text.encode()).decode()}\n" for name, text in files.items())


def rendered(settings: HostSettings) -> dict[str, str]:
    """Every file of every release by path, with words in place of what only the host or the lock file knows."""
    found: dict[str, str] = {}
    for name, endpoint in settings.all_endpoints.items():
        release = release_of(name, endpoint, settings, unseen(endpoint, settings))
        found |= {f"{release.path}/{file}": text for file, text in release.files.items()}
        found[binding_path(name)] = _unseen_binding(endpoint, settings).text
    return found


def _unseen_binding(endpoint: EndpointSettings, settings: HostSettings) -> Binding:
    chosen = range(settings.hardware.gpu_count or 1) if endpoint.gpus == "all" else endpoint.gpus
    return _placed(tuple(f"UUID-OF-GPU-{index}" for index in chosen), endpoint, settings.group)


def unseen(endpoint: EndpointSettings, settings: HostSettings) -> Resolved:
    """Stand-in words for an offline rendering: the pinned digest and commits where there are any."""
    commits = [(source.commit or source.revision) if source else None for source in (endpoint.model, endpoint.draft)]
    paths = [
        host_path(settings, source, source.revision) if source else None for source in (endpoint.model, endpoint.draft)
    ]
    return Resolved(
        image_digest=endpoint.image_digest or "DIGEST-SEEN-AT-THE-FIRST-PULL",
        model_commit=commits[0] or "",
        model_path=paths[0] or "",
        draft_commit=commits[1],
        draft_path=paths[1],
    )


def wanted_files(settings: HostSettings, reading: HostReading) -> WantedReleases:
    """Return each endpoint's state on the host: its release, and the key that its clients send."""
    keys = {name: endpoint.api_key for name, endpoint in settings.all_endpoints.items() if endpoint.api_key}
    return WantedReleases(wanted_releases(settings, reading), keys)


TAKES = frozenset({ENDPOINTS, "models", "encodings", "hardware"})
"""Sections of the settings that it is handed."""
RELEASE: Concern[WantedReleases, SeenReleases] = Concern(
    "release", read, parse, wanted_files, changes, files=rendered, alone=True, takes=TAKES
)
