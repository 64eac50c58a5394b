"""Commands that connect patch late: nothing that greenlets share may be real by then. Fresh processes only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs.fake_site import make_site

INVENTORY = """\
from rackwright.inventory import build
globals().update(build(__file__, {"fleet": ["gpu01", "gpu02", "gpu03"]}))
"""
DEPLOY = """\
from rackwright.operations import concerns
concerns.image()
concerns.models()
"""
SECONDS = 60.0
ASKED = """\
import sys, time
from types import SimpleNamespace
from rackwright.concerns.image import SeenImages
from rackwright.concerns.models import SeenModels
from rackwright.inspect import read_hosts
from rackwright.plan.concern import HostReading
from rackwright.adapter.run import session
from rackwright.sources.names import Names

def connect(state):
    for host in state.inventory:
        host.connected = True

def read(host, *_):
    seen = {"image": SeenImages(True, (), {}), "models": SeenModels((), frozenset())}
    return HostReading(seen, frozenset({"image", "models"})), {}

def ask(*_):
    asked.append(1)
    time.sleep(0.2)
    return "sha256:" + "0" * 64

asked = []
session.connect_all, session.disconnect_all, read_hosts.read_host = connect, lambda state: None, read
Names._digest = Names._commit = staticmethod(ask)
found = read_hosts.survey("inventory/fleet.py", [])
print([one.name for one in found if one.reading], len(asked))
"""


def fresh(site: Path, code: str, *words: str) -> str:
    """Return the output of a fresh process, which no warm one has begun."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=site, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of three hosts without a lock file."""
    return make_site(tmp_path, DEPLOY, INVENTORY)


def test_several_hosts_whose_tags_must_be_asked_for_are_answered(site: Path) -> None:
    assert fresh(site, ASKED) == "['gpu01', 'gpu02', 'gpu03'] 2\n"


CENSUS = """\
import sys, sysconfig, threading, traceback
from pathlib import Path

LIBRARY = sysconfig.get_path("stdlib") + "/"
PACKAGES = sysconfig.get_path("purelib") + "/"
made = []

def maker():
    for frame in reversed(traceback.extract_stack()[:-2]):
        own = frame.filename.startswith(PACKAGES)
        if frame.filename[0] == "<":
            continue
        if own or not frame.filename.startswith(LIBRARY):
            return frame.filename.removeprefix(PACKAGES)
        if frame.name == "<module>":
            return "the library"
    return ""

def watched(real):
    def make(*words, **named):
        made.append(maker())
        return real(*words, **named)
    return make

of_threads = ("_start_new_thread", "_start_joinable_thread")
for name in ("Lock", "RLock", "_allocate_lock", *(one for one in of_threads if hasattr(threading, one))):
    setattr(threading, name, watched(getattr(threading, name)))

import gevent.monkey
patch = gevent.monkey.patch_all

def then():
    patch()
    modules.update(sys.modules)

class Stop(BaseException):
    pass

def stop(*_):
    raise Stop

gevent.monkey.patch_all = then
modules = {}
from rackwright.cli.main import main
from rackwright.adapter.run import session
session.use_patient_client = stop
before = list(made)
try:
    main(sys.argv[1:])
except Stop:
    pass
assert modules, "it did not patch"
for name in sorted({one for one in made if one.startswith(("paramiko/", "pyinfra/")) or "rackwright" in one}):
    print("made by", name)
pool = sys.modules.get("concurrent.futures.thread")
if pool and "gevent" not in type(pool._global_shutdown_lock).__module__:
    print("real: the lock of all pools of threads")
saved = {id(old) for names in gevent.monkey.saved.values() for old in names.values() if callable(old)}
for name in sorted(modules):
    if name.partition(".")[0] in ("paramiko", "pyinfra", "rackwright"):
        for word, value in vars(modules[name]).items():
            if id(value) in saved:
                print("real:", name, word)
"""
HARMLESS = ["made by paramiko/util.py"]
"""paramiko's lock of a thread's number: nothing waits while it is held."""
VERBS = (
    ("plan", "inventory/fleet.py"),
    ("exec", "inventory/fleet.py", "--", "true"),
    ("chat", "inventory/fleet.py", "--", "hello"),
    ("lease", "show", "inventory/fleet.py"),
    ("firewall", "show", "inventory/fleet.py"),
)


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_nothing_real_is_left_when_a_command_begins_to_connect(site: Path, words: tuple[str, ...]) -> None:
    assert fresh(site, CENSUS, *words).splitlines() == HARMLESS
