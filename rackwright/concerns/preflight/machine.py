"""Checks of the machine and its operating system."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.docker import WantedDocker, install_plan, was_cut
from rackwright.concerns.endpoint.formats import WAY_OUT, foreign
from rackwright.concerns.preflight.row import Case, Check, gib
from rackwright.paths import STATE

Verdicts = Iterator[tuple[bool, str, str]]


def architecture(case: Case) -> Verdicts:
    """Check that the architecture is x86_64 or aarch64, as the machine type requires."""
    found, expected = case.machine.values.get("architecture", "unknown"), case.settings.hardware.architecture
    fix = f"{case.settings.hardware.machine} is {expected}; this host belongs in another group of the inventory"
    yield expected in (None, found), found, fix


def family(case: Case) -> Verdicts:
    """Check that the system is Debian, Ubuntu or a derivative, and the one that the settings name."""
    system, expected = case.docker.system, case.settings.hardware.system
    text = f"{system.id or 'unknown'} {system.version}".strip()
    if system.family is None or expected in (None, f"{system.id}-{system.version}"):
        yield system.family is not None, text, "install Debian 12 or newer, or Ubuntu 22.04 or newer"
        return
    fix = f"hardware.system is {expected}; this host belongs in another group of the inventory"
    yield False, text, f"{fix}, or correct hardware.system"


def rackwright(case: Case) -> Verdicts:
    """Check the format of the host's releases: Rackwright versions of different formats would undo each other."""
    others = {name: found for name, found in case.formats.items() if foreign(found)}
    for name, found in others.items():
        yield False, f"endpoint {name}: {foreign(found)}", WAY_OUT
    if case.formats and not others:
        yield True, "the releases on this host are of this version's format", ""


def systemd(case: Case) -> Verdicts:
    """Check that the host runs systemd: endpoints are systemd units."""
    process = case.machine.values.get("init", "unknown")
    yield process == "systemd", f"PID 1 is {process}", "boot this host with systemd"


def root(case: Case) -> Verdicts:
    """Check for root rights: everything is read and done as root."""
    uid = case.machine.values.get("uid", "")
    yield uid == "0", f"uid {uid}", "log in as root, or set _sudo: true for this host and allow the user sudo"


IMAGE_BASED = frozenset({"bottlerocket", "coreos", "fedora-coreos", "flatcar", "nixos", "talos", "ubuntu-core"})
"""Systems (`ID` of os-release) whose root is an image."""
WRITTEN = ("/", "/etc", "/etc/systemd/system", "/var/lib", STATE)
"""Folders that Rackwright writes to, or that everything else depends on."""


def immutable(case: Case) -> Verdicts:
    """Reject a system whose root is an image: packages do not persist, and units may not either."""
    system = case.docker.system.id
    kind = case.machine.values.get("immutable") or (system if system in IMAGE_BASED else "")
    lacks = _must_install(case) and "/usr" in case.machine.readonly
    if kind or lacks:
        text = f"this system is an image ({kind})" if kind else "/usr takes no writes, and packages are missing"
        yield False, text, "install Debian or Ubuntu as an ordinary system; nothing can be installed into an image"


def writable(case: Case) -> Verdicts:
    """Check for read-only file systems: a switch could begin there, but neither end nor roll back."""
    readonly = [path for path in WRITTEN if path in case.machine.readonly]
    # Docker's and containerd's folders: a running engine writes nothing there, but its next start does.
    readonly += sorted(case.machine.readonly - {*WRITTEN, "/usr"})
    fix = "journalctl -k --grep 'remount|I/O error'; when the disk is well: mount -o remount,rw PLACE"
    text = f"read-only: {', '.join(readonly)}" if readonly else "root, /etc and the units' folder take writes"
    yield not readonly, text, fix.replace("PLACE", readonly[0] if readonly else "/")


ODD = {"d": "a folder", "l": "a link to nothing"}
"""Types that are not a file, by the letter that `find` has for each."""


def odd_units(case: Case) -> Verdicts:
    """Reject what is not a file at the path of a unit or a drop-in: systemd cannot enable the unit then."""
    for kind, path in case.machine.odd_units:
        way = f"{'rmdir' if kind == 'd' else 'rm'} {path}"
        yield False, f"{path} is {ODD.get(kind, 'a socket')}", f"{way}; then: systemctl daemon-reload"


def clock(case: Case) -> Verdicts:
    """Check the clock, which TLS and logs need; it matters while a download is pending."""
    synchronized = case.machine.values.get("synchronized", "") == "yes"
    text = "synchronized" if synchronized else "not synchronized by any time service"
    yield synchronized or not case.fetches, text, "apt-get install -y systemd-timesyncd; timedatectl set-ntp true"


def dpkg(case: Case) -> Verdicts:
    """Check for half-configured packages, which make every installation fail."""
    if "apt" not in case.docker.has:
        return
    broken = case.docker.broken if "locked" not in case.machine.values else ()
    if broken and was_cut(_asked(case), case.docker):
        yield True, f"our own installation was cut and will be finished: {', '.join(broken[:5])}", ""
        return
    text = "no half-configured packages" if not broken else f"not finished: {', '.join(broken[:5])}"
    yield not broken or not _must_install(case), text, "dpkg --configure -a"


def dpkg_lock(case: Case) -> Verdicts:
    """Check for another running installation: Rackwright's waits for it."""
    holder = case.machine.values.get("locked")
    if holder and _must_install(case):
        yield False, f"held by process {holder}", "nothing: the installation waits for it up to 10 minutes"


def _must_install(case: Case) -> bool:
    return not install_plan(_asked(case), case.docker).nothing


def _asked(case: Case) -> WantedDocker:
    return WantedDocker(case.settings, None, case.owned, case.closes_ports)


def memory(case: Case) -> Verdicts:
    """Check that host memory is the machine type's."""
    total, expected = case.machine.number("MemTotal"), case.settings.hardware.memory_minimum_gib
    if total is None:
        return
    available = case.machine.number("MemAvailable") or 0
    text = f"{gib(total * 1024)}, {gib(available * 1024)} available"
    # The firmware reserves some of the installed memory.
    enough = expected is None or total * 1024 >= 0.94 * expected * 2**30
    yield (
        enough,
        text,
        f"{case.settings.hardware.machine} has {expected} GiB; look for failed modules: dmidecode -t memory",
    )


SYSTEM = (
    Check("operating system", "stop", family, "RW3112"),
    Check("systemd", "stop", systemd, "RW3113"),
    Check("root rights", "stop", root, "RW3115"),
    Check("immutable system", "stop", immutable, "RW3154"),
    Check("read-only", "stop", writable, "RW3153"),
    Check("systemd's files", "stop", odd_units, "RW3181"),
    Check("packages", "stop", dpkg, "RW3117"),
    Check("package lock", "warn", dpkg_lock, "RW3118"),
)
"""Checks that do not depend on what the host serves."""
MACHINE = (
    Check("architecture", "stop", architecture, "RW3111"),
    Check("Rackwright", "stop", rackwright, "RW3114"),
    *SYSTEM,
    Check("time", "warn", clock, "RW3116"),
    Check("memory", "stop", memory, "RW3119"),
)
