"""Scripts that travel by standard input: whole or not at all, of any length, and with nothing of them in `ps`."""

from __future__ import annotations

import io
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.api.util import get_kwargs_str
from pyinfra.connectors.util import CommandOutput, OutputLine, write_stdin

from rackwright.adapter.connection import Unshown
from rackwright.concerns.read_host import reading_command
from rackwright.plan.change import Guarded, Shell
from rackwright.remote import guards
from rackwright.remote.commands import command_of
from rackwright.remote.errors import StepFailedError, TakenBackError
from rackwright.remote.guards import run_guarded
from rackwright.remote.stdin_payload import MOST, framed, receiver
from rackwright.settings.host_settings import HostSettings

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/m"}
PASSWORD = "proxy-password-3f9c"


class Kept(io.BytesIO):
    """Can be read when it was closed."""

    def close(self) -> None:
        """Stay open."""


def sent(command: StringCommand) -> tuple[str, str]:
    """Return what a command puts into argv, and what it sends, as the SSH connector does."""
    buffer = Kept()
    if command.connector_arguments.get("_stdin"):
        write_stdin(command.connector_arguments["_stdin"], buffer)
    return str(command.get_masked_value()), buffer.getvalue().decode()


def ran(command: StringCommand) -> subprocess.CompletedProcess[str]:
    command_line, text = sent(command)
    return subprocess.run(["sh", "-c", command_line], input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "script", ["cat", "printf '%s' \"$0 $#\"; cat", 'read -r x; echo "<$x>"; cat; # end', "exit 7"]
)
@pytest.mark.parametrize("filler", [0, 3 * MOST])
def test_a_script_runs_the_same_however_it_travels(script: str, filler: int) -> None:
    long_script = f": {'x' * filler}\n{script}"
    plain = subprocess.run(["sh", "-c", script], input="one\ntwo\n", capture_output=True, text=True, check=False)
    for unseen in (False, True):
        done = ran(command_of(Shell(long_script, stdin="one\ntwo\n", unseen=unseen)))
        assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_long_script_is_no_argument() -> None:
    """Linux refuses an argument of 128 KiB, and each shell on the way quotes some more of it."""
    script = "\n".join(f"echo 'line {number}' >/dev/null" for number in range(12000)) + "\necho whole"
    assert len(script) > 2 * 128 * 1024
    command, _ = sent(command_of(Shell(script)))
    assert len(shlex.quote(command)) < 1024
    assert ran(command_of(Shell(script))).stdout == "whole\n"


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_of_a_script_that_was_cut_nothing_runs(cut: int) -> None:
    script = "echo first\necho second"
    command, text = receiver(script, "title"), framed(script)[:-cut]
    done = subprocess.run(["sh", "-c", command], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was done" in done.stderr


def settings(endpoints: int = 1, networks: int = 1) -> HostSettings:
    allowed = [f"10.{index // 250}.{index % 250}.0/24" for index in range(networks)]
    by_name = {f"e{n}": {"port": 8000 + n, "gpus": [n], "allow_from": allowed} for n in range(endpoints)}
    proxy = {"http": f"http://user:{PASSWORD}@proxy.example.com:3128"}
    return HostSettings.model_validate({"model": MODEL, "endpoints": by_name, "proxy": proxy})


def test_a_reading_shows_no_proxys_password() -> None:
    command = reading_command(settings())
    command_line, text = sent(command)
    assert PASSWORD in text, "the reading asks by the proxy"
    assert PASSWORD not in command_line
    assert "reads of a host" in command_line
    assert PASSWORD not in get_kwargs_str(dict(command.connector_arguments)), "pyinfra logs a fact's arguments"
    assert PASSWORD not in f"{Unshown(PASSWORD)} {Unshown(PASSWORD)!r} {Unshown(PASSWORD)!s}"


def test_many_networks_of_many_endpoints_are_read_and_guarded() -> None:
    host_settings = settings(8, 64)
    command, _ = sent(reading_command(host_settings))
    assert len(command) < 1024
    long = "\n".join(
        f"echo {network}" for endpoint in host_settings.all_endpoints.values() for network in endpoint.networks * 20
    )
    step = Guarded("rules", long, "true", 30)
    assert len(sent(command_of(Shell(guards._arm(step), stdin="true\n", unseen=True)))[0]) < 1024


class Host:
    name = "h1"


def guarded(monkeypatch: pytest.MonkeyPatch, *printed: str) -> str:
    """Return the error of a guarded change that failed after the host had printed this."""
    lines = [OutputLine("stdout", output_line) for output_line in printed] + [OutputLine("stderr", "no such rule")]
    monkeypatch.setattr(guards, "under_lease", lambda *_: (False, CommandOutput(lines)))
    host: Any = Host()
    with pytest.raises(StepFailedError) as caught:
        run_guarded(host, Guarded("rules", "false", "true", 30))
    assert isinstance(caught.value, TakenBackError) == bool(printed)
    return str(caught.value)


def test_taken_back_is_said_only_when_something_had_begun_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "rules: could not begin, so nothing was changed: no such rule" in guarded(monkeypatch)
    assert "rules: the change failed and was taken back: no such rule" in guarded(monkeypatch, guards.GUARD_BEGAN)


def test_a_change_that_could_not_succeed_is_ended_before_it_begins(tmp_path: Path) -> None:
    step = Guarded("rules", f"touch {tmp_path}/begun", "true", 30, before="echo no >&2; exit 1\n")
    run = subprocess.run(["sh", "-c", guards._arm(step)], input="", capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "no\n")
    assert not (tmp_path / "begun").exists()
