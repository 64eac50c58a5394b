"""The main job on real hosts: from bare and lived-in to an answer, and then nothing more to do."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from rackwright.hardware.page import values
from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab import tutorial
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Run, Site
from tests.lab.products import with_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab

UNIT = "rackwright-llm.service"
RELEASE_OF = """docker inspect --format '{{index .Config.Labels "rackwright.release"}}' rackwright-llm"""


@pytest.fixture(scope="module")
def fresh(worker_lab: Lab) -> Site:
    for host in worker_lab.hosts:
        host.reset()
    return Site(worker_lab)


@pytest.fixture
def deployed(fresh: Site, request: pytest.FixtureRequest) -> Site:
    """Both hosts reset for this file, and deployed."""
    if needs_preparing(request):
        run = fresh.deploy()
        assert run.status == 0, run.output
    return fresh


def ask(host: Host, question: str) -> str:
    body = {"model": "gpt-oss-120b", "messages": [{"role": "user", "content": question}], "max_tokens": 512}
    command = "curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/chat/completions"
    answer = json.loads(host.run(command, stdin=json.dumps(body)).stdout)
    return str(answer["choices"][0]["message"]["content"])


def show(host: Host, *properties: str) -> dict[str, str]:
    output = host.run(f"systemctl show --property={','.join(properties)} {UNIT}").stdout
    return dict(output_line.split("=", 1) for output_line in output.splitlines())


def test_both_hosts_answer(deployed: Site) -> None:
    for host in deployed.lab.hosts:
        assert "42" in ask(host, "What is 17 + 25? Answer with the number only.")


def test_the_deploy_read_the_answer(deployed: Site) -> None:
    assert len(re.findall(r"proved: a chat answer", deployed.runs[0].output)) == 2


def test_the_tutorial_quotes_what_a_deploy_prints(deployed: Site) -> None:
    bare = deployed.lab.host("bare1").name
    assert tutorial.missing(5, deployed.runs[0].output, bare) == []
    checked = [deployed.rackwright("check", "inventory/lab.py", *more).output for more in ((), ("--show-origin",))]
    assert tutorial.missing(3, "\n".join(checked), bare) == []
    answer = deployed.rackwright("chat", "inventory/lab.py", "--", "What is the capital of France?")
    assert tutorial.missing(6, answer.output, bare) == []


def own_lines(run: Run) -> list[str]:
    """Return the lines on hosts that are a run's own: pyinfra adds one line for each host and operation."""
    pyinfras = ("No changes", "Connected", "deploy.py")
    return [
        output_line
        for output_line in run.output.splitlines()
        if output_line.startswith("    [") and not output_line.endswith(pyinfras)
    ]


def test_a_second_run_changes_nothing_at_the_cost_of_one_command(deployed: Site) -> None:
    before = {host.name: sessions(host) for host in deployed.lab.hosts}
    run = deployed.deploy()
    assert run.status == 0, run.output
    assert run.changed == []
    for host in deployed.lab.hosts:
        assert sessions(host) - before[host.name] <= 3
    assert len(own_lines(run)) <= 8 * len(deployed.lab.hosts), "a line on each host's checks, and its warnings"
    (table,) = tutorial.blocks(7)
    for name, counts in Run(0, table).table.items():
        assert run.table[name] == tuple(len(deployed.lab.hosts) * count for count in counts), "the tutorial's table"


SHIMS = """\
rm -rf /run/shims /run/started; mkdir /run/shims
for program in /bin/* /usr/bin/* /usr/sbin/* /usr/local/bin/* /usr/local/sbin/*; do
  [ -x "$program" ] && [ ! -d "$program" ] || continue
  printf '#!/bin/sh\\necho %s >>/run/started\\nexec %s "$@"\\n' "${program##*/}" "$program" >"/run/shims/${program##*/}"
done
chmod 755 /run/shims/*
"""
READING = """\
from rackwright.concerns.read_host import reading_script
from rackwright.adapter.run.session import chosen_hosts
print(reading_script(chosen_hosts("inventory/lab.py", ())[0].settings))
"""


def started(site: Site, host: Host) -> Counter[str]:
    """Return the programs that one reading of a host starts, by name."""
    script = site.command(sys.executable, "-c", READING).output
    path = next(row for row in script.splitlines() if row.startswith("export LC_ALL=C PATH="))
    host.run(SHIMS)
    host.run("cat >/run/reading.sh", stdin=script.replace(path, "export LC_ALL=C PATH=/run/shims"))
    host.run("sh /run/reading.sh >/dev/null")
    found = Counter(host.run("cat /run/started; rm -rf /run/shims /run/started /run/reading.sh").stdout.split())
    assert found, "nothing was counted"
    return found


