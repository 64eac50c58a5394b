"""`rackwright.lock.yml` at the site's root: which digest an image's tag is, which commit a model's revision is.

Without it, each host keeps what it saw first. With it, all hosts get the same bytes, and moving to others is an
edit that shows in a diff. All inventories of a site share the file, so that they cannot drift apart; hosts for which
the same names lead to other servers (a lab, a network of its own) name another one by the setting `paths.lock_file`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from rackwright.concerns.image import IMAGE, digest_of
from rackwright.concerns.models import MODELS, SeenModel, commit_of, name_of, sources_of
from rackwright.hostside.fetch_model.files import is_plain
from rackwright.messages import SettingsError, writing
from rackwright.plan.concern import HostReading
from rackwright.profiles.locked import FILE_NAME, LARGEST, LOCK_FILE, NAME, LockedProfile
from rackwright.settings.from_bundle import from_bundle
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.image_file import ImageFile
from rackwright.settings.sections import BLOB, COMMIT, CONTROL, DIGEST, REPOSITORY, SHA256, FilePin, ModelSource
from rackwright.settings.sections import IMAGE as IMAGE_NAME
from rackwright_engines.quick_yaml import LOADER

FILE = LOCK_FILE
HEAD = """\
# Written by `rackwright pin INVENTORY`; keep it under version control.
# To move to other bytes, change an entry or remove it, run the deploy, and lock again.
"""


STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class LockedFile(BaseModel):
    """One file of a model: its size in bytes, and SHA-256 or git's blob hash, whichever is known."""

    model_config = STRICT
    size: int = Field(ge=0, lt=1 << 63)
    sha256: str | None = Field(default=None, pattern=SHA256)
    blob: str | None = Field(default=None, pattern=BLOB)


class LockedModel(BaseModel):
    """One repository at one revision."""

    model_config = STRICT
    commit: str
    files: dict[str, LockedFile] = {}


class LockedImageFile(BaseModel):
    """One file of an image by its SHA-256: size in bytes, a manifest's media type, and the architecture it is for."""

    model_config = STRICT
    size: int = Field(ge=0, lt=1 << 63)
    kind: str = Field(default="", pattern=r"^(application/[a-z0-9.+-]+)?$")
    machine: str = Field(default="", pattern=r"^[a-z0-9]*$")


ImageFiles = Mapping[str, Mapping[str, LockedImageFile]]
"""Files by SHA-256, by the image's digest."""


class _Document(BaseModel):
    model_config = STRICT
    version: int
    images: dict[str, str] = {}
    image_files: dict[str, dict[str, LockedImageFile]] = {}
    models: dict[str, LockedModel] = {}
    profiles: dict[str, LockedProfile] = {}


@dataclass(frozen=True)
class Lock:
    """Digest by image reference, model by `REPOSITORY@REVISION`, profile by its name, and files by an image's digest.

    An image's files are listed where hosts hand images on.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, LockedModel] = field(default_factory=dict)
    profiles: Mapping[str, LockedProfile] = field(default_factory=dict)
    image_files: ImageFiles = field(default_factory=dict)

    def commit(self, source: ModelSource) -> str | None:
        """Return the commit that a model is locked to."""
        locked = self.models.get(name_of(source))
        return locked.commit if locked else None


class Locks:
    """The lock files of a site, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, Lock | SettingsError] = {}

    def of(self, settings: HostSettings) -> Lock:
        """Return the lock that counts for a host. Raises SettingsError saying what is wrong with its file."""
        name = settings.paths.lock_file
        if name not in self._read:
            self._read[name] = self._loaded(name)
        found = self._read[name]
        if isinstance(found, SettingsError):
            raise found
        return found

    def _loaded(self, name: str) -> Lock | SettingsError:
        try:
            return load_lock(self._root, name)
        except SettingsError as error:
            return error

    def pin(self, settings: HostSettings) -> HostSettings:
        """Return a host's settings with the digests and commits of its lock."""
        return pinned(settings, self.of(settings))


