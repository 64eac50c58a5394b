"""Model folders: base and draft models at resolved commits, fetched by the real huggingface_hub and verified.

The download runs inside the serving image: the host needs no Python and no packages of Rackwright's, and the
library's version is the one that the image was tested with. It is a job of the host, one for each folder, so that two
runs never write the same file, and a lost connection stops nothing. Verified files are recorded on the host; a
converged run compares store, size, times and inode with the record, since hashing 65 GB takes minutes (DECISIONS 20).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.concerns.image import digest_of, not_asked, pull_job
from rackwright.concerns.models import neighbours
from rackwright.concerns.models.neighbours import FETCH_TIMEOUT, INSIDE, Link
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import helper_script, host_script, job_script, store_functions
from rackwright.hostside.packed import FETCH_MODEL, packed
from rackwright.messages import few
from rackwright.paths import MANIFESTS, job_container
from rackwright.plan.change import Change, Job, Owned, Refuse
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.hand_on import ChainPart, HandsOn, Sharer
from rackwright.plan.reading import decode, files, lines_of
from rackwright.record.ending import FIX
from rackwright.settings.host_settings import ENDPOINTS, HostSettings
from rackwright.settings.image_reference import repository_of, slug
from rackwright.settings.secret import Secret
from rackwright.settings.sections import COMMIT, FilePin, Mirrors, ModelSource

MANIFEST = ".rackwright.json"
HASHED = "hashed"
"""Ending of the file, beside a model's record, with the second in which all of its files were last read and right."""
Known = tuple[int, int, int, int | None]
"""Identity of a verified file: size, mtime, inode, and ctime where users other than root may write."""
LINE_BREAK = "\x01"
"""Replacement of a line break in the listed name of a file."""
HASH_JOB = "hash-"
"""Begins the names of the jobs that hash a folder again."""
CONFIG_SIZE = 1 << 18
"""Bytes of a config.json at most: one with a list of every quantised layer has a fifth of it."""
SHARES = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2"}
    | {"orangefs", "panfs", "pvfs2", "smb3", "virtiofs", "wekafs"}
)
"""File systems that several hosts may have mounted, as /proc/self/mountinfo names their kinds."""
PAUSE = 3.0
"""Seconds before a second try at the hub; the n-th pause is n x n as long."""


@dataclass(frozen=True)
class SeenModel:
    """A model folder that was verified once, as its manifest says."""

    path: str
    repository: str
    revisions: frozenset[str]
    """Branches and tags by which it was requested."""
    commit: str
    include: frozenset[str]
    exclude: frozenset[str]
    fetched: int
    """Seconds since 1970."""
    size: int
    changed: tuple[str, ...]
    """Files that are gone, or whose size, times or inode are not the verified ones."""
    pinned_files: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Size and SHA-256 by file."""
    shared: bool = False
    """True on a network file system: other hosts may need it, too, and their releases are not known here."""


@dataclass(frozen=True)
class SeenModels:
    """All model folders of the host, and folders at Rackwright's paths that Rackwright did not make."""

    models: tuple[SeenModel, ...]
    foreign: frozenset[str]
    read_only: bool = False
    """True when the folder of all models cannot be written to: a store that is filled by other systems."""
    hangs: bool = False
    """True when it is on a file system that does not answer: the state of every model is unknown."""
    opened: frozenset[str] = frozenset()
    """Folders in which users other than root may change something."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """config.json by its folder, for drafts and the models that they draft for."""
    share: str = ""
    """The folder of all models, where it is on a file system that several hosts may have mounted; else empty."""
    links: tuple[Link, ...] = ()
    """Its addresses, where models are handed on between hosts."""
    handing_on: frozenset[int] = frozenset()
    """Ports at which it hands something on now, for another run."""


@dataclass(frozen=True)
class WantedModel:
    """One folder of one model, for all endpoints that share it."""

    source: ModelSource
    commit: str | None
    folder: str
    """Its folder; as long as the commit is unknown and decides the folder's name, that name ends in `*`."""
    fetch: Job | None
    """None as long as the image in which the download runs is unknown."""
    image: str
    unresolved: str = ""
    """The reason for which the control machine could not resolve the commit, so that the host does."""
    refusal: Refuse | None = None
    """The reason for which it is neither taken from another host nor handed on, where hosts are to do so."""
    keeps: Job | None = None
    """Hands it on to hosts of this run that lack it."""
    takers: tuple[str, ...] = ()
    """Those hosts."""
    giver: str = ""
    """The host from which it is taken first; empty: the hub."""

    @property
    def where_from(self) -> str:
        """Return the source of a download, to follow its reason; empty: the hub."""
        return neighbours.handed_on_by(self.giver) if self.giver else ""