def test_a_reading_of_a_converged_host_starts_few_programs(deployed: Site) -> None:
    found = started(deployed, deployed.lab.hosts[0])
    assert (found["docker"], found["nvidia-smi"], found["systemctl"], found["dpkg-query"]) == (0, 1, 1, 1), found
    assert found["curl"] == 2, "Docker's API, and /health"
    assert found["base64"] <= 2, "all files travel in one archive"
    assert found.total() <= 70, found


def test_looking_ahead_finds_nothing_on_a_converged_host(deployed: Site) -> None:
    run = deployed.deploy("--dry")
    assert run.status == 0, run.output
    assert "would" not in run.output


def sessions(host: Host) -> int:
    """Commands that sshd has started for others since the host was made."""
    journal = host.run("journalctl -u ssh --no-pager -o cat | grep -c 'Starting session'", check=False).stdout
    return int(journal.strip() or 0)


def test_systemctl_cat_shows_the_whole_docker_run(deployed: Site) -> None:
    text = deployed.lab.hosts[0].run(f"systemctl cat {UNIT}").stdout
    for part in (
        "docker run --rm",
        "--ipc=host",
        "--ulimit memlock=-1",
        "--ulimit stack=67108864",
        "--runtime nvidia --env NVIDIA_VISIBLE_DEVICES=${GPUS}",
        "--publish 0.0.0.0:8000:8000",
        "TRTLLM_ENABLE_PDL=1",
        ":/config/models/gpt-oss-120b:ro",
        ":/config/models/eagle:ro",
        "--extra_llm_api_options /config/release/eagle.yaml",
    ):
        assert part in text
    assert "--privileged" not in text
    assert "GPU-" not in text


def test_all_hosts_have_one_release_and_each_its_own_binding(deployed: Site) -> None:
    home = "/var/lib/rackwright/endpoints/llm"
    releases = {host.run(f"cat {home}/current/SHA256SUMS").stdout for host in deployed.lab.hosts}
    bindings = {host.run(f"cat {home}/binding").stdout for host in deployed.lab.hosts}
    assert (len(releases), len(bindings)) == (1, len(deployed.lab.hosts))
    for host in deployed.lab.hosts:
        inside = re.findall(r"UUID: (GPU-[^)]+)", host.run("docker exec rackwright-llm nvidia-smi -L").stdout)
        assert f"GPUS={','.join(inside)}\n" in host.run(f"cat {home}/binding").stdout


def test_the_container_got_what_the_unit_says(deployed: Site) -> None:
    container = json.loads(deployed.lab.hosts[0].run("docker inspect rackwright-llm").stdout)[0]
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in container["HostConfig"]["Ulimits"]}
    assert limits == {"memlock": (-1, -1), "stack": (67108864, 67108864)}
    assert container["HostConfig"]["IpcMode"] == "host"
    assert container["HostConfig"]["Runtime"] == "nvidia"
    assert container["HostConfig"]["LogConfig"]["Type"] == "none"
    assert container["Image"].startswith("sha256:")
    assert "@sha256:" in container["Config"]["Image"]


def test_active_means_ready_and_the_boot_is_not_held(deployed: Site) -> None:
    host = deployed.lab.hosts[0]
    assert show(host, "ActiveState", "UnitFileState") == {"ActiveState": "active", "UnitFileState": "enabled"}
    after = host.run("systemctl show --property=After multi-user.target").stdout
    assert UNIT not in after
    assert "Application startup complete" in host.run(f"journalctl -u {UNIT} --no-pager -o cat").stdout


def test_lived_in_things_survive(deployed: Site) -> None:
    host = deployed.lab.host("lived2")
    logins = json.loads(host.run("cat /root/.docker/config.json").stdout)["auths"]
    assert "nvcr.io" in logins
    assert len(logins) > 1, "other registries' logins survive"
    assert host.run("stat -c %a /root/.docker/config.json").stdout.strip() == "600"


def test_after_a_reboot_it_serves_by_itself_and_nothing_is_pending(deployed: Site) -> None:
    """A release that waits for the next switch is there as well, and the reboot must ignore it."""
    hosts, waits = deployed.lab.hosts, ("--data", "stop_timeout=25")
    staged = deployed.deploy("-y", *waits)
    assert staged.status == 0, staged.output
    # The watch's restart knows how long a stop may take.
    assert [name for name in staged.changed if "wanted release of" not in name and "Watch |" not in name] == []
    running = [host.run(RELEASE_OF).stdout for host in hosts]
    for host in hosts:
        host.reboot()
    for host in hosts:
        host.run(f"for i in $(seq 90); do systemctl is-active --quiet {UNIT} && exit 0; sleep 1; done; exit 1")
        assert "42" in ask(host, "What is 17 + 25?")
    run = deployed.deploy("-y", *waits)
    assert run.status == 0, run.output
    assert run.changed == []
    assert run.output.count("is adopted at the next switch") == len(hosts)
    assert [host.run(RELEASE_OF).stdout for host in hosts] == running


