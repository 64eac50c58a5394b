"""A file of engine-data/ that is not an export: one line that names the file, no traceback, no long wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.cli.main import main

DIGEST = f"sha256:{'a' * 64}"
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6"
HEAD = f"image: {IMAGE}\nversion: 1.2.0rc6\nengine: tensorrt-llm\n"
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"


def text(words: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(words)


EXPORTS: dict[str, Callable[[Path], object]] = {
    "a list": text("- a\n"),
    "nothing": text(""),
    "a page": text("<html>404</html>"),
    "a schema of JSON": text('{"$schema": "x", "properties": {}}'),
    "no sections": text(HEAD),
    "empty sections": text(f"{HEAD}sections: {{}}\n"),
    "sections that are a list": text(f"{HEAD}sections: [a]\n"),
    "a section that is text": text(f"{HEAD}sections: {{LlmArgs: hello}}\n"),
    "a key that is a number": text(f"{HEAD}sections: {{LlmArgs: {{a: 5}}}}\n"),
    "a wrong version": text(f"{HEAD.replace('version: 1.2.0rc6', 'version: [1]')}sections: {{A: {{}}}}\n"),
    "a wrong date": text("a: 9999-99-99\n"),
    "endless nesting": text(f"a: {'[' * 100000}"),
    "endless lists": text(f"{'- ' * 100000}a"),
    "UTF-16": lambda path: path.write_bytes(HEAD.encode("utf-16")),
    "NUL": lambda path: path.write_bytes(b"\0\0"),
    "5 MB": text(f"{HEAD}sections:\n" + "  key: {a: b}\n" * 400_000),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to nothing": lambda path: path.symlink_to("/none/at/all"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("by_digest", [True, False], ids=["by digest", "by image"])
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, by_digest: bool
) -> None:
    for folder in ("inventory", "group_vars", "engine-data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "deploy.py").write_text("from rackwright.operations import concerns\nconcerns.docker()\n")
    build = 'from rackwright.inventory import build\nglobals().update(build(__file__, {"rack": ["gpu01"]}))\n'
    (tmp_path / "inventory/x.py").write_text(build)
    digest = f"image_digest: {DIGEST}\n" if by_digest else ""
    (tmp_path / "group_vars/all.yml").write_text(f"{MODEL}image: {IMAGE}\n{digest}")
    EXPORTS[name](tmp_path / "engine-data" / f"{DIGEST.replace(':', '-')}.yml")
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["check", str(tmp_path / "inventory/x.py")]) == 1
    printed = capsys.readouterr().err
    assert "RW0320" in printed
    assert "RW1308" not in printed


@pytest.mark.parametrize("version", ["", " ", "1.2 0", "-1", "ü", "1.2.0\n", "9" * 5000, "\x1b[31m1", "1.2;rm"])
def test_a_version_that_no_tag_can_be_is_refused(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "inventory/gb200.py", f"--to={version}"]) == 1
    assert "RW1035" in capsys.readouterr().err
