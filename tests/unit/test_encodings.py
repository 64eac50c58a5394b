from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from rackwright.concerns.encodings import ENCODING_FILES, ENCODINGS
from rackwright.hostside import host_script
from rackwright.paths import ENCODING_MARKS
from rackwright.plan import reading
from rackwright.plan.change import Job, Owned, Shell
from rackwright.plan.concern import HostReading, parse_all
from rackwright.settings.host_settings import HostSettings

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
GOOD = "\n".join(f"{file.sha256} 644:root {file.file}" for file in ENCODING_FILES)


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
    assert "SHA-256" in fetch.why
    (mode,) = pending("\n".join([rows[0], rows[1].replace("644:root", "600:ops")]))
    assert isinstance(mode.steps[0], Shell)


def test_no_endpoint_with_harmony_needs_no_files() -> None:
    assert pending("", harmony=False) == []


def seen_in(folder: Path, marks: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder as a reading has it, with marks in another."""
    script = ENCODINGS.read(host(encodings={"folder": str(folder)})).replace(ENCODING_MARKS, str(marks))
    program = "hangs() { return 1; }\n" + reading.script({"encodings": script})
    lines = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()
    parsed = parse_all([ENCODINGS], reading.parse(lines, ["encodings"]))[ENCODINGS]
    return {name: file.sha256 for name, file in parsed.items()}


def test_the_reading_hashes_what_no_fetch_has_verified(tmp_path: Path) -> None:
    folder, marks = tmp_path / "encodings", tmp_path / "marks"
    folder.mkdir()
    file = folder / ENCODING_FILES[0].file
    file.write_bytes(b"something else")
    found = {file.name: hashlib.sha256(b"something else").hexdigest()}
    assert seen_in(folder, marks) == found
    marks.mkdir()
    (marks / file.name).write_text("verified 1:2:3.0:4.0\n")
    assert seen_in(folder, marks) == found, "the mark is another file's"


def test_a_file_that_a_fetch_has_verified_is_hashed_when_it_is_another_one(tmp_path: Path) -> None:
    body = b"a vocabulary"
    sha256 = hashlib.sha256(body).hexdigest()
    (source := tmp_path / "source").write_bytes(body)
    folder, marks, name = tmp_path / "encodings", tmp_path / "marks", ENCODING_FILES[0].file
    published: dict[str, str | int] = {"url": source.as_uri(), "size": len(body), "sha256": sha256}
    places = {"path": str(folder / name), "mark": str(marks / name)}
    script = host_script("fetch_file", **published, **places, stall=9, http_proxy="", https_proxy="", no_proxy="")
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode == 0
    assert seen_in(folder, marks) == {name: sha256}
    recorded = (marks / name).read_text()
    (marks / name).write_text(recorded.replace(sha256, "trusted"))
    assert seen_in(folder, marks) == {name: "trusted"}, "its bytes are not read"
    times = (folder / name).stat()
    (folder / name).write_bytes(body[::-1])
    os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert seen_in(folder, marks) == {name: hashlib.sha256(body[::-1]).hexdigest()}
