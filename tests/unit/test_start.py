"""What a command never loads before the first login."""

from __future__ import annotations

import json
import subprocess
import sys

from rackwright.settings.sections import Frozen

# A process of its own: this one has loaded everything. It prints what status loads while the hosts log in.
LOADED = """
import json, sys
import rackwright.cli.main, rackwright.inventory, rackwright.cli.status
before = sorted(sys.modules)
import rackwright.inspect.status.output
print(json.dumps([before, sorted(sys.modules)]))
"""
NEVER = (
    "pyinfra.operations",
    "pyinfra.facts",
    "pyinfra_cli",
    "rackwright.operations",
    "rackwright.concerns.apply",
    "rackwright.concerns.catalog",
    "rackwright.rollout.forward_and_back",
    "rich",
    "asyncssh",
    "shtab",
)
"""What a deploy needs, and a look never does."""
LATER = (
    "rackwright.concerns.endpoint.concern",
    "rackwright.concerns.endpoint.seen",
    "rackwright.concerns.endpoint.switch",
    "rackwright.concerns.docker",
    "rackwright.concerns.firewall",
    "rackwright.concerns.endpoint.proof.full",
)
"""What only the replies need."""


def loaded() -> tuple[list[str], list[str]]:
    """Modules before the first login, and all that status loads."""
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)
    before, after = json.loads(done.stdout)
    return before, after


def within(modules: list[str], packages: tuple[str, ...]) -> list[str]:
    return [name for name in modules if any(f"{name}.".startswith(f"{package}.") for package in packages)]


def test_status_loads_no_deploy_and_no_reply_reader_before_the_first_login() -> None:
    before, after = loaded()
    assert within(after, NEVER) == []
    assert within(before, LATER) == []


def test_no_text_of_the_settings_is_looked_for_at_a_start() -> None:
    assert not Frozen.model_config.get("use_attribute_docstrings", False)


DEPLOY = """
import sys
import rackwright.inventory, rackwright.operations, rackwright.rollout.deploy_record
print([name for name in sys.modules if name.split(".")[0] in ("rich", "huggingface_hub", "asyncssh")])
"""


def test_a_deploy_that_draws_no_table_loads_nothing_to_draw_one_with() -> None:
    assert subprocess.run([sys.executable, "-c", DEPLOY], check=True, capture_output=True, text=True).stdout == "[]\n"


VERSION = """
import sys
from rackwright.cli.main import main
try:
    main(["--version"])
finally:
    rooms = ("rackwright.concerns", "rackwright.rollout", "rackwright.inspect", "pydantic")
    print([name for name in sys.modules if name.startswith(rooms)])
"""


def test_its_version_is_told_without_loading_a_verb() -> None:
    done = subprocess.run([sys.executable, "-c", VERSION], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["[]"]


COOPERATING = """
import threading
from rackwright.adapter.ssh.cooperation import cooperate
threading.Thread(target=threading.Event().wait, daemon=True).start()
cooperate()
"""


def test_a_thread_that_is_still_alive_does_not_stop_a_connection() -> None:
    done = subprocess.run([sys.executable, "-c", COOPERATING], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ENDING = """
import socket, threading, time
import paramiko
from rackwright.adapter.ssh.cooperation import cooperate

sleep = time.sleep

class Ending(paramiko.Transport):
    def run(self):
        sleep(0.3)

here, there = socket.socketpair()
connection = Ending(here)
connection.start_client(event=threading.Event())
connection.active = False
cooperate()
connection.join(5)
sleep(0.3)
"""


def test_a_connection_that_ends_meanwhile_says_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
