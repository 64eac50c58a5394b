"""A model that hosts take from each other: one download, a host that its neighbour fills, no port that stays open."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.models.neighbours import START, opened
from rackwright.plan.hand_on import ChainPart, Neighbour
from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.servers.web import CDN_HOST, HUB_HOST
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab
SHOW = "nft list ruleset; iptables-save -t filter; ip6tables-save -t filter"
FOREIGN = "iptables -A INPUT -s 192.0.2.0/24 -j DROP\n"


SMALL = {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"}
OTHER = {**SMALL, "repository": "nvidia/gpt-oss-120b-Eagle3-short-context"}
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
STAGING = "tests/lab/staging"


@pytest.fixture
def hosts(fleet: Site) -> Iterator[list[Host]]:
    """Return the hosts, that have the image and not the model; the model's files are in the lock file."""
    for host in fleet.lab.hosts:
        host.run("rm -rf /srv/models/nvidia--*")
    pinned = fleet.command("env", *environment(fleet), BIN / "rackwright", "pin", f"{STAGING}/inventory.py")
    assert pinned.status == 0, pinned.output
    faults.clear(fleet.lab.paths.web)
    faults.forget_requests(fleet.lab.paths.web)
    yield list(fleet.lab.hosts)
    for host in fleet.lab.hosts:
        host.run(f"iptables -D OUTPUT -d {fleet.lab.servers()[1]} -j DROP; rm -rf /srv/models/nvidia--*")
    (ROOT / STAGING / f"rackwright.lock.{fleet.lab.paths.id}.yml").unlink(missing_ok=True)


def environment(
    site: Site, bundle: str = "", tls: bool = False, model: Mapping[str, Any] = SMALL, **downloads: Any
) -> list[str]:
    """Return words for `env`: settings by which all hosts hand models on. bundle: its folder."""
    settings = {
        **({"bundle": {"folder": bundle}} if bundle else {}),
        "image": IMAGE,
        "model": model,
        "downloads": {"stall_timeout": 10, "hand_on": {"interface": "host0", "tls": tls}, **downloads},
    }
    names = " ".join(host.name for host in site.lab.hosts)
    found = {"STAGING_HOST": names, "STAGING_SETTINGS": json.dumps(settings), "PYTHONPATH": str(ROOT)}
    return [f"{name}={value}" for name, value in found.items()]


def words_for(site: Site, bundle: str = "", tls: bool = False, **settings: Any) -> list[str]:
    deploy = [str(BIN / "pyinfra"), f"{STAGING}/inventory.py", f"{STAGING}/deploy.py", "-y"]
    return ["env", *environment(site, bundle, tls, **settings), *deploy]


def command(site: Site, *words: str | Path) -> Run:
    """Run a command by these settings."""
    return site.command("env", *environment(site), *words)


def stage(site: Site) -> Run:
    return site.command(*words_for(site))


def at_hub(site: Site) -> set[str]:
    """Return the addresses of those that asked the hub, or its files' server."""
    return {row["client"] for row in faults.requests(site.lab.paths.web) if row["host"] in (HUB_HOST, CDN_HOST)}


def test_a_host_is_filled_by_its_neighbours_with_the_hub_cut_off(fleet: Site, hosts: list[Host]) -> None:
    run = stage(fleet)
    assert run.status == 0, run.output
    assert at_hub(fleet) == {hosts[0].address}, "the hub is asked by the first host alone"

    hosts[1].run("rm -rf /srv/models/nvidia--*")
    faults.forget_requests(fleet.lab.paths.web)
    web = fleet.lab.servers()[1]
    for host in hosts:
        host.run(f"iptables -A OUTPUT -d {web} -j DROP")
    limit = ("--limit", hosts[1].name)
    plan = command(fleet, BIN / "rackwright", "plan", f"{STAGING}/inventory.py", *limit)
    assert plan.status == 2, plan.output
    assert f": {hosts[0].name} or {hosts[2].name} > {hosts[1].name}" in plan.output, plan.output
    run = fleet.command(*words_for(fleet), *limit)
    assert run.status == 0, run.output
    assert at_hub(fleet) == set()
    sums = {host.run("cd /srv/models/nvidia--*/ && sha256sum *.json *.safetensors").stdout for host in hosts}
    assert len(sums) == 1
    for host in hosts:
        wait_for(lambda host=host: is_closed(host), 20)  # type: ignore[misc]
    assert stage(fleet).changed == []


