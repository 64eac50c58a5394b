"""The environment of aiperf is its own, whatever the user's shell leads Python to."""

import sys
from pathlib import Path

import pytest

from rackwright.messages import RackwrightError
from rackwright_bench.aiperf import environment

LOOK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('astray') is not None)"


def test_no_package_of_the_users_path_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that PYTHONPATH leads to is installed for pip, and aiperf would run with that one."""
    (tmp_path / "astray.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    environment._run([sys.executable, "-c", LOOK])
    with pytest.raises(RackwrightError, match="could not be made"):
        environment._run([sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {LOOK}"])
