"""A site of one's own, deployed from another folder: the first deploy of a bare host, and `make quick`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import BIN, Run, Site
from tests.lab.products import in_proof
from tests.lab.test_deploy import ask
from tests.trap import SPRUNG, make_trap

pytestmark = pytest.mark.lab


@in_proof("`make quick` runs it; tests/programs/test_any_folder.py runs the commands in such a folder")
def test_a_bare_host_is_deployed_from_a_folder_full_of_other_things(site: Site, tmp_path: Path) -> None:
    host, trap, site_folder = site.lab.host("bare1"), make_trap(tmp_path / "elsewhere"), tmp_path / "site"
    host.reset()

    def typed(*words: str | Path) -> Run:
        run = site.command(*words, "--limit", host.name, cwd=trap)
        assert run.status == 0, run.output
        assert SPRUNG not in run.output
        return run

    assert site.command(BIN / "rackwright", "init", "../site", "--lab", cwd=trap).status == 0
    deploy = (BIN / "pyinfra", site_folder / "inventory/lab.py", site_folder / "deploy.py", "-y")
    assert "is answered with '42'" in typed(*deploy).output
    assert "42" in ask(host, "What is 17 + 25? Answer with the number only.")
    written = "cat /etc/systemd/system/rackwright-*.service; find /etc/rackwright -type f -exec cat {} +"
    assert SPRUNG not in host.run(written).stdout
    assert typed(*deploy).changed == []
    for verb in ("plan", "drift", "status"):
        typed(BIN / "rackwright", verb, "../site/inventory/lab.py")