def test_a_killed_container_comes_back_without_us(deployed: Site) -> None:
    host = deployed.lab.hosts[0]
    host.run("docker kill rackwright-llm")
    again = f'[ "$(systemctl show --property=NRestarts --value {UNIT})" -ge 1 ] && systemctl is-active --quiet {UNIT}'
    host.run(f"for i in $(seq 60); do {again} && exit 0; sleep 1; done; exit 1")
    assert "42" in ask(host, "What is 17 + 25?")


DAMAGES = {
    "stopped": (f"systemctl stop {UNIT}", "Each endpoint runs"),
    "disabled": (f"systemctl disable {UNIT}", "Each endpoint runs"),
    "its unit edited": (f"echo '# drift' >>/etc/systemd/system/{UNIT}", "Each endpoint runs"),
    "its binding edited": ("echo drift >/var/lib/rackwright/endpoints/llm/binding", "Each endpoint runs"),
    "no release": ("rm -rf /var/lib/rackwright/endpoints/llm/releases/*", "The wanted release"),
}


DAMAGES_ELSEWHERE = "test_ssh_faults.py starts what was stopped; tests/unit/test_endpoint_changes.py has each drift"


@pytest.mark.parametrize("name", with_proof(DAMAGES, {"its unit edited", "no release"}, DAMAGES_ELSEWHERE))
def test_drift_heals_and_only_drift(deployed: Site, name: str) -> None:
    damage, expected = DAMAGES[name]
    host = deployed.lab.hosts[0]
    host.run(damage)
    run = deployed.deploy()
    assert run.status == 0, run.output
    assert any(expected in name for name in run.changed), run.output
    assert "42" in ask(host, "What is 17 + 25?")
    again = deployed.deploy()
    assert again.changed == [], again.output


def test_a_damaged_file_is_put_back_under_the_running_container(deployed: Site) -> None:
    host, inside = deployed.lab.hosts[0], "docker exec rackwright-llm sh -c 'cd /config/release && {}'"
    assert deployed.deploy().status == 0
    container = host.run("docker inspect --format '{{.Id}}' rackwright-llm").stdout
    host.run("cd /var/lib/rackwright/endpoints/llm/current && echo drift >>eagle.yaml && rm wait-ready")
    run = deployed.deploy()
    assert run.status == 0, run.output
    assert [name for name in run.changed if "wanted release of" not in name] == []
    assert "put back files of release" in run.output
    assert host.run("docker inspect --format '{{.Id}}' rackwright-llm").stdout == container
    host.run(inside.format("sha256sum --check --strict --quiet SHA256SUMS"))


def test_downloads_go_on_side_by_side_and_a_failed_one_is_told_where_it_is_collected(deployed: Site) -> None:
    host, web, file = deployed.lab.hosts[0], deployed.lab.paths.web, "/srv/encodings/cl100k_base.tiktoken"
    host.run(f"rm {file}; for f in /srv/models/*Eagle3*/*.safetensors; do echo x >$f; done")
    faults.set_fault(web, "wrong_bytes", path="*cdn*")
    failed = deployed.deploy("-y", limit=[host.name])
    faults.clear(web)
    assert failed.status == 1, failed.output
    begun, _, collected = failed.output.partition("--> Starting operation: Release | Image, encodings and models")
    assert "RW2903" not in begun
    refusal(collected, "RW2903", "nvidia/gpt-oss-120b-Eagle3", "status 1")
    assert "wrong bytes, twice" in collected.partition("RW2903")[2], "why is said with it"
    assert "Release | The wanted release" not in collected.partition("RW2903")[2].partition("Results:")[0]
    host.run(f"test -f {file}")
    healed = deployed.deploy("-y", limit=[host.name])
    assert healed.status == 0, healed.output
    assert any("Fetch the models" in name for name in healed.changed)
    assert deployed.deploy("-y", limit=[host.name]).changed == []


def test_what_it_proved_of_its_hardware_names_nobody(deployed: Site) -> None:
    run = deployed.rackwright("report", "--hardware")
    assert run.status == 0, run.output
    text = Path(run.output.strip().splitlines()[-1]).read_text()
    found = values(text)
    for host in found["hosts"]:
        assert [(gpu["count"], gpu["name"]) for gpu in host["gpus"]] == [(8, "NVIDIA B200")]
        assert {"row": "a chat answer", "mark": "proved"} in host["gate"]
        assert {"check": "GPU count", "verdict": "ok"} in host["preflight"]
        assert host["endpoints"][0]["options"]["tensor_parallel_size"] == 8
    uuids = [
        gpu_row.split()[-1].strip(")") for gpu_row in deployed.lab.hosts[0].run("nvidia-smi -L").stdout.splitlines()
    ]
    owner = [name for host in deployed.lab.hosts for name in (host.name, host.address)]
    assert [name for name in (*owner, *uuids, deployed.lab.paths.id, "10.79.") if name in text] == []
