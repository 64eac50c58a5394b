"""The image's last word: what it is asked, what its answer means, and that it is kept or asked for again."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rackwright_lab
from rackwright.cli import in_image
from rackwright.concerns.endpoint.release.concern import Unresolved
from rackwright.concerns.endpoint.seen import SeenEndpoint, SeenEndpoints
from rackwright.concerns.options import (
    ImageVerdict,
    OptionRefusal,
    WantedOptions,
    _wanted,
    changes,
    docker_run,
    marker,
    parse,
    report,
)
from rackwright.concerns.options.concern import image_program
from rackwright.engines.host import NOT_ASKED
from rackwright.hostside import helper_script, host_script
from rackwright.plan.change import Change, Job, Refuse
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright_lab.standins.rootfs import SHIMS, put_package
from tests import texts
from tests.unit.machines import gpus
from tests.unit.test_endpoint_changes import WANTED, release

OWN = WantedOptions(WANTED, "tensorrt-llm", gpus=("GPU-1", "GPU-2"))
KEY = ("llm", f"{WANTED.spec.serving_hash}-2")
REFUSED = ImageVerdict(True, (OptionRefusal("moe_config.backend", "Input should be 'CUTLASS'"),))


def pending(verdict: ImageVerdict | None, wanted: WantedOptions = OWN) -> list[Change]:
    return changes((wanted,), {KEY: verdict} if verdict else {})


# -- decisions


def test_a_release_that_was_never_asked_about_is_asked_about_by_a_job_of_the_host() -> None:
    (change,) = pending(None)
    (step,) = change.steps
    assert isinstance(step, Job)
    assert step.timeout > 120
    assert marker(OWN) in step.script
    assert marker(OWN).endswith("/".join(["checked", KEY[1]]))


@pytest.mark.parametrize("verdict", [ImageVerdict(True), ImageVerdict(False, why="it took more than 120 s")])
def test_accepted_or_not_checked_there_is_nothing_to_do(verdict: ImageVerdict) -> None:
    assert pending(verdict) == []


def test_a_refusal_on_too_few_gpus_does_not_stand_for_more_of_them() -> None:
    (change,) = pending(REFUSED, replace(OWN, gpus=("GPU-1", "GPU-2", "GPU-3")))
    assert isinstance(change.steps[0], Job)


def test_not_checked_is_a_sentence_until_the_release_is_proven_text() -> None:
    verdicts = {KEY: ImageVerdict(False, why="no module tensorrt_llm")}
    assert report((OWN,), verdicts) == "options of endpoint llm: not checked inside the image: no module tensorrt_llm"
    assert report((replace(OWN, spared=True),), verdicts) == ""
    assert report((OWN,), {KEY: ImageVerdict(True)}) == ""


def test_a_refused_release_is_refused_again_without_asking() -> None:
    (change,) = pending(REFUSED)
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.final
    assert f"{WANTED.spec.engine_file}: moe_config.backend: Input " in step.text
    assert "'CUTLASS'" in step.text
    assert "rackwright check INVENTORY" in step.text


def test_a_spared_release_is_not_asked_about() -> None:
    assert pending(None, replace(OWN, spared=True)) == []


def reading(**values: Any) -> HostReading:
    endpoints = SeenEndpoints(True, {"llm": SeenEndpoint(**values)}, {}, True)
    return HostReading({"endpoint": endpoints, "gpus": gpus()})


@pytest.mark.parametrize(
    ("unified", "values", "spared"),
    [
        (False, {"proven": "other", "proven_spec": {"serving": WANTED.spec.serving_hash}}, True),
        (False, {"active": "active", "health": 200, "proven": "other"}, False),
        (True, {"active": "active", "health": 200, "proven": "other"}, True),
        (True, {"active": "activating", "sub": "start-post"}, True),
        (True, {}, False),
    ],
)
def test_proven_releases_and_serving_sparks_are_spared(unified: bool, values: dict[str, Any], spared: bool) -> None:
    settings = HostSettings.model_validate(
        {"hardware": {"unified_memory": unified}, "model": {"repository": "a/b", "mount": "/models/b"}}
    )
    endpoint = settings.all_endpoints["llm"]
    assert _wanted(WANTED, endpoint, settings, reading(**values)).spared is spared


def test_a_plan_says_that_a_serving_spark_s_image_was_not_asked() -> None:
    crowded = replace(OWN, spared=True, crowded=True)
    assert "the image was not asked" in report((crowded,), {})
    assert report((replace(crowded, proven=True),), {}) == ""


def test_a_serving_spark_is_answered_with_the_way_to_drain_it() -> None:
    well, (answer,) = in_image._ask(cast(Any, None), replace(OWN, spared=True, crowded=True))
    assert well
    assert NOT_ASKED in answer


def test_the_container_sees_one_gpu_no_network_and_nothing_to_write() -> None:
    words = docker_run(OWN, WANTED.path)
    command = " ".join(words)
    assert "--network none" in command
    assert "--runtime nvidia --env NVIDIA_VISIBLE_DEVICES=GPU-1 " in command
    assert words[words.index("--entrypoint") + 1 :][:3] == ["python3", WANTED.spec.image, "-"]
    mounts = [words[at + 1] for at, argument in enumerate(words) if argument == "--mount"]
    assert f"type=bind,source={WANTED.path},target=/config/release,readonly" in mounts
    assert all(mount.endswith(",readonly") for mount in mounts)
    assert "--volume" not in words


# -- what was kept


def checked_entry(text: str) -> str:
    return f"/var/lib/rackwright/endpoints/llm/checked/{KEY[1]} {base64.b64encode(text.encode()).decode()}"


def test_a_kept_answer_is_read_back() -> None:
    answer = {"checked": True, "refused": [{"key": "moe_config.backend", "reason": "Input should be 'CUTLASS'"}]}
    assert parse(checked_entry(json.dumps({**answer, "why": ""}))) == {KEY: REFUSED}


@given(st.text(max_size=50) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_a_spoilt_answer_counts_as_none(text: str) -> None:
    assert parse(checked_entry(text)) == {}


# -- the host's script and the image's program, on stand-ins of the engines


BOUND = r"""case $1 in rm | inspect) exit 0 ;; esac
folder=$(printf '%s\n' "$@" | sed -n 's/^type=bind,source=\(.*\),target=\/config\/release,readonly$/\1/p')
while [ "$1" != - ]; do shift; done; shift
for word; do shift; set -- "$@" "$(echo "$word" | sed "s#/config/release#$folder#")"; done"""
"""Leaves the words after `-`, with the release where it is mounted from."""


