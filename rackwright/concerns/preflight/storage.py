"""Checks of file systems: real free space against pending downloads, each file system once."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.preflight.row import Case, Check, Disk, Fetch, figures, gib

Verdicts = Iterator[tuple[bool, str, str]]
CONTAINERD_STORE = 29
"""From this version on, Docker Engine keeps images in containerd's root on new installations."""


def space(case: Case) -> Verdicts:
    """Check free space for downloads of exact size, and for the host itself."""
    for disk, fetches in _file_systems(case):
        needed = sum(fetch.size for fetch in fetches if fetch.exact) + int(figures()["disk"]["free_minimum"])
        text = f"{disk.mount}: {gib(disk.free)} free, {gib(needed)} needed"
        yield disk.free >= needed, text, _fix(case, disk)


def space_estimated(case: Case) -> Verdicts:
    """Check free space for downloads of estimated size: a warning."""
    for disk, fetches in _file_systems(case):
        if all(fetch.exact for fetch in fetches):
            continue
        needed = sum(fetch.room for fetch in fetches)
        what = ", ".join(fetch.what for fetch in fetches)
        yield (
            disk.free >= needed,
            f"{disk.mount}: {gib(disk.free)} free, about {gib(needed)} for {what}",
            _fix(case, disk),
        )


def inodes(case: Case) -> Verdicts:
    """Check free inodes; some file systems do not count them."""
    least = int(figures()["disk"]["inodes_minimum"])
    for disk, _ in _file_systems(case):
        if disk.inodes:
            yield disk.inodes >= least, f"{disk.mount}: {disk.inodes} free", f"df -i {disk.mount}"


def answering(case: Case) -> Verdicts:
    """Check that file systems answer: a share without its server blocks every access, and every start of an engine."""
    for folder in case.machine.hung:
        fix = f"findmnt --target {folder}; see to the server that it names, or on this host: umount -f -l {folder}"
        yield False, f"the file system of {folder} does not answer", fix


def closed(case: Case) -> Verdicts:
    """Check that only root can write models: an engine loads whatever is there."""
    if case.open_models:
        folders = " ".join(case.open_models)
        fix = f"chown -R root:root {folders}; chmod -R go-w {folders}; the next run verifies them once more"
        yield False, f"others than root may write in {', '.join(case.open_models)}", fix


def above(case: Case) -> Verdicts:
    """Check that only root can rename the folders of verified models: no check at a start can prevent an exchange."""
    for folder in case.machine.above:
        text = f"{folder.path} is {folder.owner}'s, mode {folder.mode}: not only root may put other files into it"
        fix = f"chown root:root {folder.path}; chmod go-w {folder.path}; of a share: at its server"
        yield False, text, fix


def _fix(case: Case, disk: Disk) -> str:
    """Return the fix: only settings of paths on this disk can move to another one."""
    named = {"models.folder": case.settings.models.folder, "encodings.folder": case.settings.encodings.folder}
    same = {one.path for one in case.machine.disks if (one.source, one.kind) == (disk.source, disk.kind)}
    keys = [key for key, path in named.items() if path in same]
    elsewhere = f", or set {' or '.join(keys)} to another disk" if keys else ""
    return f"make room{elsewhere}; what takes it: du -xh -d2 {disk.mount} | sort -h | tail"


def _file_systems(case: Case) -> list[tuple[Disk, list[Fetch]]]:
    """Return each file system with the downloads that will be written to it."""
    found: dict[tuple[str, str], tuple[Disk, list[Fetch]]] = {}
    for disk in case.machine.disks:
        if case.read_only_models and disk.path == case.settings.models.folder:
            continue
        found.setdefault((disk.source, disk.kind), (disk, []))
    for fetch in case.fetches:
        target = _target(case, fetch)
        if target and (target.source, target.kind) in found:
            found[target.source, target.kind][1].append(fetch)
    return list(found.values())


def _target(case: Case, fetch: Fetch) -> Disk | None:
    paths = {
        "model": case.settings.models.folder,
        "encoding": case.settings.encodings.folder,
        "image": image_root(case),
    }
    return next((disk for disk in case.machine.disks if disk.path == paths[fetch.kind]), None)


def image_root(case: Case) -> str:
    """Return the folder where Docker keeps images: its data root, or containerd's with the containerd image store."""
    status = case.docker.info.get("DriverStatus") or []
    store = any("io.containerd.snapshotter" in str(entry) for entry in status)
    fresh = case.docker.daemon == "absent" and case.settings.docker.source == "docker"
    return "/var/lib/containerd" if store or fresh else case.docker.root_dir


STORAGE = (
    Check("disk", "stop", space, "RW3143"),
    Check("disk estimate", "warn", space_estimated, "RW3144"),
    Check("hanging file system", "stop", answering, "RW3158"),
    Check("model files", "warn", closed, "RW3159"),
    Check("folders of models", "warn", above, "RW3186"),
    Check("inodes", "stop", inodes, "RW3145"),
)
