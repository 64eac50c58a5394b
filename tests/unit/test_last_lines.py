"""Scripts that run on hosts print whole lines, whatever the files and programs that they read leave out at the end."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.switch.balancer_hooks import ready_script
from rackwright.hostside import host_script
from rackwright.settings.host_settings import EndpointSettings

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
HAVE = 'have() { command -v "$1" >/dev/null 2>&1; }\nshow() { :; }\nhangs() { false; }\n'
QUOTE = 'quote() { printf "%s %s\\n" "$1" "$(printf %s "$2" | base64 -w0)"; }\nbelongs() { inside=; }\n'


def lines(script: str, *words: str, **more: str) -> list[str]:
    done = subprocess.run(
        [*(words or ("sh",)), "-c", script], capture_output=True, text=True, check=False, env={**os.environ, **more}
    )
    return [row for row in done.stdout.split("\n") if row]


def program(folder: Path, name: str, text: str) -> None:
    """Make a program that prints a text as is."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\nprintf %s '{text}'\n")
    (folder / name).chmod(0o755)


@pytest.mark.skipif(not shutil.which("ss"), reason="needs ss")
@pytest.mark.parametrize("shell", SHELLS)
def test_the_first_listener_stands_on_a_line_of_its_own_behind_dockerds_command_line(
    shell: str, tmp_path: Path
) -> None:
    """/proc/PID/cmdline ends without a line break."""
    dockerd = subprocess.Popen(["sleep", "60"])
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            words = {"paths": str(tmp_path), "endpoints": "", "state": str(tmp_path), "urls": "", "proxies": ""}
            script = f"reading_daemon={dockerd.pid}\n{HAVE}" + host_script("holders")
            printed = lines(script + host_script("preflight_read", ports=str(port), **words), *shell_words(shell))
    finally:
        dockerd.kill()
        dockerd.wait()
    assert "dockerd=sleep 60 " in printed
    (row,) = [one for one in printed if one.startswith("port ")]
    assert row.split(" ")[1:3] == [str(port), str(os.getpid())]
    assert row.endswith(" 127.0.0.1")


def shell_words(shell: str) -> tuple[str, ...]:
    return (shell, "sh") if shell == "busybox" else (shell,)


