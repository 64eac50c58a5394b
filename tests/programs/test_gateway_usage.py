"""The sums of a gateway's access log (concerns/gateway/host/usage_sum.sh): only journalctl is the test's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from rackwright.concerns.gateway.usage import HostUsage, Usage, parse_usage, usage_script

SHELL = shutil.which("dash") or "sh"
LOG = {
    "time": "2026-11-27T06:00:00.123Z",
    "id": "4b1f",
    "key": "alice",
    "model": "gpt-oss-120b",
    "host": "llm.example.org",
    "method": "POST",
    "path": "/v1/chat/completions",
    "status": 200,
    "bytes_in": 100,
    "bytes_out": 2000,
    "queue_ms": 0,
    "first_ms": 12,
    "total_ms": 1500,
    "end": "--",
}


def summed(tmp_path: Path, rows: list[str], **values: str) -> HostUsage:
    (tmp_path / "log").write_bytes("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape"))
    program = tmp_path / "journalctl"
    program.write_text(
        '#!/bin/sh\ncase "$*" in\n*short-unix*) echo "100.5 host x";;\n'
        f"*--since*_SYSTEMD_UNIT=rackwright-gateway.service*) cat {tmp_path}/log;;\nesac\n"
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    run = subprocess.run(
        [SHELL, "-c", usage_script(60).script], env={"PATH": path}, text=True, capture_output=True, check=True
    )
    found = parse_usage(run.stdout.splitlines())
    assert found, run.stdout + run.stderr
    return found


def row(**values: object) -> str:
    return json.dumps({**LOG, **values})


def test_requests_are_summed_by_client_and_model(tmp_path: Path) -> None:
    rows = [
        row(),
        row(status=429),
        row(status=503),
        row(status=-1, end="CR"),
        row(end="SD"),
        row(model="other", end="LR"),
    ]
    found = summed(tmp_path, [*rows, row(key="", model="-", status=401)])
    assert found.rows == {
        ("alice", "gpt-oss-120b"): Usage(5, 1, 2, 1, 7500, 500, 10000),
        ("alice", "other"): Usage(1, 0, 0, 0, 1500, 100, 2000),
        ("-", "-"): Usage(1, 1, 0, 0, 1500, 100, 2000),
    }
    assert (found.unread, found.lacks) == (0, 0)


def test_what_clients_write_moves_no_sum(tmp_path: Path) -> None:
    forged = '","key":"bob","status":200,"bytes_out":9,"x":"\\'
    rows = [row(path=forged), row(host="a\\"), row(model="\x1b[2J\t$(id)")]
    found = summed(tmp_path, [*rows, "", "{", "[1]", '{"key":"bob","status":200} x', '{"status":200}', "\udcff" * 50])
    assert {pair[0] for pair in found.rows} == {"alice"}
    assert sum(usage.requests for usage in found.rows.values()) == 3
    assert found.unread == 3
    assert all(part.isprintable() for pair in found.rows for part in pair)


def test_memory_is_bounded_whatever_models_clients_name(tmp_path: Path) -> None:
    found = summed(tmp_path, [row(model=f"m{n}" * 100) for n in range(5000)])
    assert len(found.rows) == 2001
    assert found.rows["(others)", "(others)"].requests == 3000
    assert max(len(model) for _, model in found.rows) <= 128