WantedModels = tuple[WantedModel, ...]


def host_path(settings: HostSettings, source: ModelSource, commit: str) -> str:
    """Return the model's folder on the host."""
    return source.path or f"{settings.models.folder}/{source.directory or f'{folder_name(source)}--{commit[:12]}'}"


def folder_name(source: ModelSource) -> str:
    """Return the repository's name as part of a folder's name."""
    return source.repository.replace("/", "--")


def commit_of(source: ModelSource, reading: HostReading) -> str | None:
    """Return the commit at which the host has, or must have, this model; None: the first download resolves it."""
    if source.commit:
        return source.commit
    found = [model for model in reading[MODELS].models if _is_of(source, model) and source.revision in model.revisions]
    at_hub = reading.names_of(MODELS).resolved
    return max(found, key=lambda model: model.fetched).commit if found else at_hub.get(name_of(source))


def name_of(source: ModelSource) -> str:
    """Return the model's name for people and in the lock file."""
    return f"{source.repository}@{source.revision}"


def _is_of(source: ModelSource, model: SeenModel) -> bool:
    name = source.directory or f"{folder_name(source)}--{model.commit[:12]}"
    return model.repository == source.repository and model.path.rpartition("/")[2] == name


def sources_of(settings: HostSettings) -> tuple[ModelSource, ...]:
    """Return every model folder to fetch, once: with all that the endpoints that share it need."""
    shared: dict[tuple[str, str, str | None], ModelSource] = {}
    for key, source in settings.fetched_models:
        shared[key] = _union(shared[key], source) if key in shared else source
    return tuple(shared.values())


def _union(one: ModelSource, other: ModelSource) -> ModelSource:
    both = bool(one.include and other.include)
    return one.model_copy(
        update={
            "include": tuple(sorted({*one.include, *other.include})) if both else (),
            "exclude": tuple(sorted({*one.exclude} & {*other.exclude})),
        }
    )


# -- read


def read(settings: HostSettings) -> str:
    """Print each folder's record and its files: one look at each inode, without reading the bytes.

    The hub chooses the names, which may hold line breaks.
    """
    places = {f"{settings.models.folder}/{s.directory}" for s in sources_of(settings) if s.directory}
    foreign = "".join(
        f"[ -d '{folder}' ] && [ ! -f '{folder}/{MANIFEST}' ] && echo 'foreign {folder}'\n" for folder in places
    )
    return f"""\
hangs '{settings.models.folder}' && {{ echo hangs=yes; exit 0; }}
{store_functions()}
known= store=
set --
for m in '{MANIFESTS}'/*.json; do
  [ -f "$m" ] || continue
  own='{settings.models.folder}'/${{m##*/}}
  own=${{own%.json}}
  [ -d "$own" ] || continue
  show "$m"
  number=$(mount_of "$own")
  [ -n "$number" ] && [ "$number" = "$known" ] || {{ store=$(store_of "$own"); known=$number; }}
  printf '%s\\n' "record $store $m $own"
  set -- "$@" "$own"
done
number=$(mount_of '{settings.models.folder}')
[ -n "$number" ] && [ "$number" = "$known" ] || store=$(store_of '{settings.models.folder}')
[ ! -d '{settings.models.folder}' ] || printf '%s\\n' "store $store {settings.models.folder}"
{{
  [ "$#" = 0 ] ||
    find "$@" ! -type l \\( ! -uid 0 -o -perm /022 \\) -printf 'open %H\\0' , \\
      -type f -printf 'entry %s %T@ %C@ %i %p\\0'
  for m in '{settings.models.folder}'/*/{MANIFEST}; do
    [ ! -f "$m" ] || printf 'marked %s\\0' "${{m%/*}}"
  done
}} | tr '\\n\\0' '\\001\\n'
[ ! -d '{settings.models.folder}' ] || [ -w '{settings.models.folder}' ] || echo readonly=yes
{foreign}{_configs(settings)}{neighbours.read(settings.downloads.hand_on)}exit 0"""


