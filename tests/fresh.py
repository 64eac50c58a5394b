"""A fresh site, as `rackwright init` makes it, without its output."""

from __future__ import annotations

from pathlib import Path

from rackwright.init.choices import choices
from rackwright.init.making import fresh_site, make_site


def fresh(folder: Path, *profiles: str, lab: bool = False, ansible: bool = False) -> Path:
    """Make a site of these profiles, of b200 without any; returns its folder."""
    make_site(folder, fresh_site(choices(profiles or ("b200",), {}), lab, ansible))
    (folder / "host_vars").mkdir(exist_ok=True)
    return folder