class Image:
    """A `docker` that runs the program here, with the stand-in packages laid out as in the images."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.release = folder / "releases" / WANTED.hash
        self.release.mkdir(parents=True)
        self.marker = folder / "checked" / KEY[1]
        self.bin = folder / "bin"
        self.bin.mkdir()
        self._write("nvidia-smi", 'echo "GPU 0: NVIDIA B200 (UUID: GPU-1)"')
        self.docker(f'{BOUND}; exec {sys.executable} - "$@"')

    def _write(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def docker(self, script: str) -> None:
        self._write("docker", script)

    def install(self, engine: str) -> None:
        put_package(self.folder / "site", "engine", "common", *([engine] if engine in SHIMS else []))
        if engine == "tensorrt-llm":
            (self.folder / "site/tensorrt_llm").symlink_to(Path(rackwright_lab.__file__).parent / "standins/engine")

    def ask(
        self,
        yaml: str,
        engine: str = "tensorrt-llm",
        version: str = "1.2.0rc6",
        limit: int = 30,
        arguments: str = "",
        launched: bool = False,
    ) -> tuple[int, str]:
        wanted = replace(OWN, engine_kind=engine, arguments=tuple(arguments.split()), launched=launched)
        (self.release / WANTED.spec.engine_file).write_text(yaml)
        program = base64.b64encode(image_program("build_options").encode()).decode()
        run = " ".join(docker_run(wanted, str(self.release)))
        script = helper_script("run_in_image", "c", limit=limit, program=program, run=run)
        script += host_script("check_options", marker=str(self.marker), keep=2, next="rackwright check INVENTORY")
        return self.run(script, version)

    def run(self, script: str, version: str = "1.2.0rc6") -> tuple[int, str]:
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "site"),
            "TRTLLM_STANDIN_VERSION": version,
        }
        done = subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.marker.read_text())
        return found

    def put_mpi(self, says: str, programs: tuple[str, ...] = ("mpirun", "orted", "trtllm-llmapi-launch")) -> None:
        """Let the image have these programs, and its mpirun say this of its version."""
        for name in programs:
            (self.bin / name).write_text(f"#!/bin/sh\necho '{says}'\n")
            (self.bin / name).chmod(0o755)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.mark.parametrize(
    ("says", "programs", "refused"),
    [
        ("mpirun (Open MPI) 4.1.7rc1", ("mpirun", "orted", "trtllm-llmapi-launch"), ""),
        ("mpirun (Open MPI) 5.0.8", ("mpirun", "orted", "trtllm-llmapi-launch"), "it wants Open MPI 4; the image has"),
        (
            "mpirun (Open MPI) 4.1.7",
            ("mpirun", "orted"),
            "it wants trtllm-llmapi-launch, which the image does not have",
        ),
        ("", (), "it wants mpirun, which the image does not have"),
    ],
)
def test_over_several_hosts_the_image_must_have_what_starts_its_ranks(
    image: Image, says: str, programs: tuple[str, ...], refused: str
) -> None:
    image.install("tensorrt-llm")
    image.put_mpi(says, programs)
    status, output = image.ask("max_batch_size: 4\n", launched=True)
    assert (status == 0) is not bool(refused), output
    assert refused in output
    assert [one["key"] for one in image.answer["refused"]] == ["image"] * bool(refused)
    assert image.ask("max_batch_size: 4\n")[0] == 0, "one host wants none of it"


ACCEPTED = [
    ("tensorrt-llm", "max_batch_size: 4\nmoe_config: {backend: CUTLASS}\ntensor_parallel_size: 8\n"),
    ("vllm", "kv-cache-dtype: fp8\ntensor-parallel-size: 8\n"),
    ("sglang", "{}\n"),
    ("sglang", "tp-size: 4\n"),
]


@pytest.mark.parametrize(("engine", "yaml"), ACCEPTED)
def test_good_options_are_accepted_although_one_gpu_is_visible(image: Image, engine: str, yaml: str) -> None:
    image.install(engine)
    status, output = image.ask(yaml, engine)
    assert (status, image.answer) == (0, {"checked": True, "refused": [], "why": ""}), output


PARSER = Path("vllm/entrypoints/openai/cli_args.py")


@pytest.mark.parametrize("module", ["launchers", "common"])
def test_a_parser_that_has_moved_is_found(image: Image, module: str) -> None:
    """0.32.0 has it in `launchers`, 0.33.0 in `common`; 0.14.1 and the stand-in in `openai`."""
    image.install("vllm")
    moved = image.folder / "site" / PARSER.parent.with_name(module)
    moved.mkdir()
    (moved / "__init__.py").touch()
    (image.folder / "site" / PARSER).rename(moved / PARSER.name)
    status, output = image.ask("nonsense: 1\n", "vllm")
    assert (status, image.answer["checked"]) == (1, True), output


DRAFTING = (
    "vllm/config.py",
    "class SpeculativeConfig:\n    __dataclass_fields__ = {'method': 0, 'num_speculative_tokens': 0}\n",
)


@pytest.mark.parametrize(
    ("key", "status"), [("num_speculative_tokens", 0), ("num-speculative-tokens", 0), ("tokens", 1)]
)
def test_the_keys_of_a_draft_are_those_of_the_image_s_own_class_text(image: Image, key: str, status: int) -> None:
    image.install("vllm")
    name, text = DRAFTING
    (image.folder / "site" / name).write_text(text)
    answered, output = image.ask(f'speculative-config: \'{{"method": "ngram", "{key}": 3}}\'\n', "vllm")
    assert (answered, image.answer["checked"]) == (status, True), output
    reasons = [(row["key"], row["reason"]) for row in image.answer["refused"]]
    assert reasons == ([("speculative-config", "--speculative-config has no key 'tokens'")] if status else [])


LATE = """
class Args:
    def resolve_once(self):
        raise ValueError("--tp-size 3 does not fit")