def _configs(settings: HostSettings) -> str:
    """Print the config.json of each draft, and of the models that they draft for, whatever their commits."""
    pairs = [(endpoint.model, endpoint.draft) for endpoint in settings.all_endpoints.values() if endpoint.draft]
    sources = dict.fromkeys(source for pair in pairs for source in pair if source)
    return "".join(
        f'for c in {_any_commit(settings, source)}/config.json; do [ ! -f "$c" ] ||'
        f' [ "$(wc -c <"$c")" -gt {CONFIG_SIZE} ] || carry "config $c" "$c"; done\n'
        for source in sources
    )


def _any_commit(settings: HostSettings, source: ModelSource) -> str:
    """Return a model's folder as a shell argument, with a pattern for the commit where that is part of the name."""
    if source.path or source.directory:
        return shlex.quote(host_path(settings, source, ""))
    return f"{shlex.quote(f'{settings.models.folder}/{folder_name(source)}--')}*"


def _config(row: str) -> tuple[str, str]:
    _, path, text = [*row.split(" "), ""][:3]
    return path.rpartition("/")[0], decode(text)


def parse(output: str) -> SeenModels:
    """Parse records and listings. An unreadable or invalid one is ignored: its folder is verified again."""
    entries = dict(_entry(row) for row in lines_of(output) if row.startswith("entry "))
    records = files(output)
    noted = [row.split(" ", 3)[1:] for row in lines_of(output) if row.startswith("record ")]
    opened = {row.split(" ", 1)[1] for row in lines_of(output) if row.startswith("open ")}
    folders = ((_Folder(path, store, path not in opened), m) for store, m, path in noted)
    found = (_model(folder, records.get(m) or "", entries) for folder, m in folders)
    models = tuple(model for model in found if model is not None)
    unmanaged = {row.split(" ", 1)[1] for row in lines_of(output) if row.startswith(("foreign ", "marked "))}
    foreign = unmanaged - {model.path for model in models}
    lines = lines_of(output)
    return SeenModels(
        models,
        frozenset(foreign),
        read_only="readonly=yes" in lines,
        hangs="hangs=yes" in lines,
        opened=frozenset(opened),
        share=next((folder for store, folder in _stores(lines) if not store or is_share(store)), ""),
        configs=dict(_config(row) for row in lines if row.startswith("config ")),
        links=neighbours.parse(output),
        handing_on=neighbours.parse_ports(output),
    )


