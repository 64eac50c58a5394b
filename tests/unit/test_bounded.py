"""Other programs are asked with limits of time, memory and output, and Jinja is evaluated by one of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.loading.ansible import bounded, jinja
from rackwright.loading.ansible.bounded import ProgramEnd, asked
from rackwright.loading.ansible.jinja import HostJinja, evaluated
from rackwright.messages import SettingsError
from rackwright.settings.secret import Secret


def python(text: str, seconds: float = 20, **more: Any) -> ProgramEnd:
    return asked([sys.executable, "-c", text], seconds, **more)


def test_a_program_that_ends_is_heard() -> None:
    answer = python("import sys; print(sys.stdin.read()); print('no', file=sys.stderr); sys.exit(3)", given=b"yes")
    assert answer == ProgramEnd(3, b"yes\n", "no\n")


def test_one_that_waits_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    began = time.monotonic()
    answer = python(
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)", seconds=1
    )
    assert time.monotonic() - began < 3
    assert answer.past == "1 s"
    time.sleep(max(0.0, began + 4 - time.monotonic()))
    assert not mark.exists()


def test_one_that_fills_memory_or_prints_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert python("'a' * 900_000_000", memory=200 << 20).past == "200 MiB of memory"
    monkeypatch.setattr(bounded, "PRINTED", 1 << 20)
    assert python("while True: print('a' * 99)").past == "1 MiB of output"


def made(text: str, **said: Any) -> Any:
    (values,) = evaluated(Path("hosts.ini"), [HostJinja("h1", ["g"], {"ssh_hostname": text, "port": 1}, said)])
    assert values["port"] == 1
    return values["ssh_hostname"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("{{ base }}.{{ group_names[0] }}", "192.g"),
        ("{{ ports[1] }}-{{ inventory_hostname }}", "x-h1"),
        ("{{ twice }}", "192"),
        ("{{ missing }}", "{{ missing }}"),
        ("{{ secret }}", "{{ secret }}"),
        ("{{ ''.__class__.__mro__ }}", "{{ ''.__class__.__mro__ }}"),
        ("{% for %}", "{% for %}"),
        ("{{ ports['a'].b.c }}", "{{ ports['a'].b.c }}"),
    ],
)
def test_jinja_makes_a_text_or_leaves_it(text: str, right: str) -> None:
    assert made(text, base=192, twice="{{ base }}", ports={1: "x"}, secret=Secret("s")) == right


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}",
        "{{ 'a' * 900000000 }}",
        "{{ '%900000000s' % 'a' }}",
        "{{ 'a'.ljust(99999) }}",
    ],
)
def test_endless_and_huge_jinja_is_refused_with_host_and_key(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja, "EACH", 1)
    began = time.monotonic()
    with pytest.raises(SettingsError, match=r"hosts\.ini: h1: ansible_(ssh_)?host: its Jinja takes more than 1 s"):
        made(text)
    assert time.monotonic() - began < 10
