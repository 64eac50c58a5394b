"""A secret in a place that takes none: as the name of a key, in a cookie, or in the setting beside its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rackwright.cli.main import main

HUB, NGC = "hf_abcdefghijklmnopqrstuvwxyz012345", "nvapi-abcdefghijklmnopqrstuvwxyz0123456789"
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
REFUSED = {
    f"environment: {{{HUB}: x}}": "RW0324",
    f"engine: {{{HUB}: 1}}": "RW0324",
    f"engine: {{kv_cache_config: {{{NGC}: 1}}}}": "RW0324",
    f"engine: {{x: [{{{NGC}: 1}}]}}": "RW0324",
    f"endpoints: {{a: {{engine: {{{NGC}: 1}}}}}}": "RW0324",
    f"registry: {{{NGC}: x}}": "RW0265",
    f"docker: {{daemon: {{{NGC}: x}}}}": "RW0265",
    f"docker: {{daemon: {{labels: ['{NGC}']}}}}": "RW0265",
    f"registry: {{user: {NGC}}}": "RW0265",
    f"endpoint_name: {HUB}": "RW0265",
    f"model: {{repository: a/b, mount: /m, revision: {HUB}}}": "RW0265",
    f"ssh_user: {HUB}": "RW0265",
    "ansible_ssh_common_args: '-o ProxyCommand=\"sshpass -p hunter2secret ssh -W %h:%p j\"'": "RW0211",
    "ready_hook: [curl, -b, session=hunter2secret1234567890, x]": "RW0324",
    "ready_hook: [curl, --cookie, 'session=hunter2secret1234567890', x]": "RW0324",
}
FINE = ["endpoint_name: sk-production-llm", "ready_hook: [curl, -b, /root/cookies, x]"]


def check(site: Path, setting: str) -> int:
    for folder in ("inventory", "group_vars"):
        (site / folder).mkdir()
    (site / "deploy.py").write_text("from rackwright.operations import concerns\nconcerns.docker()\n")
    build = 'from rackwright.inventory import build\nglobals().update(build(__file__, {"rack": ["gpu01"]}))\n'
    (site / "inventory/x.py").write_text(build)
    (site / "group_vars/all.yml").write_text(f"{'' if setting.startswith('model') else MODEL}{setting}\n")
    return main(["check", str(site / "inventory/x.py"), "--show-origin"])


@pytest.mark.parametrize("setting", REFUSED)
def test_a_secret_is_refused_and_not_shown(
    tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert check(tmp_path, setting) == 1
    shown = "".join(capsys.readouterr())
    assert REFUSED[setting] in shown, shown
    assert not [secret for secret in (HUB, NGC, "hunter2") if secret in shown]


@pytest.mark.parametrize("setting", FINE)
def test_a_name_that_only_begins_so_is_fine(tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert check(tmp_path, setting) == 0
