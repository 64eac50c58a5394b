"""Hosts that take models from each other: settings, each host's part, its jobs, and the run's certificate."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from rackwright.concerns.image import SeenImages
from rackwright.concerns.models import MODELS, SeenModel, SeenModels, sharers
from rackwright.concerns.models.neighbours import Link, hubs_turn, parse, parse_ports, terms
from rackwright.concerns.models.repair import broken_models, repair_changes
from rackwright.operations.run_certificate import run_certificate
from rackwright.plan.change import Change, Job, Refuse
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import ChainPart, HandsOn, Neighbour, handovers
from rackwright.remote.job_scripts import start_script
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

COMMIT = "c" * 40
FILES = [
    {"path": "config.json", "size": 3, "blob": "b" * 40},
    {"path": "weights.safetensors", "size": 1 << 30, "sha256": "a" * 64},
]
MODEL = {"repository": "openai/gpt-oss-20b", "revision": COMMIT, "mount": "/config/models/base", "files": FILES}
LINKS = (Link("eth0", "192.0.2.1", 1000), Link("bond1", "10.0.0.1", 10_000))
FOLDER = f"/srv/models/openai--gpt-oss-20b--{COMMIT[:12]}"
TOKEN = "t" * 64
NAME = json.dumps(["openai/gpt-oss-20b", COMMIT, [], []])


def settings(**keys: Any) -> HostSettings:
    hand_on = {"interface": "bond1", **keys.pop("hand_on", {})}
    base = {"model": MODEL, "image_digest": "sha256:" + "1" * 64, "downloads": {"hand_on": hand_on}}
    return HostSettings.model_validate({**base, **keys})


def reading(*models: SeenModel, links: tuple[Link, ...] = LINKS) -> HostReading:
    return HostReading(
        {"models": SeenModels(models, frozenset(), links=links), "image": SeenImages(True, (), {})},
    )


def complete() -> SeenModel:
    pinned = {"config.json": (3, "d" * 64), "weights.safetensors": (1 << 30, "a" * 64)}
    return SeenModel(
        FOLDER,
        "openai/gpt-oss-20b",
        frozenset({COMMIT}),
        COMMIT,
        frozenset(),
        frozenset(),
        1,
        1 << 30,
        (),
        pinned,
    )


def planned(
    fleet: dict[str, HostReading], given: HostSettings, seed: str | None = None, repairs: bool = False
) -> dict[str, list[Change]]:
    """Return each host's changes in a run of these hosts. repairs: one that only puts right what is broken."""
    pending = repair_changes if repairs else MODELS.pending
    links = {name: (Link("bond1", f"10.0.0.{n}", 10_000),) for n, name in enumerate(fleet, 1)}
    fleet = {
        name: replace(one, by_concern={**one.by_concern, "models": replace(one[MODELS], links=links[name])})
        for name, one in fleet.items()
    }
    parts = [sharers(name, given, one, serves=False) for name, one in fleet.items()]
    [model] = {model for part in parts for model in part}
    chain = handovers([part[model] for part in parts], seed)
    token = {"run_token": Secret(TOKEN)}
    return {
        name: [*pending(given, replace(one, hands_on=HandsOn({model: chain[name]} if name in chain else {}, token)))]
        for name, one in fleet.items()
    }


def job_of(changes: list[Change]) -> Job:
    [change] = changes
    [job] = change.steps
    assert isinstance(job, Job)
    return job


def spec_of(job: Job) -> dict[str, Any]:
    row = next(row for row in job.script.splitlines() if row.startswith("spec="))
    [text] = shlex.split(row.removeprefix("spec="))
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_first_host_gets_the_hubs_url_and_the_next_one_the_first_hosts_address() -> None:
    changes = planned({"a": reading(), "b": reading(), "c": reading()}, settings())
    first, second, last = (spec_of(job_of(changes[name]))["hand_on"] for name in "abc")
    assert first["origin"]["url"] == f"https://huggingface.co/openai/gpt-oss-20b/resolve/{COMMIT}/"
    assert first["listen"] == {"address": "10.0.0.1", "port": 7461, "allow": ["10.0.0.2", "10.0.0.3"]}
    assert second["origin"] is None
    assert [source["address"] for source in second["sources"]] == ["10.0.0.1", "10.0.0.3"]
    assert [source["name"] for source in last["sources"]] == ["b", "a"]
    assert last["listen"] == {"address": "10.0.0.3", "port": 7461, "allow": ["10.0.0.2"]}