@in_proof("tests/lab/test_bundle.py has a bundle, and the test above the hosts")
def test_the_control_machine_is_the_first_by_its_bundle(fleet: Site, hosts: list[Host], tmp_path: Path) -> None:
    made = command(fleet, BIN / "rackwright", "bundle", f"{STAGING}/inventory.py", "--out", tmp_path, "--without-tool")
    assert made.status == 0, made.output
    for host in hosts:
        host.run(f"iptables -A OUTPUT -d {fleet.lab.servers()[1]} -j DROP")
    faults.forget_requests(fleet.lab.paths.web)
    run = fleet.command(*words_for(fleet, str(tmp_path)))
    assert run.status == 0, run.output
    assert at_hub(fleet) == set()
    sources = [row.rpartition("; ")[2] for row in run.output.splitlines() if "complete and verified; " in row]
    assert {row.partition(" from ")[2] for row in sources} == {"the hub", hosts[0].name, hosts[1].name}


FLIP = (
    "f=$(ls /srv/models/nvidia--*/model.safetensors) && touch -r $f /tmp/then && "
    "printf x | dd of=$f bs=1 seek=4096 conv=notrunc status=none && touch -r /tmp/then $f && sha256sum <$f"
)
"""Changes one byte, and leaves size and time."""


@in_proof("tests/lab/test_retention.py repairs from the hub, tests/unit/test_caches.py has a neighbour's part")
def test_a_flipped_byte_is_repaired_from_a_neighbour_with_the_hub_cut_off(fleet: Site, hosts: list[Host]) -> None:
    assert stage(fleet).status == 0
    sums = "cat /srv/models/nvidia--*/model.safetensors | sha256sum"
    right = hosts[0].run(sums).stdout
    assert hosts[1].run(FLIP).stdout != right
    for host in hosts:
        host.run(f"iptables -A OUTPUT -d {fleet.lab.servers()[1]} -j DROP")
    faults.forget_requests(fleet.lab.paths.web)
    cache = (BIN / "rackwright", "cache")
    found = command(fleet, *cache, "verify", f"{STAGING}/inventory.py")
    assert (found.status, hosts[1].name in found.output) == (2, True), found.output
    repaired = command(fleet, *cache, "repair", f"{STAGING}/inventory.py")
    assert repaired.status == 0, repaired.output
    assert at_hub(fleet) == set()
    assert hosts[1].run(sums).stdout == right
    assert command(fleet, *cache, "verify", f"{STAGING}/inventory.py").status == 0


OPS_CACHE = "/home/ops/.cache/huggingface/hub"
FILL_CACHE = f"""
id ops >/dev/null 2>&1 || useradd --create-home ops
folder=$(ls -d /srv/models/nvidia--*)
commit=$(sed -n 's/^ *"commit": "\\([0-9a-f]*\\)".*/\\1/p' $folder/.rackwright.json)
cached={OPS_CACHE}/models--nvidia--gpt-oss-120b-Eagle3
mkdir -p $cached/blobs $cached/snapshots/$commit
cd $folder
for file in *; do cp $file $cached/blobs/b-$file; ln -s ../../blobs/b-$file $cached/snapshots/$commit/$file; done
chown -R ops /home/ops/.cache
rm -rf $folder /var/lib/rackwright/manifests/nvidia--*
"""
SEEN_CACHE = (
    "cd /home/ops/.cache && find . -printf '%p %l %u %m %T@\\n' | sort; find . -type f -exec sha256sum {} + | sort"
)
CACHED_WEIGHTS = f"{OPS_CACHE}/models--nvidia--gpt-oss-120b-Eagle3/blobs/b-model.safetensors"
FLIP_CACHED = f"printf y | dd of={CACHED_WEIGHTS} bs=1 seek=99 conv=notrunc status=none"


