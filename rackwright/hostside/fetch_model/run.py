"""One model from end to end: compare present and wanted files, fetch the difference, verify, move into place."""

from __future__ import annotations

import fnmatch
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rackwright.hostside.fetch_model import neighbours
from rackwright.hostside.fetch_model.child import Supervisor, in_child
from rackwright.hostside.fetch_model.failures import REPEATED, TRIES, DownloadError
from rackwright.hostside.fetch_model.files import (
    close,
    closed,
    file_times,
    is_closed,
    is_plain,
    is_read_only,
    same_bytes,
    unchanged,
    verified,
)
from rackwright.hostside.fetch_model.hub import File, Hub, load_library
from rackwright.hostside.fetch_model.partial import AT_ONCE, Partial
from rackwright.hostside.fetch_model.records import Records

LONGEST_WAIT = 900
"""Longest wait in seconds that the hub may ask for before it counts as an error."""
STORES = "stores"
"""The file that lists the store of each folder."""
SPARE = 64 << 20
"""Bytes of the disk that stay free."""


class Model:
    """One repository at one revision. `spec` in the format of models.py."""

    def __init__(self, spec: Mapping[str, Any], token: str | None) -> None:
        self.spec, self.token = spec, token
        self.repository: str = spec["repository"]
        self.revision: str = spec["revision"]
        self.rate: float | None = spec["rate_mib"] * (1 << 20) if spec["rate_mib"] else None
        self.pause: float = spec["pause"]
        self.waits = False
        self.hand_on: Mapping[str, Any] | None = spec.get("hand_on")
        self.records = Records(Path(spec["manifests"]), Path(spec["secrets"]) / STORES)
        self.target = Path(spec["models_dir"]) / (spec["directory"] or spec["name"])

    def run(self) -> None:
        """Make the model complete on this host. Raises DownloadError."""
        commit, files = self._known() or self._listed() or self._asked()
        self.target = self._place(commit)
        manifest = self.records.read(self.target)
        if manifest and manifest["commit"] != commit:
            raise DownloadError("moved", manifest["commit"])
        partial = Partial(self.target, self.records)
        if is_read_only(self.target.parent) or not partial.make():
            self._use_read_only(commit, files, manifest)
            return
        total = sum(file["size"] for file in files)
        say(f"{self.repository} at {commit[:12]}: {len(files)} files, {gib(total)}")
        if partial.open(lambda: self._wait_for_other(partial)):
            partial.close()
            self.run()
            return
        ready = self._there(files, manifest, partial)
        if self.hand_on is not None and not self._take(commit, files, ready, partial):
            self.run()
            return
        self._fetch(commit, [file for file in files if file["path"] not in ready], partial, total)
        self._finish(commit, files, ready, manifest, partial)

    # -- wanted files

    def _place(self, commit: str) -> Path:
        return Path(self.spec["models_dir"]) / (self.spec["directory"] or f"{self.spec['name']}--{commit[:12]}")

    def _known(self) -> tuple[str, list[File]] | None:
        """Return commit and files of the manifest, when they are the wanted ones: the hub is not needed."""
        commit = self.spec["commit"]
        manifest = self.records.read(self._place(commit)) if commit else None
        wanted = [commit, sorted(self.spec["include"]), sorted(self.spec["exclude"])]
        if not manifest or [manifest[key] for key in ("commit", "include", "exclude")] != wanted:
            return None
        files = [{key: file[key] for key in ("path", "size", "sha256", "blob")} for file in manifest["files"]]
        return (commit, files) if not self._against_the_lock(files) else None

    def _listed(self) -> tuple[str, list[File]] | None:
        """Return commit and files of the lock, where other hosts hand them on: the hub is not needed."""
        commit, locked = self.spec["commit"], self.spec["files"]
        alone = self.hand_on is None or (self.hand_on["origin"] and not self.hand_on["sources"])
        if alone or not (commit and locked):
            return None
        return commit, self._chosen([{"path": path, **pin} for path, pin in locked.items()])

    def _asked(self) -> tuple[str, list[File]]:
        """Return commit and files of the hub."""
        revision = self.spec["commit"] or self.revision
        say(f"asking the hub for {self.repository} at {revision}")
        supervisor = Supervisor(max(60.0, float(self.spec["stall"])), None)
        found = self._again(lambda: self._hub(slow=False).resolve(revision), supervisor)
        files = self._chosen(found["files"])
        wrong = self._against_the_lock(files)
        if wrong:
            raise DownloadError("locked", ", ".join(wrong[:3]))
        return found["commit"], [self._pinned(file) for file in files]

    def _against_the_lock(self, files: list[File]) -> list[str]:
        """Return files that differ from the lock file, or that it lacks; none where it does not list files."""
        locked = self.spec["files"]
        present = {file["path"]: file for file in files}
        wrong = [path for path, file in present.items() if path not in locked or not same_bytes(locked[path], file)]
        gone = [path for path in locked if path not in present and self._is_chosen({"path": path})]
        return sorted([*wrong, *gone]) if locked else []

    def _pinned(self, file: File) -> File:
        """Return a file with the SHA-256 of the lock, which is stronger than git's hash."""
        return {**file, "sha256": file["sha256"] or self.spec["files"].get(file["path"], {}).get("sha256")}

    def _chosen(self, files: list[File]) -> list[File]:
        chosen = [file for file in files if self._is_chosen(file)]
        if not chosen:
            raise DownloadError("nothing")
        bad = [file["path"] for file in chosen if not is_plain(file["path"])]
        if bad:
            raise DownloadError("name", ascii(bad[0]))
        return chosen

    def _is_chosen(self, file: File) -> bool:
        include, exclude = self.spec["include"], self.spec["exclude"]
        return (not include or _any(file, include)) and not _any(file, exclude)

    def _wait_for_other(self, partial: Partial) -> None:
        if not self.waits:
            say(f"another process is fetching into {partial.folder}: waiting for it")
        self.waits = True
        time.sleep(1)

    # -- a store that is filled by other systems

    def _use_read_only(self, commit: str, files: list[File], manifest: dict[str, Any] | None) -> None:
        """Use a folder that cannot be written to when all of it is right. Raises DownloadError otherwise."""
        noted = {found["path"]: found for found in manifest["files"]} if manifest else {}
        before = self._seen_before(files, noted)
        found = {file["path"]: self._seen(file, noted, before) for file in files}
        missing = sorted(path for path, entry in found.items() if entry is None)
        if missing:
            raise DownloadError("readonly", f"{len(missing)} of {len(files)} files: {', '.join(missing[:3])}")
        self._note(commit, [entry for entry in found.values() if entry], manifest)
        say(f"{self.target}: read-only, complete and verified, {len(files)} files")

    def _seen_before(self, files: list[File], noted: Mapping[str, File]) -> dict[Path, File]:
        """Return times and inodes of the target's files that must be read, from before the reading."""
        paths = [self.target / file["path"] for file in files if self._known_there(file, noted) is None]
        return file_times(path for path in paths if not path.is_symlink())

    def _known_there(self, file: File, noted: Mapping[str, File]) -> File | None:
        """Return the manifest's entry of a target's file, when the file need not be read."""
        entry, path = noted.get(file["path"]), self.target / file["path"]
        return entry if entry and same_bytes(entry, file) and unchanged(entry, path) else None

    def _seen(self, file: File, noted: Mapping[str, File], before: Mapping[Path, File]) -> File | None:
        return self._known_there(file, noted) or self._verify(file, self.target / file["path"], before)

    # -- present files

    def _there(self, files: list[File], manifest: dict[str, Any] | None, partial: Partial) -> dict[str, File]:
        """Return the manifest entries of verified files, in the target or in the partial folder."""
        noted = {found["path"]: found for found in manifest["files"]} if manifest else {}
        ready = partial.done()
        missing = [file for file in files if file["path"] not in ready]
        before = self._seen_before(missing, noted)
        for file in missing:
            found = self._seen(file, noted, before) or self._verify(file, partial.folder / file["path"])
            if found:
                ready[file["path"]] = found
        return ready

    def _verify(self, file: File, path: Path, before: Mapping[Path, File] | None = None) -> File | None:
        if not path.is_file() or path.stat().st_size != file["size"]:
            return None
        say(f"verifying {path} ({gib(file['size'])})")
        return verified(file, path, lambda: None, before)

    # -- other hosts of the run

    def _take(self, commit: str, files: list[File], ready: Mapping[str, File], partial: Partial) -> bool:
        """Take missing files from other hosts, and hand on what is in the partial folder.

        Returns False where another process has filled the folder. Raises DownloadError.
        """
        assert self.hand_on is not None
        missing = [file for file in files if file["path"] not in ready]
        self._room(sum(file["size"] for file in missing) - partial.unfinished(), sum(file["size"] for file in files))
        in_child(lambda: partial.copy_cached(self.repository, commit, missing), self._patient(partial))
        inside = [file for file in files if not unchanged_at(ready, file, self.target)]
        partial.close()  # the program that hands on locks the folder itself
        why = neighbours.run(self.hand_on, partial.folder, inside)
        if not partial.make() or partial.open(lambda: self._wait_for_other(partial)):
            partial.close()
            return False
        in_child(lambda: partial.adopt_all(missing), self._patient(partial))
        if any(file["path"] not in partial.done() for file in missing) and not self.hand_on["origin"]:
            raise DownloadError("neighbours", why or "files are missing")
        return True

    def _patient(self, partial: Partial) -> Supervisor:
        return Supervisor(float(self.spec["stall"]), None, lambda: 0, partial.last_work)

    # -- fetch the difference

    def _fetch(self, commit: str, files: list[File], partial: Partial, total: int) -> None:
        files = [file for file in files if file["path"] not in partial.done()]
        if not files:
            return
        missing = sum(file["size"] for file in files)
        before, resumed = partial.bytes(), partial.unfinished()
        self._room(missing - resumed, total)
        if resumed:
            say(f"going on where an earlier run stopped: {gib(resumed)} of unfinished files are here")

        def tell(now: int, rate: float) -> None:
            done = max(0, min(total, total - missing + resumed + now - before))
            say(f"{gib(done)} of {gib(total)} ({100 * done // max(1, total)}%), {rate / (1 << 20):.1f} MiB/s")

        supervisor = Supervisor(float(self.spec["stall"]), self.rate, partial.bytes, partial.last_work, tell)
        self._again(lambda: self._fetch_all(commit, files, partial), supervisor)

    def _fetch_all(self, commit: str, files: list[File], partial: Partial) -> None:
        """Fetch all remaining files, some at a time; runs in the child."""
        hub, done = self._hub(slow=self.rate is not None), partial.done()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            todo = [pool.submit(partial.fetch, hub, commit, file) for file in files if file["path"] not in done]
            try:
                for task in todo:
                    task.result()
            except BaseException:
                for task in todo:
                    task.cancel()
                raise

    def _hub(self, slow: bool) -> Hub:
        # Longer than the supervisor's limit, so that the supervisor reports a stall.
        return Hub(self.repository, self.token, slow, wait=2 * float(self.spec["stall"]))

    def _room(self, more: int, total: int) -> None:
        free = shutil.disk_usage(self.target.parent).free
        if more + SPARE > free:
            raise DownloadError("full", f"It needs {gib(more)} more of its {gib(total)}, and {gib(free)} are free.")

    def _again(self, task: Callable[[], Any], supervisor: Supervisor) -> Any:
        """Try, wait as the hub asks or a little longer each time, and retry. Raises the last DownloadError."""
        load_library()
        for number in range(1, TRIES + 1):
            try:
                return in_child(task, supervisor)
            except DownloadError as failure:
                wait = failure.wait or self.pause * number * number
                if failure.kind not in REPEATED or number == TRIES or wait > LONGEST_WAIT:
                    raise
                say(f"{_cause(failure)}; try {number + 1} of {TRIES} in {wait:.0f} s")
                time.sleep(wait)
        raise AssertionError("not reached")

    # -- move into place

    def _finish(
        self, commit: str, files: list[File], ready: dict[str, File], manifest: dict[str, Any] | None, partial: Partial
    ) -> None:
        ready = {**ready, **partial.done()}
        entries = [self._still(file, ready.get(file["path"]), partial) for file in files]
        if manifest or all(unchanged(found, self.target / found["path"]) for found in entries):
            self._move_files(entries, partial)
            close(self.target)
            self._note(commit, entries, manifest)
            partial.drop()
            say(f"{self.target}: complete and verified, {len(files)} files")
            return
        for found in entries:
            if not unchanged(found, partial.folder / found["path"]):
                partial.link(found, self.target / found["path"])
        close(partial.folder)
        moved = partial.move_in(self.target)
        self._note(commit, entries, None)
        say(f"{self.target}: complete and verified, {len(files)} files")
        if moved:
            say(f"the earlier folder, which did not have this whole model, is now {moved}")

    def _still(self, file: File, found: File | None, partial: Partial) -> File:
        """Return the entry of a file that is still the verified one. Changed times alone do not matter; its bytes do.

        A share's client may report the state before a rename for a second, and a backup may touch files that it reads.
        """
        places = [folder / file["path"] for folder in (self.target, partial.folder)]
        if found and any(unchanged(found, path) for path in places):
            return found
        again = next(filter(None, (self._verify(file, path) for path in places)), None)
        if again is None:
            raise DownloadError("changed", file["path"])
        return again

    def _move_files(self, entries: list[File], partial: Partial) -> None:
        for found in entries:
            source, target = partial.folder / found["path"], self.target / found["path"]
            if unchanged(found, source):
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)

    def _entries_in_place(self, entries: list[File]) -> list[File]:
        """Return the entries of the files at their final paths.

        Where root may not own them, others may have written to them before the move: those are read once more.
        """
        if is_closed(self.target):
            return [closed(found) for found in entries]
        return [self._in_place(found, self.target / found["path"]) for found in entries]

    def _in_place(self, found: File, path: Path) -> File:
        again = found if unchanged(found, path) and found["ctime_ns"] else self._verify(found, path)
        if again is None:
            raise DownloadError("changed", found["path"])
        return again

    def _note(self, commit: str, entries: list[File], before: dict[str, Any] | None) -> None:
        revisions = [*before["revisions"], self.revision] if before else [self.revision]
        manifest = {
            "version": 1,
            "repository": self.repository,
            "revisions": sorted(set(revisions)),
            "commit": commit,
            "include": sorted(self.spec["include"]),
            "exclude": sorted(self.spec["exclude"]),
            "fetched": int(time.time()),
            "files": self._entries_in_place(entries),
        }
        self.records.write(self.target, manifest)


def unchanged_at(ready: Mapping[str, File], file: File, folder: Path) -> bool:
    """Return True if a verified file is in a folder."""
    found = ready.get(file["path"])
    return found is not None and unchanged(found, folder / file["path"])


def _any(file: File, patterns: list[str]) -> bool:
    """Return True if a pattern matches, as in huggingface_hub: one that ends with / means everything below."""
    return any(fnmatch.fnmatch(file["path"], one + "*" if one.endswith("/") else one) for one in patterns)


def _cause(failure: DownloadError) -> str:
    if failure.kind == "limited":
        return "the hub answers 429 (too many requests)" + (
            f" and asks to wait {failure.wait:.0f} s" if failure.wait else ""
        )
    if failure.kind == "stalled":
        return f"no byte came for {failure.text}"
    return f"{failure.kind}: {failure.text}"


def gib(count: int) -> str:
    """Return bytes as text for people."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{max(count, 0) / (1 << 20):.1f} MiB"


def say(text: str) -> None:
    """Print one line of progress; fetch_model.sh recognizes it by its first word."""
    print(f"progress: {' '.join(text.split())}", flush=True)