def test_a_host_that_takes_from_another_does_not_wait_for_its_turn_at_the_hub() -> None:
    changes = planned({"a": reading(), "b": reading()}, settings(downloads={"hand_on": {"interface": "bond1"}}))
    assert job_of(changes["a"]).at_once == 8
    assert job_of(changes["b"]).at_once is None


def test_where_no_host_gives_no_more_hosts_ask_the_hub_at_first_than_may_ask_it_at_once() -> None:
    downloads = {"hand_on": {"interface": "bond1", "hub": True}, "parallel": 2, "stall_timeout": 100}
    changes = planned({name: reading() for name in "abcdefghijklmnop"}, settings(downloads=downloads))
    after = [spec_of(job_of(those))["hand_on"]["origin"]["after"] for those in changes.values()]
    assert after == [100, 100, 200, 200, 300, 300, 400, 400, 500, 500, *[600] * 6]


def test_a_host_that_has_it_hands_it_on_and_nothing_else() -> None:
    changes = planned({"a": reading(complete()), "b": reading()}, settings())
    [change] = changes["a"]
    assert change.sentence == f"hand openai/gpt-oss-20b at {COMMIT[:12]} on to b (it is not there)"
    spec = spec_of(job_of(changes["a"]))
    assert (spec["sources"], spec["origin"], spec["folder"]) == ([], None, FOLDER)
    assert [file["path"] for file in spec["files"]] == ["config.json", "weights.safetensors"]
    assert spec_of(job_of(changes["b"]))["hand_on"]["origin"] is None
    assert not change.owns
    [taken] = changes["b"]
    assert taken.why.partition("; ")[2].split()[0] == "a"
    assert job_of(changes["a"]).helps, "its own host continues when it fails"
    assert not job_of(changes["b"]).helps


def test_a_broken_file_is_repaired_from_a_host_that_has_the_model() -> None:
    broken = replace(complete(), changed=("weights.safetensors",))
    changes = planned({"a": reading(complete()), "b": reading(broken)}, settings(), repairs=True)
    spec = spec_of(job_of(changes["b"]))["hand_on"]
    assert ([source["name"] for source in spec["sources"]], spec["origin"]) == (["a"], None)
    keeper = spec_of(job_of(changes["a"]))
    assert keeper["listen"]["allow"] == ["10.0.0.2"]
    assert planned({"a": reading(complete()), "b": reading(broken)}, settings(), repairs=True)["a"][0].owns == ()


def test_a_host_that_lacks_the_model_is_in_no_repair_of_others() -> None:
    [name] = sharers("a", settings(), reading(complete()), serves=False)
    assert broken_models(settings(), reading(replace(complete(), changed=("config.json",)))) == {name}
    assert broken_models(settings(), reading()) == frozenset()
    assert broken_models(settings(), reading(complete())) == frozenset()


def test_a_repair_fetches_no_model_that_is_missing_and_begins_nothing_where_all_is_right() -> None:
    assert [*repair_changes(settings(), reading())] == []
    assert [*repair_changes(settings(), reading(complete()))] == []


def test_nothing_is_handed_on_where_all_have_it() -> None:
    given = settings()
    parts = [sharers(name, given, reading(complete()), serves=False) for name in "ab"]
    [model] = parts[0]
    assert handovers([part[model] for part in parts]) == {}


def test_the_token_travels_by_standard_input_and_parts_the_jobs_of_two_runs() -> None:
    job = job_of(planned({"a": reading(), "b": reading()}, settings())["a"])
    assert job.secrets["run_token"].unmask() == TOKEN
    assert TOKEN not in job.script
    assert TOKEN not in start_script(job)
    other = replace(job, aim=(job.aim or "").replace("x", "y"))
    assert job.aim != job.script
    assert other.name == job.name


def test_the_port_is_open_only_where_a_host_takes_and_is_closed_by_what_follows_the_job() -> None:
    changes = planned({"a": reading(), "b": reading()}, settings())
    assert "open_port || exit 1" in job_of(changes["a"]).script
    assert '>"$JOB/undo"' in job_of(changes["a"]).script
    assert "open_port" not in job_of(changes["b"]).script
    assert 'sh "$JOB/undo"' in start_script(job_of(changes["a"]))