def prepare_server_args(words):
    return Args()
"""


def test_an_sglang_that_validates_later_is_asked_to(image: Image) -> None:
    """0.5.23: launchers call `resolve_once`, and building the arguments checks nothing (srt/server_args.py)."""
    image.install("sglang")
    (image.folder / "site/sglang/srt/server_args.py").write_text(LATE)
    status, output = image.ask("{}\n", "sglang")
    assert (status, image.answer["refused"]) == (1, [{"key": "tp-size", "reason": "--tp-size 3 does not fit"}]), output


REFUSALS = [
    ("tensorrt-llm", "use_torch_sampler: true\n", "use_torch_sampler", "Extra inputs are not permitted"),
    ("tensorrt-llm", "moe_config: {backend: FAST}\n", "moe_config.backend", "Input should be"),
    ("tensorrt-llm", "speculative_config: {decoding_type: Nope}\n", "", "Invalid decoding type: Nope"),
    ("vllm", "kv-cache-dtype: fp3\n", "kv-cache-dtype", "invalid choice"),
    ("vllm", "nonsense: 1\n", "nonsense", "unrecognized arguments"),
    ("sglang", "kv-cache-dtype: fp3\n", "kv-cache-dtype", "invalid choice"),
]


@pytest.mark.parametrize(("engine", "yaml", "key", "reason"), REFUSALS)
def test_bad_options_are_refused_with_file_key_reason(
    image: Image, engine: str, yaml: str, key: str, reason: str
) -> None:
    image.install(engine)
    status, output = image.ask(yaml, engine)
    assert status == 1, output
    (row,) = image.answer["refused"]
    assert row["key"] == key
    assert reason in row["reason"]
    assert f"refused: {WANTED.spec.engine_file}: {key or '(no key named)'}: " in output
    assert "rackwright check INVENTORY" in output


WORDS = [
    ("tensorrt-llm", "--max_beam_width 2", None),
    ("tensorrt-llm", "--nonsense", "the server's command line refuses it: No such option"),
    ("tensorrt-llm", "--max_beam_width two", "'two' is not a valid integer"),
    ("vllm", "--enable-auto-tool-choice --tool-call-parser openai", None),
    ("vllm", "--nonsense", "unrecognized arguments: --nonsense"),
    ("sglang", "--nonsense", "unrecognized arguments: --nonsense"),
]


@pytest.mark.parametrize(("engine", "arguments", "reason"), WORDS)
def test_the_image_judges_the_arguments_too(image: Image, engine: str, arguments: str, reason: str | None) -> None:
    image.install(engine)
    status, output = image.ask("{}\n", engine, arguments=arguments)
    assert (status, image.answer["checked"]) == (1 if reason else 0, True), output
    assert (reason or "") in "".join(row["reason"] for row in image.answer["refused"])


def test_an_image_without_the_classes_is_not_checked(image: Image) -> None:
    status, output = image.ask("max_batch_size: 4\n")
    assert status == 0
    assert not image.answer["checked"]
    assert "No module named 'tensorrt_llm'" in image.answer["why"]
    assert "not checked inside the image" in output


def test_an_image_that_takes_too_long_is_not_checked(image: Image) -> None:
    image.docker("case $1 in rm | inspect) ;; *) exec sleep 30 ;; esac")
    status, _ = image.ask("max_batch_size: 4\n", limit=1)
    assert (status, image.answer["why"]) == (0, "it took more than 1 s")


def test_docker_that_fails_is_not_a_refusal(image: Image) -> None:
    image.docker("""[ "$1" = run ] && { echo 'docker: "no" \\ space left' >&2; exit 125; }""")
    status, _ = image.ask("max_batch_size: 4\n")
    assert status == 0
    assert image.answer["why"].endswith(" 125: docker: no  space left")


def test_the_oldest_answers_go(image: Image) -> None:
    image.marker.parent.mkdir()
    for age, name in enumerate(("newer", "older", "oldest")):
        (image.marker.parent / name).write_text("{}")
        os.utime(image.marker.parent / name, (1000 - age, 1000 - age))
    image.install("tensorrt-llm")
    image.ask("max_batch_size: 4\n")
    assert {file.name for file in image.marker.parent.iterdir()} == {KEY[1], "newer"}


# -- `rackwright check --in-image`


def test_without_a_deploy_the_yaml_is_there_only_meanwhile(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_image, "RUN", str(image.folder / "run"))
    image.install("tensorrt-llm")
    wanted = replace(OWN, release=release(engine={"max_batch_size": 10, "nonsense": 1}))
    status, output = image.run(in_image.script_of(wanted))
    assert status == 1
    assert f"refused: {WANTED.spec.engine_file}: nonsense: Extra inputs " in output
    assert image.run(in_image.script_of(OWN)) == (0, "")
    assert not (image.folder / "run/in-image/llm").exists()
    assert not image.marker.exists()


def test_an_endpoint_that_is_not_staged_is_said_to_be_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_image, "wanted_releases", lambda *_: {"llm": Unresolved(("its digest",)), "b": WANTED})
    settings = HostSettings.model_validate({"model": {"repository": "a/b", "mount": "/models/b"}})
    assert list(in_image.unresolved(settings, reading())) == [f"llm: {texts.NOT_CHECKED}its digest"]
