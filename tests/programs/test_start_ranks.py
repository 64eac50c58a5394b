"""What the head's key may do on another member: its sshd's forced command, with what Open MPI 4.1 really asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_text

HEAD = "10.9.0.1"
BACK = f'-mca orte_hnp_uri "582025216.0;tcp://{HEAD}:29502"'
ASKED = (
    'orted -mca orte_leave_session_attached "1" -mca ess "env" -mca ess_base_jobid "582025216" -mca ess_base_vpid 1'
    ' -mca ess_base_num_procs "2" -mca orte_node_regex "trt-bare[1:1],[2:10].9.0.2@0(2)"'
    f' {BACK} --mca plm_rsh_agent "/scratch/tmp/ask-host" -mca plm "rsh" -mca coll_hcoll_enable "0"'
    f' -mca oob_tcp_if_include "{HEAD}/24" -mca rmaps_base_mapping_policy "ppr:2:node" -mca pmix "^s1,s2,cray,isolated"'
)


@pytest.fixture
def member(tmp_path: Path) -> Path:
    """Make a release's folder on a member, and a docker that prints its arguments."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/bash\ncase $3 in inspect) echo true ;; *) printf "<%s>" "$@" ;; esac\n')
    docker.chmod(0o755)
    (tmp_path / "start-ranks").write_text(host_text("start_ranks.bash").replace("/usr/bin/docker", str(docker)))
    (tmp_path / "group").write_text("container='rackwright-llm'\ndocker_host='unix:///var/run/docker.sock'\n")
    return tmp_path


def come_in(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": command}
    words = ["bash", str(folder / "start-ranks"), HEAD]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_what_open_mpi_asks_for_runs_in_the_endpoints_container(member: Path) -> None:
    done = come_in(member, ASKED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<--host><unix:///var/run/docker.sock><exec><rackwright-llm><bash><-c>")
    assert "<bash><orted><-mca><orte_leave_session_attached><1>" in done.stdout
    assert "<trt-bare[1:1],[2:10].9.0.2@0(2)>" in done.stdout
    assert f"<582025216.0;tcp://{HEAD}:29502>" in done.stdout


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "not orted with plain options"),
        ("id", "not orted with plain options"),
        ("orted", "not orted with plain options"),
        ("bash -c id", "not orted with plain options"),
        (f"orted {BACK} && id", "not orted with plain options"),
        (f"orted {BACK} -mca ess $(id)", "not orted with plain options"),
        (f"orted {BACK} -mca ess `id`", "not orted with plain options"),
        (f"orted {BACK}\nid", "not orted with plain options"),
        (f"orted {BACK} -mca ess >/etc/passwd", "not orted with plain options"),
        ("orted -mca ess env", f"does not call {HEAD} back"),
        (ASKED.replace(HEAD, "10.9.0.7"), f"does not call {HEAD} back"),
        (ASKED.replace(HEAD, "10x9.0.1"), f"does not call {HEAD} back"),
        (ASKED.replace(HEAD, f"{HEAD}0"), f"does not call {HEAD} back"),
        (f"orted {BACK} -mca mca_base_component_path /scratch", "names files of its own"),
    ],
)
def test_anything_else_is_refused(member: Path, command: str, says: str) -> None:
    done = come_in(member, command)
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
