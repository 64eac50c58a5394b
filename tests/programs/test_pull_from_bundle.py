"""The pull of an image from a bundle: by which name Docker is asked, what names are left, and what a kill leaves."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.concerns.image import IMAGE, parse, remove_names_script
from rackwright.concerns.registry import SeenLogin
from rackwright.hostside import host_script
from rackwright.plan.change import Job
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from tests import texts

DIGEST = "sha256:" + "1" * 64
REPOSITORY = "nvcr.io/nvidia/tensorrt-llm/release"
TAGGED = f"{REPOSITORY}:1.1.0rc0"
BY_ADDRESS = f"127.83.87.1:600/nvidia/tensorrt-llm/release@{DIGEST}"
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
DOCKER = r"""#!/bin/sh
cd "$(dirname "$0")/.."
printf '%s\n' "$*" >>calls
case $1 in
  info) [ ! -e containerd ] || echo '[[driver-type io.containerd.snapshotter.v1]]' ;;
  pull) cp hosts hosts-in-pull; [ ! -e refuses ] || exit 1; printf '%s\n' "$2" >>names ;;
  tag) printf '%s\n' "$3" >>names ;;
  rmi) grep -vxF "$2" names >names.new; mv names.new names ;;
  image)
    if [ "$2" = ls ]; then grep '^127' names; exit 0; fi
    for name in "$@"; do :; done
    case $* in *Architecture*) echo amd64; grep -qxF "$name" names && echo amd64; exit 0 ;; esac
    grep -qxF "$name" names ;;
esac
"""
STUBS = {
    "docker": DOCKER,
    "uname": "#!/bin/sh\necho x86_64\n",
    "systemctl": "#!/bin/sh\nexit 0\n",
    "systemd-socket-activate": "#!/bin/sh\nexec /bin/sleep 60\n",
    "sleep": "#!/bin/sh\nexec /bin/sleep 0.1\n",
}


@dataclass
class DockerHost:
    """A folder with a Docker of the test's, and a file of names."""

    folder: Path

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        script = script.replace("/etc/hosts", f"{self.folder}/hosts").replace("/run/rackwright", f"{self.folder}/run")
        path = f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {"PATH": path, "JOB": str(self.folder), "SECRETS": str(self.folder)}
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=variables, check=False)

    def pull(self) -> subprocess.CompletedProcess[str]:
        settings = HostSettings.model_validate(
            {"model": MODEL, "image": TAGGED, "image_digest": DIGEST, "bundle": {"folder": "/media/disk"}}
        )
        reading = HostReading({"image": parse("known"), "registry": SeenLogin(None, "salt", None, None)})
        [change] = IMAGE.pending(settings, reading)
        [job] = change.steps
        assert isinstance(job, Job)
        return self.run(job.script)

    def names(self) -> list[str]:
        return (self.folder / "names").read_text().split()

    def calls(self, verb: str) -> list[str]:
        rows = (self.folder / "calls").read_text().splitlines()
        return [row.removeprefix(f"{verb} ") for row in rows if row.startswith(f"{verb} ")]

    def hosts(self, when: str = "hosts") -> str:
        return (self.folder / when).read_text()


@pytest.fixture
def host(tmp_path: Path) -> DockerHost:
    for name in ("bin", "run"):
        (tmp_path / name).mkdir()
    for name, text in STUBS.items():
        path = tmp_path / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    for name in ("calls", "names", "log"):
        (tmp_path / name).touch()
    (tmp_path / "nonce").write_text("n\n")
    (tmp_path / "hosts").write_text("10.1.2.3 nvcr.io\n")
    return DockerHost(tmp_path)


def in_containerd(host: DockerHost) -> DockerHost:
    (host.folder / "containerd").touch()
    return host


def test_a_graph_driver_is_asked_by_the_registrys_name_which_leads_to_the_host_for_that_time(host: DockerHost) -> None:
    before = host.hosts()
    assert host.pull().returncode == 0
    assert host.calls("pull") == [f"{REPOSITORY}@{DIGEST}"]
    assert "127.83.87.1 nvcr.io # rackwright-bundle" in host.hosts("hosts-in-pull")
    assert host.hosts() == before


def test_containerds_store_is_asked_by_the_address_and_the_image_gets_its_own_name(host: DockerHost) -> None:
    done = in_containerd(host).pull()
    assert done.returncode == 0, done.stdout + done.stderr
    assert host.calls("pull") == [BY_ADDRESS]
    assert host.names() == [TAGGED]
    assert host.hosts("hosts-in-pull") == host.hosts()


def test_a_tag_that_is_here_stays_what_it_is(host: DockerHost) -> None:
    (host.folder / "names").write_text(f"{TAGGED}\n")
    assert in_containerd(host).pull().returncode == 0
    assert host.calls("tag") == [f"{BY_ADDRESS} {REPOSITORY}:rackwright-{'1' * 12}"]
    assert host.names() == [TAGGED, f"{REPOSITORY}:rackwright-{'1' * 12}"]


def test_a_pull_that_fails_leaves_no_name(host: DockerHost) -> None:
    (host.folder / "refuses").touch()
    assert in_containerd(host).pull().returncode != 0
    assert host.calls("rmi") == [BY_ADDRESS]


def test_an_address_that_a_killed_pull_has_left_is_seen_and_taken_away(host: DockerHost) -> None:
    output = f"known\nno-pull\nimage 127.83.87.1:600/nvidia/tensorrt-llm/release <none> {DIGEST}"
    assert parse(output).addresses_left
    assert not parse(output.replace("no-pull", "")).addresses_left, "a pull is under way"
    (host.folder / "names").write_text(f"{BY_ADDRESS}\n{TAGGED}\n")
    assert host.run(remove_names_script()).returncode == 0
    assert host.names() == [TAGGED]


def test_a_pull_that_waits_for_another_ones_end_says_so(host: DockerHost) -> None:
    lock = host.folder / "run/bundle.lock"
    with subprocess.Popen(["/usr/bin/flock", lock, "/bin/sh", "-c", "echo; exec /bin/sleep 2"], stdout=-1) as other:
        assert other.stdout
        other.stdout.readline()
        done = host.pull()
    assert done.returncode == 0
    assert texts.PULL_WAITS in done.stdout
    assert texts.PULL_WAITS not in host.pull().stdout


PULLS = """#!/bin/sh
printf '%s\\n' 'one: Pulling fs layer' 'two: Pulling fs layer' 'one: Pull complete'
/bin/sleep 4
exit $(cat "${0%/*}/../ends" 2>/dev/null || echo 0)
"""


def test_a_load_from_the_hosts_own_registry_says_how_far_it_is_and_why_it_failed(host: DockerHost) -> None:
    (host.folder / "bin/docker").write_text(PULLS)
    values = {"here": "127.83.87.2:600/x@sha256:1", "tagged": "x:1", "always": ""}
    script = host_script("event") + host_script("image_layers", **values) + "load_layers"
    assert host.run(script).returncode == 0
    event = base64.b64decode((host.folder / "events").read_text().splitlines()[0].split()[3]).decode()
    assert event.removeprefix(texts.UNPACKING).startswith("1 of 2 ")
    (host.folder / "ends").write_text("1")
    done = host.run(script)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "one: Pull complete")
