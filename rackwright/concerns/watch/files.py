"""All files of the watch, by path: one function a piece, each in a module of its own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rackwright.concerns.watch.act import act_files
from rackwright.concerns.watch.engine_check import engine_check_files
from rackwright.concerns.watch.metrics import metrics_files
from rackwright.concerns.watch.notify import NOTIFY_FOLDERS, notify_files
from rackwright.concerns.watch.units import watch_files
from rackwright.concerns.watch.word import word_files
from rackwright.paths import STATE, UNITS
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

PIECES = (act_files, word_files, notify_files, metrics_files)
LEFT = f"{STATE}/watch/files"
"""SHA-256 of each of these files as the last deploy wrote it: what differs from it was edited on the host."""
STATE_FOLDERS = (f"{STATE}/watch", f"{STATE}/marks", *NOTIFY_FOLDERS)
"""Folders with what the watch has seen and done."""


def all_files(settings: HostSettings, addresses: Collection[str] = ()) -> dict[str, str | Secret]:
    """Return every file of the watch by path; a secret one is readable by root alone.

    addresses: the host's own, by which it finds itself among its peers.
    """
    found: dict[str, str | Secret] = {**watch_files(), **engine_check_files(settings, addresses)}
    for piece in PIECES:
        found.update(piece(settings))
    return found


def enabled_units(files: Mapping[str, object]) -> list[str]:
    """Return the timers and sockets among these files: they are enabled and started."""
    names = (path.removeprefix(f"{UNITS}/") for path in files if path.startswith(f"{UNITS}/"))
    return sorted(name for name in names if name.endswith((".timer", ".socket")))
