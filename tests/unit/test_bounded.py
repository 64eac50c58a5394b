"""Other programs are asked with limits of time, memory and output, and Jinja is evaluated by one of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.loading.ansible import bounded, jinja
from rackwright.loading.ansible.bounded import ProgramEnd, run_bounded
from rackwright.loading.ansible.jinja import HostJinja, evaluated
from rackwright.settings.secret import Secret


def python(text: str, seconds: float = 20, **more: Any) -> ProgramEnd:
    return run_bounded([sys.executable, "-c", text], seconds, **more)


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


def host(name: str, text: str, **variables: Any) -> HostJinja:
    return HostJinja(name, ["g"], {"ssh_hostname": text, "port": 1}, variables)


def made(text: str, **variables: Any) -> Any:
    ((values, problems),) = evaluated(Path("hosts.ini"), [host("h1", text, **variables)])
    assert values["port"] == 1
    assert problems == []
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
    (before, (values, problems), after) = evaluated(
        Path("hosts.ini"), [host("h0", "{{ 1 }}"), host("h1", text), host("h2", "{{ 2 }}")]
    )
    assert [(one.code, one.host, one.path) for one in problems] == [("RW0234", "h1", ("ansible_host",))]
    assert values == {"port": 1}
    assert (before, after) == (({"ssh_hostname": "1", "port": 1}, []), ({"ssh_hostname": "2", "port": 1}, []))
    assert time.monotonic() - began < 15


def test_jinja_of_all_hosts_that_is_endless_is_not_evaluated_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja, "EACH", 1)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    began = time.monotonic()
    found = evaluated(Path("hosts.ini"), [host(f"h{number}", endless) for number in range(200)])
    assert time.monotonic() - began < 30
    assert [problems[0].code for _, problems in found] == ["RW0234"] * 200
