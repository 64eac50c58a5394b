"""What a run proved of its hardware, to send on: what is in it, and that nothing else can come into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as times
from hypothesis import strategies as st

from rackwright.adapter.run.options import data_given
from rackwright.cli.main import main
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.read_host import parse_reading
from rackwright.hardware import allowed, newest_with_rows, write_bundle, writing
from rackwright.hardware.bundle import BundledHost, bundle
from rackwright.hardware.page import page, values
from rackwright.inspect.read_hosts import Surveyed
from rackwright.loading.host import InventoryHost
from rackwright.masks import MASK
from rackwright.messages import RackwrightError
from rackwright.plan.concern import HostReading
from rackwright.record.journal import append, new_record
from rackwright.record.view.timeline import HostTimeline, Timeline
from rackwright.record.view.timeline_events import timeline_of
from rackwright.settings.host_settings import HostSettings
from tests.refused import refused
from tests.unit.machines import EVERYTHING, gpus, machine, settings
from tests.unit.made_up_runs import recorded

CONVERGED = Path(__file__).parents[1] / "operations" / "readings" / "converged.txt"
TRAY = {"tensor_parallel_size": 4, "kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}}
OWNER = (
    "spark-01.corp.example.com",
    "192.168.178.23",
    "10.0.0.5",
    "fd00::17:23",
    "alice",
    "1650823001234",
    "GPU-8f6b1c1e-37f3-4f4a-9a5b-0d8a1f5c7b11",
    "hf_abcdefghijklmnop",
    "Passw0rd!",
)
"""What names an owner, or opens a client_port."""


def reading(name: str = "gb200") -> HostReading:
    """Return a reading of a converged host, with the machine and the GPUs of another one."""
    found = parse_reading(CONVERGED.read_text().split("\n"))
    readings = {PREFLIGHT.name: machine("aarch64", kernel="6.14.0-1005-nvidia-64k"), GPUS.name: gpus(name)}
    return HostReading({**found.by_concern, **readings})


def own_settings(**more: Any) -> HostSettings:
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"
    return settings(image=image, engine=TRAY, hardware={"architecture": "aarch64"}, **more)


@cache
def rollout() -> Timeline:
    return timeline_of(recorded("good"))


@cache
def proven() -> BundledHost:
    return BundledHost(rollout().hosts["lab-lived1"], own_settings(), ("gb200", "gb200_tray"), reading())


def member(**more: Any) -> BundledHost:
    return replace(proven(), **more)


def bundled(one: BundledHost) -> dict[str, Any]:
    """Return the bundle of one host, as a program reads it out of the file."""
    return values(page(bundle(rollout(), [one])))


def test_it_tells_readings_rows_versions_and_seconds() -> None:
    found = bundled(member())
    assert found["run"] == {"day": "2026-11-21", "status": 0, "seconds": found["run"]["seconds"], "hosts": 3}
    (host,) = found["hosts"]
    assert (host["host"], host["state"], host["profile"]) == (1, "switched", "gb200_tray")
    assert host["machine"]["kernel"] == "6.14.0 nvidia 64k"
    assert (host["machine"]["driver"], host["machine"]["docker"]) == ("580.159.04", "20.10.24")
    (gpu,) = host["gpus"]
    assert (gpu["count"], gpu["name"], gpu["compute_capability"]) == (4, "NVIDIA GB200", "10.0")
    assert {"check": "GPU count", "verdict": "ok"} in host["preflight"]
    rows = {row["row"]: row for row in host["gate"]}
    assert rows["a chat answer"] == {"row": "a chat answer", "mark": "proved"}
    assert rows["speed"]["figure"] > 0
    assert host["seconds"]["switch"] >= host["seconds"]["loading"] > 0
    (endpoint,) = host["endpoints"]
    assert (endpoint["engine"], endpoint["version"], endpoint["model"]) == (
        "tensorrt-llm",
        "1.2.1",
        "openai/gpt-oss-120b",
    )
    assert endpoint["options"] == {
        "tensor_parallel_size": 4,
        "kv_cache_config.dtype": "fp8",
        "kv_cache_config.free_gpu_memory_fraction": 0.8,
    }


def test_the_page_says_the_same_for_people() -> None:
    text = page(bundle(rollout(), [member()]))
    expected = ("4 x NVIDIA GB200", "| a chat answer | proved |", "ms a token", "| GPU count | ok |", "gb200_tray")
    assert [one for one in expected if one not in text] == []


def test_a_host_that_could_not_be_read_keeps_its_rows() -> None:
    (host,) = bundled(member(reading=None))["hosts"]
    assert host["gate"]
    assert not {"machine", "gpus", "preflight"} & host.keys()
    assert "| not read | - |" in page(bundle(rollout(), [member(reading=None)]))


def test_a_check_that_fails_is_told_by_its_code_alone() -> None:
    host_settings = HostSettings.model_validate({**own_settings().model_dump(), "hardware": {"gpu_models": ["B200"]}})
    (host,) = bundled(member(settings=host_settings))["hosts"]
    assert {"check": "GPU model", "verdict": "stop", "code": "RW3130"} in host["preflight"]


def test_what_is_somebodys_own_is_said_to_be() -> None:
    host_settings = own_settings().model_copy(
        update={
            "image": "registry.corp.example.com/llm/trt:1.2.1",
            "model": own_settings().model.model_copy(update={"repository": "corp/secret-model"}),  # type: ignore[union-attr]
            "engine": {**TRAY, "private_key": "x", "kv_cache_config": {"dtype": "hf_abcdefgh"}},
        }
    )
    (endpoint,) = bundled(member(settings=host_settings))["hosts"][0]["endpoints"]
    assert (endpoint["image"], endpoint["model"]) == ("not published", "not published")
    assert endpoint["options"] == {"tensor_parallel_size": 4, "kv_cache_config.dtype": "set"}


# -- nothing else comes out


def poisoned(value: Any, poison: Callable[[str], str]) -> Any:
    """Return a value with every text in it, however deep, as `poison` makes it."""
    if isinstance(value, str):
        return poison(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: poisoned(getattr(value, one.name), poison) for one in fields(value)})
    if isinstance(value, Mapping):
        return {key: poisoned(inner, poison) for key, inner in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return type(value)(poisoned(inner, poison) for inner in value)
    return value


def hostile(poison: Callable[[str], str]) -> BundledHost:
    """Return a host all of whose words are poisoned: its reading, its timeline, its groups."""
    clean, timeline = member(), member().timeline
    assert clean.reading is not None
    readings = {**clean.reading.by_concern}
    for concern in (GPUS, DOCKER):
        readings[concern.name] = poisoned(readings[concern.name], poison)
    read = readings[PREFLIGHT.name]
    # What preflight computes with stays a number.
    readings[PREFLIGHT.name] = replace(read, values={key: poison(text) for key, text in read.values.items()})
    readings[DOCKER.name] = replace(readings[DOCKER.name], daemon="up", files={})
    rows = {(poison(of), poison(name)): poisoned(row, poison) for (of, name), row in timeline.rows.items()}
    genuine = {key: replace(poisoned(row, poison), name=row.name) for key, row in timeline.rows.items()}
    lied = HostTimeline(
        poison(timeline.name), timeline.state, spans=poisoned(timeline.spans, poison), rows={**rows, **genuine}
    )
    return BundledHost(lied, clean.settings, [poison(name) for name in clean.groups], HostReading(readings))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


SHAPES: tuple[Callable[[str, str], str], ...] = (
    lambda _, secret: secret,
    lambda text, secret: f"{text}{secret}",
    lambda text, secret: f"{text} {secret}",
    lambda text, secret: f"{secret} {text}",
    lambda text, secret: f"{text}-{secret}",
    lambda text, secret: f"{text}.{secret}",
    lambda text, secret: f"{text}\n{secret}\n```\n| {secret} | {text} |",
)


@pytest.mark.parametrize("secret", OWNER)
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_no_secret_of_a_host_comes_out(secret: str, shape: int) -> None:
    text = page(
        bundle(Timeline(who=secret, what=secret, text=secret), [hostile(lambda value: SHAPES[shape](value, secret))])
    )
    assert secret not in text


@given(st.text(min_size=1), st.sampled_from(SHAPES))
@example("²", SHAPES[0])
@times(max_examples=60, deadline=None)
def test_whatever_a_host_says_only_known_words_come_out(text: str, shape: Callable[[str, str], str]) -> None:
    clean = {*strings(bundled(member())), "unknown", "code", "stop", "warn", "info", *allowed.PRODUCT_WORDS}
    found = {*strings(bundled(hostile(lambda value: shape(value, text))))}
    words = {term for one in found - clean for term in one.split()} - clean - allowed.FLAVOURS
    assert {term for term in words if allowed.version(term) != term and not re.fullmatch(r"RW3\d{3}", term)} == set()


@pytest.mark.parametrize("text", ["10.0.0.5", "192.168.178.23", "1650823001234", "8f6b1c1e", "", "v", "1.2.3.4-x"])
def test_no_address_and_no_serial_number_is_a_version(text: str) -> None:
    assert allowed.version(text) is None
    assert allowed.whole(1650823001234) is None


def test_a_whole_number_stays_one() -> None:
    assert repr(allowed.number(4)) == "4"
    assert allowed.number(0.12345678) == 0.123457


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e12, True, "1", None])
def test_what_is_no_number_is_none(value: object) -> None:
    assert allowed.number(value) is None


# -- the command


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with one run, whose hosts answer without a connection."""
    (tmp_path / "deploy.py").touch()
    monkeypatch.delenv("RACKWRIGHT_RUNS", raising=False)
    record = new_record(tmp_path, "rollout")
    append(record, "begin", who="alice@deploy1", what="rollout", inventory="inventory/b200.py", hosts=["gpu01"])
    append(record, "host", host="gpu01", state="switching")
    append(record, "row", host="gpu01", row="a chat answer", mark="proved", seen="42")
    append(record, "host", host="gpu01", state="switched")
    append(record, "end", status=0, text="done")
    entry = InventoryHost("gpu01", ("b200", "alices-rack"), {}, own_settings(), {})
    monkeypatch.setattr(writing, "hosts_named", lambda _inventory, _limit: [entry])
    found = Surveyed("gpu01", own_settings(), EVERYTHING, reading())
    monkeypatch.setattr(writing, "survey", lambda _inventory, _limit: [found])
    return tmp_path