@in_proof("tests/lab/test_staging.py copies from a cache; tests/unit/test_caches.py decides what a prune may remove")
def test_a_hub_cache_of_a_user_is_taken_over_and_stays_as_it_is_through_every_verb(
    fleet: Site, hosts: list[Host]
) -> None:
    assert stage(fleet).status == 0
    user, weights = hosts[1], "cat /srv/models/nvidia--*/model.safetensors | sha256sum"
    right = hosts[0].run(weights).stdout
    user.run(FILL_CACHE)
    try:
        for host in hosts:
            host.run(f"iptables -A OUTPUT -d {fleet.lab.servers()[1]} -j DROP")
        faults.forget_requests(fleet.lab.paths.web)
        before = user.run(SEEN_CACHE).stdout
        taken = stage(fleet)
        assert taken.status == 0, taken.output
        assert (user.run(weights).stdout, user.run(SEEN_CACHE).stdout) == (right, before)

        user.run(FLIP)
        user.run(FLIP_CACHED)
        before = user.run(SEEN_CACHE).stdout
        listing = cache_of(fleet, "ls", "--json")
        (entry,) = (one for one in entries_of(listing, user) if one["path"].startswith(OPS_CACHE))
        assert (entry["kind"], entry["whose"], entry["needed_by"]) == ("hub cache", "others", ["llm"])
        assert cache_of(fleet, "verify").status == 2
        repaired = cache_of(fleet, "repair")
        assert repaired.status == 0, repaired.output
        assert user.run(weights).stdout == right, "the cache's wrong byte is not taken: a neighbour has the right one"
        assert at_hub(fleet) == set()
        assert user.run(SEEN_CACHE).stdout == before

        pruned = cache_of(fleet, "prune", "-y", model=OTHER)
        assert pruned.status == 0, pruned.output
        assert user.run(weights).stdout == right, "a kept release needs it"
        listed = cache_of(fleet, "ls")
        assert texts.LEFT_ALONE in listed.output, listed.output
        assert user.run(SEEN_CACHE).stdout == before
    finally:
        user.run("rm -rf /home/ops/.cache")


SHARDS = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/eagle", "exclude": ["original/*", "metal/*"]}
FLIP_SHARD = FLIP.replace("nvidia--*/model.safetensors", "openai--gpt-oss-20b--*/model-00001*")


@in_proof("the test above repairs; tests/programs/test_fetch_model.py and test_hand_on.py kill at every percent")
def test_a_repair_that_is_killed_meets_a_full_disk_or_is_begun_twice_leaves_nothing_half(
    fleet: Site, hosts: list[Host]
) -> None:
    """By the hub at a crawl: each has to be under way when it is disturbed."""
    host, web = hosts[1], fleet.lab.paths.web
    sums = "cd /srv/models/openai--gpt-oss-20b--*[0-9a-f] && sha256sum *"
    repair = [*words_of_cache(fleet, "repair", model=SHARDS, hand_on=None), "--limit", host.name]
    fleet.lab.hosts[1].fill_disk("/srv/models", 200)
    try:
        staged = fleet.command(*words_for(fleet, model=SHARDS, hand_on=None), "--limit", host.name)
        assert staged.status == 0, staged.output
        right = host.run(sums).stdout
        host.run(FLIP_SHARD)
        flipped = host.run(sums).stdout
        assert flipped != right
        assert cache_of(fleet, "verify", "--limit", host.name, model=SHARDS, hand_on=None).status == 2
        faults.set_fault(web, "slow", path="*cdn*", value=64 << 10)

        killed = started(fleet, repair)
        wait_for(lambda: bool(parts(host)) or killed.poll() is not None, 240)
        host.run("systemctl kill -s KILL 'rackwright-job-model-*'")
        output, _ = killed.communicate(timeout=240)
        assert killed.returncode == 1, output
        assert host.run(sums).stdout == flipped, "the old file stays until a right one takes its place"

        full = started(fleet, repair)
        wait_for(lambda: "rackwright-job-model" in host.run("systemctl list-units --plain --no-legend").stdout, 240)
        host.run("head -c 300M /dev/zero >/srv/models/filler", check=False)
        output, _ = full.communicate(timeout=300)
        assert (full.returncode, "the disk is full" in output, "df -h /srv/models" in output) == (1, True, True), output
        assert host.run(sums).stdout == flipped
        host.run("rm /srv/models/filler")

        two = [started(fleet, repair) for _ in range(2)]
        wait_for(lambda: bool(parts(host)) or two[0].poll() is not None, 240)
        faults.clear(web)
        outputs = [one.communicate(timeout=300)[0] for one in two]
        assert sorted(one.returncode for one in two) in ([0, 0], [0, 1]), outputs
        assert all(one.returncode == 0 or "RW0705" in output for one, output in zip(two, outputs, strict=True)), outputs
        assert not any("Traceback" in one for one in (output, *outputs))
        assert host.run(sums).stdout == right
        assert cache_of(fleet, "verify", "--limit", host.name, model=SHARDS, hand_on=None).status == 0
        assert "partial" not in host.run("ls /srv/models").stdout
    finally:
        host.free_disk("/srv/models")


