from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from rackwright.concerns.encodings import ENCODING_FILES, ENCODINGS
from rackwright.plan import reading
from rackwright.plan.change import Job, Owned, Shell
from rackwright.plan.concern import HostReading, parse_all
from rackwright.settings.model import HostSettings

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
GOOD = "\n".join(
    [f"{file.sha256}  {file.file}" for file in ENCODING_FILES] + [f"{file.file} 644:root" for file in ENCODING_FILES]
)


def host(**keys: Any) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, **keys})


def pending(output: str, **keys: Any) -> list[Any]:
    return ENCODINGS.pending(host(**keys), HostReading({"encodings": ENCODINGS.parse(output)}))


def test_right_files_need_nothing() -> None:
    assert pending(GOOD) == []


def test_missing_files_are_fetched_from_the_public_address() -> None:
    first, second = pending("")
    assert isinstance(first.steps[0], Job)
    assert "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken" in first.steps[0].script
    assert second.owns == (Owned("file", "/srv/encodings/cl100k_base.tiktoken"),)


def test_a_mirror_and_a_proxy_are_used() -> None:
    (job,) = pending("", mirrors={"encodings": "https://mirror.example/enc/"}, proxy={"http": "http://p:3128"})[0].steps
    assert "url=https://mirror.example/enc/o200k_base.tiktoken\n" in job.script
    assert "https_proxy=http://p:3128\n" in job.script


def test_a_wrong_hash_is_fetched_again_and_a_wrong_mode_put_right() -> None:
    rows = GOOD.splitlines()
    (fetch,) = pending("\n".join([rows[0].replace("446a", "0000"), *rows[1:]]))
    assert "its SHA-256 is not the published one" in fetch.why
    (mode,) = pending("\n".join([*rows[:2], rows[2].replace("644:root", "600:ops"), rows[3]]))
    assert isinstance(mode.steps[0], Shell)


def test_no_endpoint_with_harmony_needs_no_files() -> None:
    assert pending("", harmony=False) == []


def test_the_reading_hashes_what_is_there(tmp_path: Path) -> None:
    (tmp_path / ENCODING_FILES[0].file).write_bytes(b"something else")
    settings = host(encodings={"folder": str(tmp_path)})
    script = reading.script({"encodings": ENCODINGS.read(settings)})
    lines = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    seen = parse_all([ENCODINGS], reading.parse(lines, ["encodings"]))[ENCODINGS]
    assert {name: file.sha256 for name, file in seen.items()} == {
        ENCODING_FILES[0].file: hashlib.sha256(b"something else").hexdigest()
    }