def test_without_the_setting_a_host_is_told_nothing_of_others() -> None:
    given = settings(downloads={})
    spec = spec_of(job_of(MODELS.pending(given, reading())))
    assert "hand_on" not in spec
    assert "link" not in MODELS.read(given)
    assert "ip -o address" in MODELS.read(settings())


@pytest.mark.parametrize(
    ("links", "model", "code", "words"),
    [
        (LINKS[:1], MODEL, "RW2915", "it has eth0 (192.0.2.1)"),
        ((), MODEL, "RW2915", "it has none"),
        (LINKS, {**MODEL, "files": []}, "RW2925", "rackwright pin"),
        (LINKS, {**MODEL, "files": [{"path": "a", "size": 1}]}, "RW2925", "rackwright pin"),
    ],
)
def test_what_hosts_cannot_hand_on_is_refused_and_not_fetched_by_each_alone(
    links: tuple[Link, ...], model: dict[str, Any], code: str, words: str
) -> None:
    given = settings(model=model)
    [change] = MODELS.pending(given, reading(links=links))
    [step] = change.steps
    assert isinstance(step, Refuse)
    assert step.code == code
    assert words in step.text
    assert sharers("a", given, reading(links=links), serves=False) == {}


def test_a_host_that_serves_on_unified_memory_hands_on_only_under_a_cap() -> None:
    def parts(serves: bool, **downloads: int) -> int:
        given = settings(hardware={"unified_memory": True}, downloads={"hand_on": {"interface": "bond1"}, **downloads})
        return len(sharers("a", given, reading(complete()), serves=serves))

    assert parts(serves=False) == 1
    assert parts(serves=True) == 0
    assert parts(serves=True, rate_mib=100) == 1


def test_addresses_of_a_host_are_read_ipv4_first() -> None:
    rows = "link eth0 2001:db8::1/64 1000\nlink eth0 192.0.2.7/24 1000\nlink bond1 10.0.0.1/16 -\nodd\nlink x\n"
    assert parse(rows) == (
        Link("eth0", "192.0.2.7", 1000),
        Link("bond1", "10.0.0.1", None),
        Link("eth0", "2001:db8::1", 1000),
    )


def test_a_port_that_an_endpoint_has_is_refused() -> None:
    with pytest.raises(ValueError, match="7461 is that of endpoint llm"):
        settings(port=7461)
    draft = {**MODEL, "repository": "nvidia/draft", "mount": "/config/models/draft"}
    with pytest.raises(ValueError, match="takes the ports to 7462"):
        settings(draft=draft, port=7462)
    assert list(settings(draft=draft).hand_on_ports) == [7461, 7462]


def test_a_runs_certificate_is_its_own_authority() -> None:
    from cryptography import x509  # noqa: PLC0415

    pem = run_certificate().unmask()
    [certificate] = x509.load_pem_x509_certificates(pem.encode())
    certificate.verify_directly_issued_by(certificate)
    assert "BEGIN PRIVATE KEY" in pem
    assert run_certificate().unmask() != pem


def test_what_closes_the_port_is_on_the_disk_before_it_is_open() -> None:
    script = job_of(planned({"a": reading(), "b": reading()}, settings())["a"]).script
    assert script.index('>"$JOB/undo"') < script.index("open_port || exit 1") < script.index("docker run")


def test_the_ports_at_which_a_host_hands_on_are_read() -> None:
    assert parse_ports("link eth0 192.0.2.7/24 1000\nhands-on 7461\nhands-on 7462\nhands-on x\n") == {7461, 7462}
    assert sharers("a", settings(), reading(complete()), serves=False)[NAME].busy is False
    read = reading(complete())
    read = replace(read, by_concern={**read.by_concern, "models": replace(read[MODELS], handing_on=frozenset({7461}))})
    assert sharers("a", settings(), read, serves=False)[NAME].busy is True


def test_hosts_whose_sources_hand_on_to_another_run_first_wait_for_them() -> None:
    part = ChainPart(Neighbour("b", "10.0.0.2", 7461), (Neighbour("a", "10.0.0.1", 7461),), (), from_hub=True)
    soon, late = (terms(settings(), replace(part, waits=waits))["start"] for waits in (False, True))
    assert (soon, late) == (300, 900)
    assert [hubs_turn(settings(), replace(part, waits=waits)) for waits in (False, True)] == [120, 600]
