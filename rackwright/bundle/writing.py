"""Writes a bundle: fetches what is missing, and closes it with its list, its sums and its signature."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright import __version__
from rackwright.bundle.catalog import FILE, Catalog, ModelFile, read_catalog, text_of
from rackwright.bundle.contents import Contents
from rackwright.bundle.fetching import Wanted, fetch
from rackwright.bundle.packages import packages_for
from rackwright.bundle.signature import SIGNATURE, SUMS
from rackwright.bundle.store import Store, sums_of
from rackwright.bundle.tool import add_tool, described
from rackwright.hostside.fetch_model.run import gib
from rackwright.messages import RackwrightError, writing
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import FilePin
from rackwright.sources.http import Client

INDEX = "Packages"
"""apt's list of package files."""
UNFINISHED = f"{FILE}.unfinished"
SHOWN = 5.0
"""Seconds between two lines of progress."""


@dataclass
class BundleWriter:
    """A bundle that is being written."""

    store: Store
    say: Callable[[str], None]
    catalog: Catalog = field(default_factory=lambda: Catalog(rackwright=__version__))
    earlier: Catalog = field(default_factory=Catalog)
    """Remains of an earlier command."""
    fetched: int = 0
    """Bytes that came from elsewhere."""

    def begin(self) -> None:
        """Count on what an earlier command has put there, and take the seal off: it is unfinished from now on."""
        folder = self.store.folder
        for name in (UNFINISHED, FILE):
            if (folder / name).is_file():
                (folder / name).replace(folder / UNFINISHED)
                try:
                    self.earlier = read_catalog(folder, UNFINISHED)
                    self.store.take_up(self.earlier)
                except RackwrightError as error:
                    self.say(f"{error}; everything is fetched again")
                break
        for name in (FILE, SUMS, SIGNATURE):
            (folder / name).unlink(missing_ok=True)

    def take(self, client: Client, wanted: Wanted) -> str:
        """Have one file in the bundle; returns its SHA-256."""
        if wanted.sha256 and self.store.has(wanted.sha256):
            return wanted.sha256
        path = self.store.incoming(wanted.sha256 or wanted.url)
        sha256 = fetch(client, wanted, path, self._progress(wanted))
        if self.store.has(sha256):
            path.unlink()
        else:
            self.store.add(path, sha256)
        self.note()
        return sha256

    def _progress(self, wanted: Wanted) -> Callable[[int], None]:
        begun, here, shown = time.monotonic(), 0, 0.0

        def progress(more: int) -> None:
            nonlocal here, shown
            here += more
            self.fetched += more
            passed = time.monotonic() - begun
            if passed - shown >= SHOWN:
                shown = passed
                whole = f" of {wanted.size >> 20}" if wanted.size else ""
                self.say(f"  {wanted.name}: {here >> 20}{whole} MiB, {here / passed / (1 << 20):.1f} MiB/s")

        return progress

    def note(self) -> None:
        """Write down what is stored, for a command after this one is interrupted."""
        stored = {**self.earlier.stored, **self.store.stored}
        models = {key: {**self.earlier.models.get(key, {}), **files} for key, files in self.catalog.models.items()}
        document = self.catalog.model_copy(update={"stored": stored, "models": {**self.earlier.models, **models}})
        path = self.store.folder / UNFINISHED
        with writing(path):
            new = path.with_suffix(".new")
            new.write_text(text_of(document))
            new.replace(path)

    def fill(self, contents: Contents) -> None:
        """Fetch images, models and encodings. Raises RackwrightError where the disk is too small for them."""
        for image in contents.images.values():
            image.ask()
        self._refuse_small_disk(contents)
        for number, image in enumerate(contents.images.values(), 1):
            size = gib(sum(image.blobs.values()))
            self.say(f"image {number} of {len(contents.images)}: {image.reference}, {size}")
            for _, content in image.manifests.values():
                self.store.add_bytes(content)
            for wanted in image.wanted():
                self.take(image.client, wanted)
            self.catalog.images.append(image.row())
        for number, (key, model) in enumerate(contents.models.items(), 1):
            size = gib(sum(pin.size for pin in model.source.pins.values()))
            name = f"{model.source.repository} at {model.source.revision[:12]}"
            self.say(f"model {number} of {len(contents.models)}: {name}, {size}")
            files = self.catalog.models.setdefault(key, {})
            for pin, wanted in model.wanted():
                sha256 = pin.sha256 or self._earlier_sha256(key, pin)
                sha256 = self.take(model.client, replace(wanted, sha256=sha256))
                files[pin.path] = ModelFile(size=pin.size, sha256=sha256, blob=pin.blob)
                self.note()
        for name, (_, wanted, client) in contents.encodings.items():
            self.catalog.encodings[name] = self.take(client, wanted)

    def _refuse_small_disk(self, contents: Contents) -> None:
        sizes = {sha256: size for image in contents.images.values() for sha256, size in image.blobs.items()}
        for key, model in contents.models.items():
            for pin in model.source.pins.values():
                sizes[pin.sha256 or self._earlier_sha256(key, pin) or f"{key} {pin.path}"] = pin.size
        missing = [size for sha256, size in sizes.items() if sha256 not in self.earlier.stored]
        needed = sum(missing) + self.store.cutting(missing)
        free = shutil.disk_usage(self.store.folder).free
        if needed > free:
            text = f"{self.store.folder} has {gib(free)} free, and {gib(needed)} are still to come"
            raise RackwrightError(f"{text}; next: --out on a larger disk", code="RW3943")

    def _earlier_sha256(self, model: str, pin: FilePin) -> str:
        """Return the SHA-256 of a file of which the lock has git's hash alone; empty where it has not come yet."""
        file = self.earlier.models.get(model, {}).get(pin.path)
        return file.sha256 if file and (file.size, file.blob) == (pin.size, pin.blob) else ""

    def add_packages(self, name: str, hosts: Sequence[HostSettings]) -> None:
        """Have one system's packages in the bundle. hosts: settings of those that may have that system."""
        system, client = packages_for(name, hosts), Client(hosts[0])
        size = sum(one.size for one in system.packages.values()) >> 20
        self.say(f"packages for {name}: {len(system.packages)}, {size} MiB")
        for one in system.packages.values():
            self.take(client, Wanted(f"{name} {one.file}", one.url, one.size, one.sha256))
        files = {one.file: one.sha256 for one in system.packages.values()}
        self.catalog.packages[name] = {**files, INDEX: self.store.add_bytes(system.index.encode())}

    def add_tool(self) -> None:
        """Have Rackwright itself in the bundle, for a control machine that reaches no index."""
        self.say(f"Rackwright itself, for {described()}")
        self.catalog.tool = add_tool(self.store.folder)

    def close(self) -> int:
        """Write list and sums, and remove what is no longer needed; returns how many files the bundle has."""
        folder = self.store.folder
        needed = {sha256 for _, sha256 in self.catalog.names()}
        self.store.stored = {sha256: one for sha256, one in self.store.stored.items() if sha256 in needed}
        self.catalog.stored = dict(self.store.stored)
        if missing := self.catalog.missing():
            raise RackwrightError(
                f"not in the bundle: {', '.join(missing[:3])}; next: the same command again", code="RW3823"
            )
        self.store.drop_others()
        with writing(folder / FILE):
            (folder / FILE).write_text(text_of(self.catalog))
            paths = [FILE, *self.catalog.files()]
            (folder / SUMS).write_text(sums_of(folder, paths))
            (folder / UNFINISHED).unlink(missing_ok=True)
        return len(paths)


def written_at(folder: Path) -> bool:
    """Return True if a folder is new, empty, or holds a bundle, finished or not."""
    return (
        not folder.exists()
        or not any(folder.iterdir())
        or any((folder / name).exists() for name in (FILE, UNFINISHED, "incoming"))
    )