def parts(host: Host) -> str:
    """Return the unfinished files of a host's downloads."""
    return host.run("find /srv/models -path '*.partial/.parts/*.part'").stdout


def started(site: Site, words: list[str]) -> subprocess.Popen[str]:
    """Begin a command."""
    return subprocess.Popen(
        words, cwd=ROOT, env=site.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def words_of_cache(site: Site, verb: str, *options: str, **settings: Any) -> list[str]:
    """Return the words of `rackwright cache` with these settings over the others."""
    command = [str(BIN / "rackwright"), "cache", verb, f"{STAGING}/inventory.py", *options]
    return ["env", *environment(site, **settings), *command]


def cache_of(site: Site, verb: str, *options: str, **settings: Any) -> Run:
    """Run `rackwright cache` with these settings over the others."""
    return site.command(*words_of_cache(site, verb, *options, **settings))


def entries_of(listing: Run, host: Host) -> list[dict[str, Any]]:
    """Return what a host keeps, as `--json` has it."""
    assert listing.status == 0, listing.output
    values = json.loads(listing.output[listing.output.index("{") :])
    return next(one["entries"] for one in values["hosts"] if one["host"] == host.name)


def is_closed(host: Host) -> bool:
    """Return True if nothing listens, is let in, or runs for others."""
    reading = host.run("ss -Hltn; nft list tables; iptables-save; ip6tables-save; docker ps").stdout
    return not any(mark in reading for mark in (":746", "hand_on", "hand-on"))


def listens(host: Host) -> bool:
    return ":7461" in host.run("ss -Hltn").stdout


def listeners(host: Host) -> list[str]:
    """Return the addresses at which the port is listened at."""
    return [row.split()[3] for row in host.run("ss -Hltn 'sport = :7461'").stdout.splitlines()]


def is_reached(host: Host) -> bool:
    """Return True if this machine, which takes nothing, reaches the port."""
    with socket.socket() as link:
        link.settimeout(2)
        return link.connect_ex((host.address, 7461)) == 0


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.3)


