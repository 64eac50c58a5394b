"""Two resumes of one run exclude each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.messages import RackwrightError
from rackwright.record.claim import claimed

HOLD = """\
import sys
from pathlib import Path
from rackwright.record.claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    record = tmp_path / "r.jsonl"
    words = [sys.executable, "-c", HOLD, str(record)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        pattern = rf"run r is being resumed already, by .*\(process {first.pid}\) since .* UTC; nothing was done; next"
        with pytest.raises(RackwrightError, match=pattern), claimed(record):
            pass
        first.kill()
    with claimed(record):
        assert f'"pid": {os.getpid()}' in (tmp_path / "r.resume").read_text()
    assert (tmp_path / "r.resume").stat().st_mode & 0o777 == 0o600


def test_a_claim_that_tells_nothing_is_one_all_the_same(tmp_path: Path) -> None:
    with claimed(tmp_path / "r.jsonl"):
        (tmp_path / "r.resume").write_text("")
        with pytest.raises(RackwrightError, match="by another process"), claimed(tmp_path / "r.jsonl"):
            pass


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RackwrightError, match=r"r\.resume cannot be written"), claimed(tmp_path / "gone" / "r.jsonl"):
        pass
