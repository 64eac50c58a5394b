"""`scripts/engine-data` with a bad version, archive or engine: one sentence with the error and the next step."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from rackwright.messages import SettingsError
from scripts.engine_data import make, source

ADDRESS = "https://packages.example/vllm/"
TAR, WHEEL = "vllm-0.14.1.tar.gz", "vllm-0.14.1-cp38-abi3-manylinux_2_31_x86_64.whl"
ROOT = Path(__file__).parents[2]


def tar_of(name: str, text: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


def wheel_of(name: str, text: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(name, text)
    return out.getvalue()


def spoilt(data: bytes) -> bytes:
    """Return the same archive with other bytes in its compressed middle."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0x5A for byte in data[middle : middle + 40]) + data[middle + 40 :]


def offered(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> None:
    """Serve a package index with one archive."""
    monkeypatch.setattr(source, "_links", lambda _: [ADDRESS + name])
    monkeypatch.setattr(source, "_opened", lambda *_: io.BytesIO(data))


SOME = b"".join(b"x%d = %d\n" % (number * 7919 % 1009, number) for number in range(3000))
INSIDE = "vllm/engine/arg_utils.py"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (TAR, b"<html>no such file</html>", f"{TAR} is not a readable archive: "),
        (TAR, tar_of(f"vllm-0.14.1/{INSIDE}", SOME)[:900], f"{TAR} is not a readable archive: "),
        (TAR, spoilt(tar_of(f"vllm-0.14.1/{INSIDE}", SOME)), f"{TAR} is not a readable archive: "),
        (TAR, gzip.compress(b"no tar", mtime=0), f"{TAR} is not a readable archive: "),
        (WHEEL, b"", f"{WHEEL} is not a readable archive: "),
        (WHEEL, spoilt(wheel_of(INSIDE, SOME)), f"{WHEEL} is not a readable archive: "),
        (TAR, tar_of("another-1.0/another/main.py", SOME), f"{TAR} has no Python files of vllm"),
        (WHEEL, wheel_of("another/main.py", SOME), f"{WHEEL} has no Python files of vllm"),
    ],
    ids=[
        "a page",
        "cut off",
        "spoilt tar",
        "no tar inside",
        "empty",
        "spoilt wheel",
        "another package",
        "another wheel",
    ],
)
def test_an_archive_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    offered(monkeypatch, name, data)
    with pytest.raises(SettingsError) as error:
        source.sources("vllm", "0.14.1", tmp_path)
    assert words in str(error.value)
    assert not (tmp_path / "vllm" / "0.14.1").exists(), "what was not read whole must not be taken for it later"


@pytest.mark.parametrize(
    ("inside", "text"), [("engine/arg_utils.py", b"class EngineArgs(:\n"), ("other.py", b"x = 1\n")]
)
def test_sources_that_do_not_parse_or_have_another_shape_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside: str, text: bytes
) -> None:
    offered(monkeypatch, WHEEL, wheel_of(f"vllm/{inside}", text))
    with pytest.raises(SettingsError, match=r"be parsed|vLLM moved it\?"):
        list(make.write("vllm", ["0.14.1"], tmp_path / "cache", tmp_path / "into"))


def test_a_version_that_does_not_exist_names_the_next_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offered(monkeypatch, TAR, b"")
    with pytest.raises(SettingsError) as error:
        source.sources("vllm", "9.9.9", tmp_path)
    assert "vllm 9.9.9; " in str(error.value)
    assert str(error.value).endswith("pip index versions vllm")


def test_what_is_no_version_ends_with_one_sentence_text(tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "scripts/engine-data"), "vllm", "newest", "--cache", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("newest is not a version; for example 0.14.1\n"), done.stderr