@in_proof("two kills on hosts; loopback programs are killed at every percent in tests/programs")
def test_a_killed_job_leaves_no_port_and_a_killed_run_is_followed_by_the_next(fleet: Site, hosts: list[Host]) -> None:
    assert stage(fleet).status == 0
    for number, kill in enumerate(("job", "run")):
        hosts[1].run("rm -rf /srv/models/nvidia--*")
        words = words_for(fleet, rate_mib=1)
        process = subprocess.Popen(
            words, cwd=ROOT, env=fleet.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        wait_for(lambda: listens(hosts[0]) and listens(hosts[2]))
        assert listeners(hosts[0]) == [f"{hosts[0].address}:7461"], "on the address of the one interface"
        assert not is_reached(hosts[0]), "this machine takes nothing from it"
        if kill == "job":
            hosts[0].run("systemctl kill -s KILL 'rackwright-job-hand-on-*'")
            wait_for(lambda: not listens(hosts[0]), 10)
            assert "hand_on" not in hosts[0].run("nft list tables").stdout
            assert "hand-on" not in hosts[0].run("iptables-save; docker ps").stdout
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output
            refusal(output, "RW2935", hosts[0].name)
        else:
            process.kill()
            process.wait()
            run = stage(fleet)
            assert run.status == 0, run.output
        assert hosts[1].run("ls /srv/models/nvidia--*/.rackwright.json", check=False).returncode == 0, number
        assert not any(map(listens, hosts))


LATE = 50
HOLD = (
    "job=$(ls -d /run/rackwright/jobs/hand-on-*.lock | head -n 1); "
    f"setsid flock $job sleep {LATE} </dev/null >/dev/null 2>&1 &"
)
"""Keeps a host from starting the job by which it hands on, as an earlier one that has not ended yet does."""


@in_proof("tests/unit/test_transfers.py and tests/programs/test_hand_on_faults.py have the two sides of it")
def test_a_host_that_begins_to_hand_on_after_its_taker_has_all_is_waited_for_no_longer(
    fleet: Site, hosts: list[Host]
) -> None:
    assert stage(fleet).status == 0
    for _ in range(2):  # the first run leaves the lock's file
        hosts[1].run("rm -rf /srv/models/nvidia--*")
        begun = time.monotonic()
        run = stage(fleet)
        assert run.status == 0, run.output
        assert not any(map(listens, hosts))
        hosts[2].run(HOLD)
    assert LATE < time.monotonic() - begun < START / 2


@in_proof("test_a_killed_job_leaves_no_port_and_a_killed_run_is_followed_by_the_next has the jobs")
def test_a_teardown_in_the_middle_of_a_transfer_leaves_no_listener_no_port_and_no_half_file(
    fleet: Site, hosts: list[Host]
) -> None:
    assert stage(fleet).status == 0
    hosts[1].run("rm -rf /srv/models/nvidia--*")
    process = subprocess.Popen(
        words_for(fleet, rate_mib=1),
        cwd=ROOT,
        env=fleet.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    wait_for(lambda: listens(hosts[0]) and "hand-on" in hosts[0].run("docker ps").stdout)
    wait_for(lambda: hosts[1].run("ls /srv/models/nvidia--*.partial/.parts/*.part", check=False).returncode == 0)
    process.kill()
    process.wait()
    names = [argument for host in hosts[:2] for argument in ("--limit", host.name)]
    try:
        torn = command(fleet, BIN / "rackwright", "teardown", f"{STAGING}/inventory.py", *names, "-y", "--purge")
        assert torn.status == 0, torn.output
        for host in hosts[:2]:
            assert is_closed(host)
            assert "nvidia" not in host.run("ls -A /srv/models", check=False).stdout
            assert "rackwright-job" not in host.run("systemctl list-units --all --plain --no-legend").stdout
    finally:
        assert fleet.deploy().status == 0


@in_proof("test_a_host_is_filled_by_its_neighbours_with_the_hub_cut_off has one run; this one has two, by TLS")
def test_two_runs_at_once_take_from_one_neighbour_with_the_hub_cut_off(fleet: Site, hosts: list[Host]) -> None:
    giver, *takers = hosts
    assert fleet.command(*words_for(fleet), "--limit", giver.name).status == 0
    for host in hosts:
        host.run(f"iptables -A OUTPUT -d {fleet.lab.servers()[1]} -j DROP")
    runs = [
        subprocess.Popen(
            [*words_for(fleet, tls=True, rate_mib=1), "--limit", host.name],
            cwd=ROOT,
            env=fleet.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for host in takers
    ]
    outputs = [run.communicate(timeout=600)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(outputs)
    assert all("port 7461, by TLS" in output for output in outputs), outputs
    sums = {host.run("cd /srv/models/nvidia--*/ && sha256sum *.json *.safetensors").stdout for host in hosts}
    assert len(sums) == 1
    for host in hosts:
        wait_for(lambda host=host: is_closed(host), 20)  # type: ignore[misc]


def part(*addresses: str) -> ChainPart:
    takers = tuple(Neighbour(f"h{n}", one, 7461) for n, one in enumerate(addresses))
    return ChainPart(Neighbour("a", "10.0.0.1", 7461), (), takers, from_hub=True)


def in_namespace(host: Host, script: str) -> str:
    """Run a script in a network namespace of a host, as one of its jobs."""
    return host.run(f"JOB=$(mktemp -d) unshare --net sh -c {shlex.quote(script)}").stdout


@in_proof("test_a_host_is_filled_by_its_neighbours_with_the_hub_cut_off has the port on real hosts")
def test_only_takers_reach_the_port_behind_the_rules_of_others_and_nothing_of_it_stays(fleet: Site) -> None:
    host = fleet.lab.hosts[0]
    text = in_namespace(host, f"{FOREIGN}{opened('model-x', part('10.0.0.2', '2001:db8::2'))}{SHOW}")
    drops = [row.split()[-4:] for row in text.splitlines() if "tcp dport 7461" in row and row.endswith(" drop")]
    assert drops == [["saddr", "!=", "10.0.0.2", "drop"], ["saddr", "!=", "2001:db8::2", "drop"]]
    rows = [row for row in text.splitlines() if row.startswith("-A INPUT")]
    assert [row.split(" ")[3] for row in rows] == ["192.0.2.0/24", "10.0.0.2/32", "2001:db8::2/128"]

    again = in_namespace(host, f"(\n{opened('x', part('10.0.0.2'))})\n(\n{opened('x', part('10.0.0.3'))})\n{SHOW}")
    assert "10.0.0.2" not in again, "what a killed job has left is replaced"
    assert again.count("-s 10.0.0.3/32") == 1

    after = in_namespace(host, f"{FOREIGN}{opened('model-x', part('10.0.0.2'))}sh $JOB/undo\n{SHOW}")
    assert "7461" not in after
    assert "-A INPUT -s 192.0.2.0/24 -j DROP" in after