def _stores(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return the file system's name and the path of the folder of all models."""
    rows = [row.split(" ") for row in lines if row.startswith("store ")]
    return [(row[1], row[2]) for row in rows if len(row) > 2]


@dataclass(frozen=True)
class _Folder:
    """A model's folder as read."""

    path: str
    store: str
    """The file system that it is on; empty where its name cannot be trusted."""
    closed: bool
    """True when only root can have changed anything in it."""


def _entry(row: str) -> tuple[str, Known]:
    _, size, mtime, ctime, inode, path = row.split(" ", 5)
    return path, (int(size), _nanoseconds(mtime), int(inode), _nanoseconds(ctime))


def _nanoseconds(time: str) -> int:
    seconds, _, fraction = time.partition(".")
    return int(seconds) * 10**9 + int(f"{fraction:0<9}"[:9])


def _is_same(noted: Known, present: Known | None) -> bool:
    """Return True if a file is the verified one. Without a ctime, only root could write to it."""
    return present is not None and noted[:3] == present[:3] and noted[3] in (None, present[3])


def _listed(folder: str, path: str) -> str:
    return f"{folder}/{path}".replace("\n", LINE_BREAK)


def _noted(manifest: Mapping[str, Any]) -> dict[str, Known]:
    return {
        file["path"]: (file["size"], file["mtime_ns"], file["inode"], file["ctime_ns"]) for file in manifest["files"]
    }


def is_share(store: str) -> bool:
    """Return True for the name of a file system that other hosts may have mounted as well (hostside/store.sh)."""
    kind = store.partition(":")[0]
    return kind in SHARES or kind.startswith("fuse.")


def _says_something(folder: _Folder, store: str, noted: Mapping[str, Known]) -> bool:
    """Return True if a record is of this folder's store, and no change of the folder can have gone unnoticed."""
    seen_by_ctime = all(ctime is not None for *_, ctime in noted.values())
    return bool(folder.store) and store == folder.store and (seen_by_ctime or folder.closed)


def _model(folder: _Folder, text: str, entries: Mapping[str, Known]) -> SeenModel | None:
    """Parse the host's record; None when it cannot be read, or does not describe the current folder."""
    try:
        manifest = json.loads(text)
        noted = _noted(manifest)
        if not _says_something(folder, manifest["store"], noted):
            return None
        return SeenModel(
            path=folder.path,
            repository=manifest["repository"],
            revisions=frozenset(manifest["revisions"]),
            commit=manifest["commit"],
            include=frozenset(manifest["include"]),
            exclude=frozenset(manifest["exclude"]),
            fetched=int(manifest["fetched"]),
            size=sum(size for size, *_ in noted.values()),
            changed=tuple(
                path
                for path, times in sorted(noted.items())
                if not _is_same(times, entries.get(_listed(folder.path, path)))
            ),
            pinned_files={file["path"]: (file["size"], file["sha256"]) for file in manifest["files"]},
            shared=is_share(folder.store),
        )
    except (ValueError, KeyError, TypeError):
        return None


# -- wanted


def wanted(settings: HostSettings, reading: HostReading) -> WantedModels:
    """Return each model folder with the job that completes it."""
    image = _image(settings, reading)
    return tuple(_wanted(settings, source, image, reading) for source in sources_of(settings))


@dataclass(frozen=True)
class _Fetcher:
    """The image in which models are fetched, and the job that pulls it."""

    image: str
    pull: str


def _image(settings: HostSettings, reading: HostReading) -> _Fetcher | None:
    for endpoint in settings.all_endpoints.values():
        digest = digest_of(endpoint, reading)
        if digest:
            return _Fetcher(f"{repository_of(endpoint.image)}@{digest}", pull_job(endpoint.image))
    return None


def _wanted(settings: HostSettings, source: ModelSource, image: _Fetcher | None, reading: HostReading) -> WantedModel:
    commit = commit_of(source, reading)
    folder = host_path(settings, source, commit or "*")
    fetch = fetch_job(settings, source, commit or source.revision, image, reading.hands_on) if image else None
    named = image.image if image else next(iter(settings.all_endpoints.values())).image
    why = "" if commit else reading.names_of(MODELS).unresolved.get(name_of(source), "")
    found = WantedModel(source, commit, folder, fetch, named, why)
    return _among_others(settings, found, reading, image) if settings.downloads.hand_on else found


def _among_others(
    settings: HostSettings, wanted: WantedModel, reading: HostReading, image: _Fetcher | None
) -> WantedModel:
    """Return the model with what the hosts of this run do for each other."""
    hand_on, present = settings.downloads.hand_on, reading[MODELS]
    why = neighbours.refusal(hand_on, wanted.source, present.links) if hand_on else None
    refusal = Refuse(why[0], code=why[1]) if why else None
    part = _part(reading.hands_on, wanted.source, wanted.commit)
    if part is not None and part.sources:
        return replace(wanted, refusal=refusal, giver=part.sources[0].host)
    if part is None or not part.keeps or image is None or reading.hands_on is None:
        return replace(wanted, refusal=refusal)
    name = f"hand-on-{job_name(wanted.source)}"
    job = neighbours.keeper_job(settings, name, image.image, wanted.folder, wanted.source, part)
    keeps = neighbours.of_run(job, neighbours.named(wanted.source, wanted.commit or ""), part, reading.hands_on)
    return replace(wanted, refusal=refusal, keeps=keeps, takers=tuple(peer.host for peer in part.takers))


def _part(hands_on: HandsOn | None, source: ModelSource, commit: str | None) -> ChainPart | None:
    return hands_on.parts.get(neighbours.named(source, commit)) if hands_on and commit else None


def job_name(source: ModelSource) -> str:
    """Return the name of the job that completes one folder, which is the folder's."""
    folder = source.directory or f"{folder_name(source)}-{hashlib.sha256(source.revision.encode()).hexdigest()[:8]}"
    return f"model-{slug(folder)}"


def fetch_job(
    settings: HostSettings, source: ModelSource, commit: str, fetcher: _Fetcher, hands_on: HandsOn | None = None
) -> Job:
    """Return the job that completes one folder: a second caller joins it, or waits."""
    name, part = job_name(source), _part(hands_on, source, commit)
    spec = {
        "repository": source.repository,
        "revision": source.revision,
        "commit": commit if COMMIT.match(commit) else None,
        "name": folder_name(source),
        "directory": source.directory,
        "include": sorted(source.include),
        "exclude": sorted(source.exclude),
        "files": {path: pin.model_dump(exclude={"path"}) for path, pin in sorted(source.pins.items())},
        "models_dir": settings.models.folder,
        "manifests": MANIFESTS,
        "stall": settings.downloads.stall_timeout,
        "pause": PAUSE,
        "rate_mib": settings.downloads.rate_mib,
        "secrets": INSIDE,
        **neighbours.in_spec(settings, source, commit, part),
    }
    hub = settings.mirrors.hub.rstrip("/")
    caches = host_script(
        "hub_caches", hub_caches=" ".join(settings.models.hub_caches), model=f"models--{folder_name(source)}"
    )
    script = (
        store_functions()
        + caches
        + neighbours.opened(name, part)
        + helper_script(
            "fetch_model",
            job_container(name),
            image=fetcher.image,
            inside=INSIDE,
            models_dir=settings.models.folder,
            manifests=MANIFESTS,
            endpoint="" if hub == Mirrors().hub else hub,
            program=packed(*FETCH_MODEL),
            hand_on=neighbours.program() if part else "",
            spec=json.dumps(spec, sort_keys=True),
            **proxy_values(settings),
        )
    )
    secrets: dict[str, Secret] = {"hub_token": settings.models.hub_token} if settings.models.hub_token else {}
    title, most = f"fetch {source.repository}", settings.downloads.parallel
    limit = FETCH_TIMEOUT
    job = Job(name, title, script, limit, secrets, at_once=most, code="RW2903", after=(fetcher.pull,))
    return neighbours.of_run(job, neighbours.named(source, commit), part, hands_on) if part and hands_on else job


def sharers(host: str, settings: HostSettings, reading: HostReading, serves: bool) -> dict[str, Sharer]:
    """Return by the model's name how a host takes part where hosts take models from each other.

    A model that it can neither take nor hand on is missing. serves: whether an endpoint of it serves now.
    """
    hand_on, present = settings.downloads.hand_on, reading[MODELS]
    link = neighbours.own_link(hand_on, present.links) if hand_on else None
    if hand_on is None or link is None or present.hangs or present.read_only:
        return {}
    by_path = {model.path: model for model in present.models}
    found: dict[str, Sharer] = {}
    for port, one in zip(settings.hand_on_ports, wanted(settings, replace(reading, hands_on=None)), strict=True):
        if one.commit and one.refusal is None:
            has = _change(one, by_path.get(one.folder), present) is None
            name = neighbours.named(one.source, one.commit)
            busy = has and port in present.handing_on
            found[name] = Sharer(host, link.address, port, has, hand_on.hub, serves, link.speed, busy=busy)
    return {name: one for name, one in found.items() if one.lacks or not (serves and _must_keep_quiet(settings))}


def _must_keep_quiet(settings: HostSettings) -> bool:
    """Return True where a transfer without a cap could take memory from an endpoint that serves (DECISIONS 22)."""
    return settings.hardware.unified_memory and settings.downloads.rate_mib is None


# -- changes


def changes(wanted: WantedModels, reading: SeenModels) -> list[Change]:
    """Fetch missing files, repair damaged ones, adopt those that Rackwright did not fetch."""
    if reading.hangs:
        return [_hung(model) for model in wanted]
    by_path = {model.path: model for model in reading.models}
    found = (_change(model, by_path.get(model.folder), reading) for model in wanted)
    return [change for change in found if change is not None]


def _hung(wanted: WantedModel) -> Change:
    folder = wanted.folder.rpartition("/")[0]
    text = (
        f"the file system of {folder} does not answer, so nothing is known of its models; next, on the host: findmnt "
        f"--target {folder}; then see to the server that it names"
    )
    return Change(f"look at {wanted.source.repository}", f"{folder} hangs", (Refuse(text, code="RW2905"),))


def _change(wanted: WantedModel, model: SeenModel | None, reading: SeenModels) -> Change | None:
    source = wanted.source
    label = f"{source.repository} at {source.revision[:12]}"
    if model is None:
        if wanted.folder in reading.foreign and not reading.read_only:
            why = f"{wanted.folder} was not made by Rackwright: what is right in it is kept"
            return _job(wanted, f"verify {label}, and complete it", why, owned=False)
        if reading.read_only:
            why = f"{wanted.folder.rpartition('/')[0]} is read-only, and not verified by this host yet"
            return _job(wanted, f"verify {label}", why, owned=False)
        return _job(wanted, f"fetch {label}", f"it is not on the host{wanted.where_from}", owned=True)
    named = source.revision in {model.commit, *model.revisions}
    if model.repository != source.repository or not (named or model.commit == wanted.commit):
        return _taken(wanted, model)
    if other := _not_locked(source, model):
        return _job(wanted, f"put {label} right", f"the lock file has other bytes: {_some(other)}", owned=False)
    if model.changed:
        return _job(wanted, f"put {label} right", f"not as verified: {_some(model.changed)}", owned=False)
    if not named:
        return _job(
            wanted, f"record that {source.revision} is {model.commit[:12]}", "it is there by its commit", owned=False
        )
    if (model.include, model.exclude) != (frozenset(source.include), frozenset(source.exclude)):
        return _job(wanted, f"complete {label}", "the file patterns are other ones", owned=False)
    if wanted.keeps is not None:
        return Change(f"hand {label} on to {few(wanted.takers)}", "it is not there", (wanted.keeps,))
    return None


def _job(wanted: WantedModel, what: str, why: str, owned: bool) -> Change:
    repository, about = wanted.source.repository, sum(pin.size for pin in wanted.source.pins.values()) if owned else 0
    if wanted.refusal is not None:
        return Change(what, why, (wanted.refusal,), fetches=repository, about=about)
    if wanted.fetch is None:
        text = f"{what}: the image {wanted.image} is not known on this host, and the download runs in it"
        return Change(what, why, (Refuse(text, final=False, code="RW2902"),), fetches=repository, about=about)
    owns = (Owned("model", wanted.folder),) if owned else ()
    return Change(f"{what} into {wanted.folder}", why, (wanted.fetch,), owns=owns, fetches=repository, about=about)


def _not_locked(source: ModelSource, model: SeenModel) -> list[str]:
    """Return the files whose verified bytes differ from the lock file's."""
    pins = source.pins
    return [
        path
        for path, (size, sha256) in sorted(model.pinned_files.items())
        if (pin := pins.get(path)) and (pin.size, pin.sha256 or sha256) != (size, sha256)
    ]


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")


def hash_changes(
    settings: HostSettings, reading: SeenModels, why: str = "models.verify_deep asks for it"
) -> list[Change]:
    """Hash each model's files again; the next reading shows damaged ones (DECISIONS 20). why: who asks for it."""
    pins = {(source.repository, source.commit): source.pins for source in sources_of(settings)}
    return [_hash_change(model, pins.get((model.repository, model.commit), {}), why) for model in reading.models]


def _hash_change(model: SeenModel, pins: Mapping[str, FilePin], why: str) -> Change:
    name = f"{HASH_JOB}{slug(model.path.rpartition('/')[2])}"
    job = Job(name, f"hash {model.path}", _hash_script(model, pins), timeout=FETCH_TIMEOUT, code="RW2904")
    what = f"hash the {len(model.pinned_files)} files of {model.path}"
    return Change(what, f"{why}; {model.size / 2**30:.1f} GiB to read", (job,))


def _hash_script(model: SeenModel, pins: Mapping[str, FilePin]) -> str:
    """Return the script that hashes a model's files: the lock file's hashes come first, then the manifest's."""
    locked = {path: pin.sha256 for path, pin in pins.items() if pin.sha256}
    sums = "\n".join(f"{locked.get(path, sha256)} {path}" for path, (_, sha256) in sorted(model.pinned_files.items()))
    size = max(1, model.size >> 20)
    record, hashed = (f"{MANIFESTS}/{model.path.rpartition('/')[2]}.{kind}" for kind in ("json", HASHED))
    return job_script("hash_model", place=model.path, sums=sums, size=size, record=record, hashed=hashed)


def remove_script(folder: str) -> str:
    """Return shell lines that remove a recorded model folder: one with Rackwright's manifest, on no share."""
    script = host_script(
        "remove_model", place=folder, manifest=MANIFEST, manifests=MANIFESTS, shares=" ".join(sorted(SHARES))
    )
    return store_functions() + script


def _taken(wanted: WantedModel, model: SeenModel) -> Change:
    source = wanted.source
    text = (
        f"{model.path} holds {model.repository} at {model.commit}, and the settings want {source.repository} at "
        f"{source.revision} there; set another `directory` for it in group_vars, or remove the folder"
    )
    return Change(
        f"fetch {source.repository} at {source.revision[:12]}",
        "its folder is taken",
        (Refuse(text, code="RW2901", mistake=FIX),),
    )


def report(wanted: WantedModels, _: SeenModels) -> str:
    """List the revisions that this host resolves on its own."""
    return "\n".join(not_asked({name_of(model.source): model.unresolved for model in wanted if model.unresolved}))


TAKES = frozenset({ENDPOINTS, "models", "mirrors", "downloads", "proxy"})
"""Sections of the settings that it is handed."""
MODELS: Concern[WantedModels, SeenModels] = Concern("models", read, parse, wanted, changes, report, takes=TAKES)
