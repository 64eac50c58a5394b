"""Device nodes that a control group may not open nor make, not even its root: the kernel asks a program of the lab.

Without it a host's root makes the node of another host's GPU itself, and NVIDIA's own libraries do so unasked.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from rackwright_lab.machine.shell import LabError

SYSCALLS = {"x86_64": 321, "aarch64": 280}
"""Number of bpf(2), which the C library does not offer."""
PROG_LOAD, PROG_ATTACH = 5, 8
CGROUP_DEVICE_PROGRAM, CGROUP_DEVICE, ALLOW_MULTI = 15, 6, 2
"""Kind of program, where it is attached, and that groups below may have programs of their own (linux/bpf.h)."""
# Code of an instruction: load a word, jump when not equal, set a register, exit.
LOAD, UNLESS, SET, EXIT = 0x61, 0x55, 0xB7, 0x95
MAJOR_AT, MINOR_AT = 4, 8
"""Where struct bpf_cgroup_dev_ctx has a device's numbers."""
ANSWER, ASKED, MAJOR, MINOR = range(4)
"""Registers: what is answered, what is asked about, and its numbers."""


def numbers(node: Path) -> tuple[int, int]:
    """Return the major and minor number of a device node."""
    device = node.stat().st_rdev
    return os.major(device), os.minor(device)


def program(denied: Iterable[tuple[int, int]]) -> bytes:
    """Return a program for the kernel that answers 0 for these devices and 1 for all others."""
    lines = [_line(LOAD, MAJOR, ASKED, MAJOR_AT), _line(LOAD, MINOR, ASKED, MINOR_AT)]
    for major, minor in denied:
        lines += [_line(UNLESS, MAJOR, skip=3, value=major), _line(UNLESS, MINOR, skip=2, value=minor), *_answer(0)]
    return b"".join([*lines, *_answer(1)])


def _answer(value: int) -> list[bytes]:
    return [_line(SET, ANSWER, value=value), _line(EXIT)]


def _line(code: int, target: int = 0, source: int = 0, skip: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, target | source << 4, skip, value)


def deny(group: Path, denied: Sequence[tuple[int, int]]) -> None:
    """Let no process of a control group, nor of those below it, open or make these devices; it ends with the group.

    Raises LabError when the kernel does not take it.
    """
    text, licence = program(denied), b"Apache-2.0\0"
    held = (ctypes.create_string_buffer(text, len(text)), ctypes.create_string_buffer(licence))
    places = [ctypes.addressof(one) for one in held]
    loaded = _bpf(PROG_LOAD, struct.pack("=IIQQ40x", CGROUP_DEVICE_PROGRAM, len(text) // 8, *places))
    folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _bpf(PROG_ATTACH, struct.pack("=IIII16x", folder, loaded, CGROUP_DEVICE, ALLOW_MULTI))
    finally:
        os.close(folder)
        os.close(loaded)


def _bpf(command: int, attributes: bytes) -> int:
    number = SYSCALLS.get(platform.machine())
    if number is None:
        raise LabError(f"a {platform.machine()} machine's GPUs cannot be shared among hosts: bpf(2) is not known there")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    found = ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, len(attributes))
    if found < 0:
        why = os.strerror(ctypes.get_errno())
        raise LabError(
            f"the kernel keeps no devices from a control group: bpf(2) says {why}; is CONFIG_CGROUP_BPF set?"
        )
    return int(found)