def test_a_gpu_that_is_listed_last_does_not_swallow_the_processes(tmp_path: Path) -> None:
    xml = "<product_name>New</product_name><pid>1</pid>".replace("><", ">\n<")
    program(tmp_path / "bin", "nvidia-smi", "x")
    (tmp_path / "bin" / "nvidia-smi").write_text(
        f"#!/bin/sh\ncase $1 in -q) printf %s '{xml}' ;; *) printf %s 'GPU-1, 0, 10.0' ;; esac\n"
    )
    printed = lines(HAVE + QUOTE + host_script("gpus_read", known=""), PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "gpu GPU-1, 0, 10.0" in printed
    assert any(row.startswith("process 1 ") for row in printed)


def test_what_imex_says_last_does_not_swallow_its_channels(tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-imex-ctl", "Nodes:\n Domain State: UP")
    program(tmp_path / "bin", "dpkg-query", "ii  580.1-1")
    words = {"own": "127.0.0.1", "others": "", "port": "1", "transport": "nvlink", "launch": ""}
    printed = lines(HAVE + host_script("members_read", **words), PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "imex.state=UP" in printed
    assert "imex.version=580.1" in printed


@pytest.mark.parametrize("shell", SHELLS)
def test_files_without_a_last_line_break_are_read_whole_by_status(shell: str, tmp_path: Path) -> None:
    home, pins = tmp_path / "endpoints", tmp_path / "pins"
    (home / "llm").mkdir(parents=True)
    pins.mkdir()
    for path, text in {
        pins / "image": "vllm sha256:1",
        tmp_path / "lease": "owner=a\nexpires=2",
        tmp_path / "drained": "who=b\nreason=c",
        home / "llm" / "last-switch": "release=d\noutcome=lost",
    }.items():
        path.write_text(text)
    words = {name: str(tmp_path / "none") for name in ("units", "docker", "rules", "left", "repairs", "groups")}
    places = {"home": str(home), "images": str(pins), "lease": str(tmp_path / "lease")}
    script = (
        host_script("holders")
        + host_script("listener", listener_home="")
        + host_script(
            "status_read", endpoints="llm 1F40 http://127.0.0.1:1", drained=str(tmp_path / "drained"), **places, **words
        )
    )
    printed = lines(script, *shell_words(shell))
    assert {
        "pin vllm sha256:1",
        "lease expires=2",
        "drained reason=c",
        "last_outcome lost",
        "endpoint llm",
        "end",
    } <= set(printed)


@pytest.mark.parametrize("shell", SHELLS)
def test_first_lines_take_one_that_lacks_its_end(shell: str, tmp_path: Path) -> None:
    (tmp_path / "pin").write_text("vllm sha256:1")
    shared = host_script("shared_read", reading_asked="docker.service", reading_home=str(tmp_path))
    printed = lines(f"{shared}\nfirst_lines 2 'pin ' {tmp_path / 'pin'}; echo next", *shell_words(shell))
    assert printed == ["pin vllm sha256:1", "next"]


def test_a_hook_that_ends_in_the_midst_of_a_line_does_not_spoil_the_reason_text(tmp_path: Path) -> None:
    endpoint = EndpointSettings(ready_hook=("sh", "-c", "printf 'no pool'; exit 3"))
    log = tmp_path / "log"
    with log.open("w") as out:
        env = {**os.environ, "JOB": str(tmp_path)}
        subprocess.run(["sh", "-c", ready_script("llm", endpoint, "a" * 12)], stdout=out, check=False, env=env)
    assert log.read_text().splitlines()[1:] == ["no pool", "the ready_hook ended with status 3"]


def test_the_members_number_of_releases_is_read_without_a_line_break(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / "releases" / f"r{number}").mkdir(parents=True)
    (tmp_path / "history").write_text("r0\nr1\nr2\n")
    (tmp_path / "binding").write_text("b")
    (tmp_path / "keep").write_text("3")
    script = host_script("durable") + f"set -- r3\nhome={tmp_path}\n" + host_script("commit_member").partition("\n")[2]
    subprocess.run(["sh", "-c", script], check=True)
    assert sorted(path.name for path in (tmp_path / "releases").iterdir()) == ["r1", "r2", "r3"]


def test_a_member_that_commits_its_proven_release_again_keeps_what_is_staged(tmp_path: Path) -> None:
    """Its binding has changed, as with another port; the next release is staged then, and in no history yet."""
    for number in range(3):
        (tmp_path / "releases" / f"r{number}").mkdir(parents=True)
    (tmp_path / "history").write_text("r0\nr1\n")
    (tmp_path / "binding").write_text("new")
    (tmp_path / "keep").write_text("1\n")
    (tmp_path / "proven").symlink_to("releases/r1")
    script = host_script("durable") + f"set -- r1\nhome={tmp_path}\n" + host_script("commit_member").partition("\n")[2]
    subprocess.run(["sh", "-c", script], check=True)
    assert sorted(path.name for path in (tmp_path / "releases").iterdir()) == ["r0", "r1", "r2"]
    assert (tmp_path / "proven-binding").read_text() == "new"


def test_a_repair_that_was_noted_last_is_read(tmp_path: Path) -> None:
    # One of a time to come was written before the clock was put back.
    (tmp_path / "repairs").write_text(f"99999999999 later\n{int(time.time())} rules gone")
    script = (
        HAVE
        + QUOTE
        + host_script(
            "firewall_read",
            paths="",
            home=str(tmp_path),
            units=str(tmp_path),
            left=str(tmp_path),
            repairs=str(tmp_path / "repairs"),
        )
    )
    (row,) = [row for row in lines(script) if row.startswith("repair ")]
    assert base64.b64decode(row.split(" ")[2]) == b"rules gone"


@pytest.mark.parametrize(
    ("group", "found"),
    [
        (f"0::/system.slice/docker-{'a' * 64}.scope\n", f"{'a' * 64} -"),
        (f"0::/docker/{'a' * 64}", f"{'a' * 64} -"),
        ("0::/system.slice/rackwright-llm.service\n", "- rackwright-llm.service"),
        (f"0::/user.slice/user-1003.slice/user@1003.service/app.slice/docker-{'a' * 64}.scope\n", "- -"),
        (f"0::/docker-{'a' * 64}.scope\n1:name=systemd:/user.slice/user-1003.slice/session-4.scope\n", "- -"),
        ("0::/elsewhere/user@1003.service/app.slice/rackwright-llm.service\n", "- -"),
    ],
)
def test_a_users_own_scope_of_a_containers_name_is_no_container(group: str, found: str, tmp_path: Path) -> None:
    """`systemd-run --user --scope --unit=docker-ID.scope`: anybody may list the identifiers, and take the name."""
    (tmp_path / "cgroup").write_text(group)
    script = host_script("holders").replace("/proc/$1/cgroup", str(tmp_path / "cgroup"))
    assert lines(f"{script}\nbelongs 1; printf '%s\\n' \"${{inside:--}} ${{unit:--}}\"") == [found]