def test_the_command_writes_one_file_for_its_owner_only(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--hardware", "--site", str(site)]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.name.endswith("-rollout.hardware.md")
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert values(text)["hosts"][0]["profile"] == "b200"
    for name in ("gpu01", "alice", "deploy1", "inventory"):
        assert name not in text.replace("No name of a host", ""), name


def test_what_data_of_the_run_said_counts_as_it_did_then(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = new_record(site, "rollout")
    data = {"gate.level": "full", "api_key": MASK, "environment": {"HF_TOKEN": MASK}}
    append(record, "begin", inventory="inventory/b200.py", hosts=["gpu01"], data=data)
    append(record, "row", host="gpu01", row="a chat answer", mark="proved", seen="42")
    counted: list[dict[str, object]] = []
    entry = Surveyed("gpu01", own_settings(), EVERYTHING, reading())

    def surveyed(*_: object) -> list[Surveyed]:
        counted.append(data_given())
        return [entry]

    monkeypatch.setattr(writing, "survey", surveyed)
    write_bundle(record)
    assert counted == [{"gate.level": "full"}]
    assert data_given() == {}


def test_without_a_name_the_last_run_that_asked_is_taken(site: Path) -> None:
    newest = newest_with_rows(site)
    append(new_record(site, "teardown"), "end", status=0, text="done")
    assert newest_with_rows(site) == newest


def test_a_run_that_asked_nothing_is_refused(site: Path) -> None:
    silent = new_record(site, "teardown")
    append(silent, "begin", inventory="inventory/b200.py", hosts=["gpu01"])
    with pytest.raises(RackwrightError, match=rf"RW0825: run {silent.stem} asked no endpoint anything"):
        write_bundle(silent)


def test_a_site_without_such_a_run_is_refused(tmp_path: Path) -> None:
    with refused("RW0824"):
        newest_with_rows(tmp_path)


def test_an_inventory_without_those_hosts_is_refused(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "hosts_named", lambda _inventory, _limit: [])
    with refused("RW0826", "inventory/b200.py ", " run "):
        write_bundle(newest_with_rows(site))


def test_a_text_without_values_is_no_bundle() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        values("# Something else")
    assert values(page(bundle(Timeline(), [])))["hosts"] == []
