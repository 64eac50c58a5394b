"""A folder to start in: whatever a command might take from the current folder is there, and says that it was taken."""

from __future__ import annotations

from pathlib import Path

SPRUNG = "the current folder was read"
MODULES = ("yaml.py", "jinja2.py", "pyinfra.py", "rackwright.py", "deploy.py", "tasks/__init__.py", "tasks/docker.py")
TEMPLATES = ("before-start.j2", "endpoint.service.j2", "wait-ready.j2")
FILES = ("group_vars/all.yml", "rackwright.lock.yml", "rackwright.lock.lab.yml", "ansible.cfg")


def make_trap(folder: Path) -> Path:
    """Make such a folder."""
    for name in ("tasks", "templates", "group_vars", "inventory"):
        (folder / name).mkdir(parents=True)
    for name in MODULES:
        (folder / name).write_text(f"raise SystemExit({SPRUNG!r})\n")
    for name in (*(f"templates/{name}" for name in TEMPLATES), *FILES):
        (folder / name).write_text(f"# {SPRUNG}\nwrong: {SPRUNG}\n")
    return folder