def load_lock(root: Path, name: str = FILE) -> Lock:
    """Return a lock of a site; an empty one without a file. Raises SettingsError saying what is wrong with it."""
    path = root / name
    if not os.path.lexists(path):
        return Lock()
    if not path.is_file():
        raise SettingsError(f"{path} is not a lock file: not a regular file; next: ls -l {path}", code="RW0916")
    try:
        content = _plain_values(path)
        if not isinstance(content, dict):
            raise ValueError("it must have keys, as version")
        document = _Document.model_validate(content)
        if document.version != 1:
            raise ValueError(f"version {document.version} is unknown")
        if wrong := [*_wrong(document)]:
            raise ValueError("; ".join(wrong[:3]))
    except (yaml.YAMLError, ValidationError, OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not a lock file: {_short(error)}\n{NEXT.format(name)}", code="RW0916") from None
    return Lock(document.images, document.models, document.profiles, document.image_files)


NEXT = "next: git checkout {0}, or remove the keys in this message and: rackwright pin INVENTORY"


def _plain_values(path: Path) -> Any:
    """Return what the file says. Raises ValueError for a key that comes twice, of which YAML takes the last."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    loader = LOADER(path.read_text())
    node = loader.get_single_node()
    _refuse_twice(node, (), set())
    return loader.construct_document(node) if node is not None else None


def _refuse_twice(node: yaml.Node | None, above: tuple[str, ...], visited: set[int]) -> None:
    if not isinstance(node, yaml.MappingNode) or id(node) in visited:
        return
    visited.add(id(node))
    names = [str(key.value) for key, _ in node.value]
    counts = Counter(names)
    for name, (key, value) in zip(names, node.value, strict=True):
        if counts[name] > 1:
            raise ValueError(f"{_dotted(*above, name)}, line {key.start_mark.line + 1}: comes twice")
        _refuse_twice(value, (*above, name), visited)


def _wrong(document: _Document) -> Iterator[str]:
    """Yield what the types of the values do not say, each with its key."""
    wrong = [name for name, digest in document.images.items() if not DIGEST.match(digest)]
    wrong += [name for name, model in document.models.items() if not COMMIT.match(model.commit)]
    if wrong:
        yield f"no digest or commit at {', '.join(map(_dotted, wrong))}"
    for name in document.images:
        if not re.match(IMAGE_NAME, name):
            yield f"{_dotted('images', name)}: no image with its tag, as IMAGE:TAG"
    for digest, files in document.image_files.items():
        if not DIGEST.match(digest) or not all(re.match(SHA256, sha256) for sha256 in files):
            yield f"{_dotted('image_files', digest)}: not an image's digest, or files without a SHA-256 as name"
    for name, model in document.models.items():
        repository, _, revision = name.partition("@")
        if not re.match(REPOSITORY, repository) or not revision:
            yield f"{_dotted('models', name)}: no model, as REPOSITORY@REVISION"
        for path, file in model.files.items():
            if not is_plain(path) or CONTROL.search(path):
                yield f"{_dotted('models', name, 'files', path)}: no name of a file below the model's folder"
            if not (file.sha256 or file.blob):
                yield f"{_dotted('models', name, 'files', path)}: neither sha256 nor blob"
    yield from _wrong_profiles(document.profiles)


def _wrong_profiles(profiles: Mapping[str, LockedProfile]) -> Iterator[str]:
    for name, profile in profiles.items():
        if not NAME.fullmatch(name) or not all(map(FILE_NAME.fullmatch, profile.files)):
            yield f"{_dotted('profiles', name)}: not the name of a profile, or of its files"
        elif not profile.is_whole:
            yield f"{_dotted('profiles', name)}: its text is not what sha256 says; settings go into group_vars/"


def _dotted(*keys: object) -> str:
    return ".".join(ascii(str(key))[1:-1] for key in keys)


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{_dotted(*row['loc'])}: {_problem(row)}" for row in error.errors()[:3])
    return " ".join(str(error).split()) or type(error).__name__


def _problem(row: ErrorDetails) -> str:
    return "unknown key" if row["type"] == "extra_forbidden" else row["msg"]


def write_lock(root: Path, lock: Lock, name: str = FILE) -> Path:
    """Replace a lock file of a site atomically, sorted, so that equal locks are equal files. Raises RackwrightError."""
    document = {
        "version": 1,
        "images": dict(sorted(lock.images.items())),
        **({"image_files": _plain_files(lock.image_files)} if lock.image_files else {}),
        "models": {name: _plain(model) for name, model in sorted(lock.models.items())},
        **({"profiles": _profiles(lock)} if lock.profiles else {}),
    }
    path = root / name
    target = path.resolve()  # a link to a shared lock file stays one
    new = target.with_name(f"{target.name}.new")
    with writing(path):
        new.write_text(HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True))
        new.replace(target)
    return path


def _profiles(lock: Lock) -> dict[str, Any]:
    """Return the profiles as they are written; the order of their files is theirs."""
    return {name: {"sha256": one.sha256, "files": dict(one.files)} for name, one in sorted(lock.profiles.items())}


def _plain_files(images: ImageFiles) -> dict[str, Any]:
    return {
        digest: {sha256: file.model_dump(exclude_defaults=True) for sha256, file in sorted(files.items())}
        for digest, files in sorted(images.items())
    }


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as lines, so that a diff of the lock file shows what a profile changes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _plain(model: LockedModel) -> dict[str, Any]:
    files = {path: file.model_dump(exclude_none=True) for path, file in sorted(model.files.items())}
    return {"commit": model.commit, "files": files}


def pinned(settings: HostSettings, lock: Lock) -> HostSettings:
    """Return the settings of a run: with the lock's digests and commits, and from its bundle, if it has one."""
    return from_bundle(locked(settings, lock))


def locked(settings: HostSettings, lock: Lock) -> HostSettings:
    """Return the settings with the lock's digests and commits where they name none themselves."""
    return _with_pins(settings, lock).with_image_files(_image_files(lock))


def _image_files(lock: Lock) -> Mapping[str, tuple[ImageFile, ...]]:
    return {
        digest: tuple(ImageFile(sha256, one.size, one.kind, one.machine) for sha256, one in sorted(files.items()))
        for digest, files in lock.image_files.items()
    }


def _with_pins(settings: HostSettings, lock: Lock) -> HostSettings:
    if not settings.endpoints:
        return settings.model_copy(update=_pins(settings, lock))
    # The overlays are plain values, as in the files; each gets the pins of the endpoint that it makes.
    made = settings.all_endpoints
    first = {name: made.get(name) or made[f"{name}-0"] for name in settings.endpoints}  # replicas are numbered
    overlays = {name: {**overlay, **_plain_pins(first[name], lock)} for name, overlay in settings.endpoints.items()}
    return settings.model_copy(update={"endpoints": overlays})


def _pins(endpoint: EndpointSettings, lock: Lock) -> dict[str, Any]:
    """Return the keys of an endpoint that the lock decides."""
    found: dict[str, Any] = {}
    digest = lock.images.get(endpoint.image)
    if endpoint.image_digest is None and digest:
        found["image_digest"] = digest
    for key in ("model", "draft"):
        source = getattr(endpoint, key)
        locked = lock.models.get(name_of(source)) if source else None
        if locked:
            pins = tuple(FilePin(path=path, **file.model_dump()) for path, file in sorted(locked.files.items()))
            found[key] = source.model_copy(update={"revision": locked.commit, "files": pins})
    return found


def _plain_pins(endpoint: EndpointSettings, lock: Lock) -> dict[str, Any]:
    return {
        key: value.model_dump(exclude_unset=True) if isinstance(value, ModelSource) else value
        for key, value in _pins(endpoint, lock).items()
    }


def recorded(settings: HostSettings, reading: HostReading) -> Lock:
    """Return what one host has, of what its settings ask for. `settings` are those without the lock."""
    images = {
        endpoint.image: digest
        for endpoint in settings.all_endpoints.values()
        if (digest := digest_of(endpoint, reading)) and reading[IMAGE].has(endpoint.image, digest)
    }
    models = {name_of(source): model for source in sources_of(settings) if (model := _locked(source, reading))}
    return Lock(images, models)


def _locked(source: ModelSource, reading: HostReading) -> LockedModel | None:
    commit, models = commit_of(source, reading), reading[MODELS].models
    model = next((one for one in models if (one.repository, one.commit) == (source.repository, commit)), None)
    return _from_host(model) if model and not model.changed else None


def _from_host(model: SeenModel) -> LockedModel:
    files = {path: LockedFile(size=size, sha256=sha256) for path, (size, sha256) in model.pinned_files.items()}
    return LockedModel(commit=model.commit, files=files)


def joined(locks: Iterable[tuple[str, Lock]]) -> Lock:
    """One lock of several hosts' locks, by host name. Raises SettingsError where two hosts have different bytes."""
    images: dict[str, tuple[str, str]] = {}
    models: dict[str, tuple[str, LockedModel]] = {}
    image_files: dict[str, Mapping[str, LockedImageFile]] = {}
    problems: list[str] = []
    for host, lock in locks:
        for digest, files in lock.image_files.items():
            image_files[digest] = {**image_files.get(digest, {}), **files}
        for name, digest in lock.images.items():
            first, first_digest = images.setdefault(name, (host, digest))
            problems += (
                [f"{name} is {first_digest} on {first} and {digest} on {host}"] if first_digest != digest else []
            )
        for name, model in lock.models.items():
            first, first_model = models.setdefault(name, (host, model))
            differ = first_model.commit != model.commit
            problems += [f"{name} is {first_model.commit} on {first} and {model.commit} on {host}"] if differ else []
            problems += [] if differ else _other_bytes(name, (first, first_model), (host, model))
            models[name] = (first, LockedModel(commit=first_model.commit, files={**first_model.files, **model.files}))
    if problems:
        text = "\n".join(f"  {problem}" for problem in problems)
        raise SettingsError(
            f"the hosts do not have the same bytes:\n{text}\nlock those that are right: --limit HOST", code="RW0917"
        )
    return Lock(
        {name: digest for name, (_, digest) in images.items()},
        {name: model for name, (_, model) in models.items()},
        image_files=image_files,
    )


def _other_bytes(name: str, one: tuple[str, LockedModel], other: tuple[str, LockedModel]) -> list[str]:
    """Return the files of one commit of which two hosts have different bytes, as sentences."""
    (first, mine_model), (host, model) = one, other
    files = ((path, mine_model.files[path], pin) for path, pin in model.files.items() if path in mine_model.files)
    return [
        f"{name}: {path} has {_bytes(mine)} on {first} and {_bytes(theirs)} on {host}"
        for path, mine, theirs in files
        if not _agree(mine, theirs)
    ]


def _agree(one: LockedFile, other: LockedFile) -> bool:
    hashes = ((one.sha256, other.sha256), (one.blob, other.blob))
    return one.size == other.size and all(mine == theirs for mine, theirs in hashes if mine and theirs)


def _bytes(pin: LockedFile) -> str:
    return f"{pin.size} bytes, {(pin.sha256 or pin.blob or 'no hash')[:12]}"
