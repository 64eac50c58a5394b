"""An endpoint's own key: where each engine takes one, where a host stores it, and what of it others see."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.binding import Binding, key_digest, parse_binding
from rackwright.concerns.endpoint.container import Resolved, endpoint_spec
from rackwright.concerns.endpoint.release import files as releases
from rackwright.concerns.endpoint.release.concern import WantedReleases, _added, changes, parse, read
from rackwright.concerns.endpoint.release.files import Release, build_release
from rackwright.concerns.endpoint.release.keys import SeenKeys
from rackwright.engines.api_key import check_api_key, quiet_loggers
from rackwright.engines.tables import table
from rackwright.hostside import durable_script
from rackwright.messages import SettingsError
from rackwright.plan.change import Shell, WriteFile
from rackwright.settings.host_settings import NOWHERE, EndpointSettings, HostSettings
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Hardware
from rackwright_engines.quick_yaml import load_yaml

KEY, OTHER = Secret("sk-unit-7b1e90d4c2a85f36"), Secret("sk-unit-0f9d2c6b8e4a7153")
HOME = "/var/lib/rackwright/endpoints/llm"
RESOLVED = Resolved("sha256:" + "a" * 64, "c" * 40, "/srv/models/base", None, None)
IMAGES = {
    "vllm": "vllm/vllm-openai:v0.14.1",
    "sglang": "lmsysorg/sglang:v0.5.8",
    "tensorrt-llm": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
}


def settings(kind: str = "vllm", key: Secret | None = KEY, **more: Any) -> EndpointSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/m"}
    values = {"engine_kind": kind, "image": IMAGES[kind], "model": model, "engine": {"stream-interval": 4}, **more}
    return HostSettings.model_validate({**values, **({"api_key": key} if key else {})}).all_endpoints["llm"]


def release(endpoint: EndpointSettings) -> Release:
    spec = endpoint_spec("llm", endpoint, "/srv/encodings", RESOLVED, _added(endpoint, Hardware()))
    return build_release(spec, endpoint, NOWHERE)


# -- what each engine takes


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_the_key_is_in_no_file_of_the_release_and_in_no_word_of_its_command(kind: str) -> None:
    made = release(settings(kind))
    assert [name for name, text in made.files.items() if KEY.unmask() in text or key_digest(KEY) in text] == []
    assert "--config /config/keyed/engine.yaml" in made.unit
    assert f"--volume {HOME}/keyed:/config/keyed:ro" in made.unit
    assert made.spec.as_json()["keyed"]


def test_another_key_is_the_same_release_with_another_binding() -> None:
    assert release(settings(key=KEY)).hash == release(settings(key=OTHER)).hash
    one, other = Binding(("GPU-1",), key_digest(KEY)), Binding(("GPU-1",), key_digest(OTHER))
    assert one.hash != other.hash
    assert parse_binding(one.text) == one
    assert parse_binding(one.text.replace(one.key, other.key)) is None


def test_without_a_key_nothing_of_it_is_said() -> None:
    made = release(settings(key=None))
    assert "keyed" not in made.spec.as_json()
    assert "keyed" not in made.files["before-start"]
    assert "logging.json" not in made.files
    assert Binding(("GPU-1",)).values == "GPUS=GPU-1\n"


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (settings("tensorrt-llm"), "trtllm-serve has no API key, in no version: give no key, keep `allow_from` narrow"),
        (settings("sglang", image="lmsysorg/sglang:v0.5.2"), "reads a key from a file from 0.5.3 on, not in 0.5.2"),
        (settings(environment={"VLLM_USE_RUST_FRONTEND": "1"}), "given the key on a command line"),
        (settings(environment={"VLLM_LOGGING_CONFIG_PATH": "/x"}), "this version logs its key"),
        (settings("sglang", engine={"tokenizer-worker-num": 2}), "start only without a key"),
    ],
)
def test_where_a_key_cannot_be_kept_it_is_refused(endpoint: EndpointSettings, message: str) -> None:
    [found] = check_api_key(endpoint)
    assert message in found.sentence
    assert found.code == "RW0323"


@pytest.mark.parametrize("endpoint", [settings(), settings("sglang"), settings("tensorrt-llm", key=None)])
def test_where_it_can_nothing_is_said(endpoint: EndpointSettings) -> None:
    assert list(check_api_key(endpoint)) == []


def test_every_engine_has_its_row_with_a_source() -> None:
    rows = table("api_key")
    assert set(rows) == set(IMAGES)
    assert all(row["source"] and ("none" in row) != ("option" in row) for row in rows.values())


# -- the engines' own logs


@pytest.mark.parametrize(
    ("kind", "image", "quiet"),
    [
        ("vllm", "vllm/vllm-openai:v0.14.1", "vllm.entrypoints.utils"),
        ("vllm", "vllm/vllm-openai:v0.28.0", "vllm.entrypoints.serve.utils.api_utils"),
        ("vllm", "vllm/vllm-openai:v0.33.0", None),
        ("sglang", "lmsysorg/sglang:v0.5.23", "sglang.srt.entrypoints.engine"),
    ],
)
def test_versions_that_write_the_key_into_their_log_are_kept_from_it(kind: str, image: str, quiet: str | None) -> None:
    endpoint = settings(kind, image=image)
    made = release(endpoint)
    variables = [name for name in made.spec.environment if name.endswith("LOGGING_CONFIG_PATH")]
    assert bool(variables) == ("logging.json" in made.files) == (quiet is not None)
    assert quiet is None or quiet in quiet_loggers(endpoint)


@pytest.mark.parametrize(("kind", "logger"), [("vllm", "vllm.engine"), ("sglang", "sglang.srt.managers")])
def test_only_those_loggers_are_quiet(kind: str, logger: str) -> None:
    file = json.loads(release(settings(kind)).files["logging.json"])
    script = (
        "import json, logging, logging.config, sys\n"
        "logging.config.dictConfig(json.loads(sys.argv[1]))\n"
        "for name in sys.argv[2:]: logging.getLogger(name).info('said by %s', name)\n"
    )
    words = ["python3", "-c", script, json.dumps(file), logger, *quiet_loggers(settings(kind))]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"said by {logger}" in output
    assert len(output.splitlines()) == 1


# -- the file that is made at each start


def start(made: Release, home: Path, key: str) -> subprocess.CompletedProcess[str]:
    """before-start, with the host's folders below `home`."""
    folder, bound = home / "releases" / made.hash, Binding(("GPU-1",), key)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**made.files, releases.SUMS: made.sums}.items():
        (folder / name).write_text(text)
    (home / "binding").write_text(bound.text)
    tools = home / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("docker", "nvidia-smi"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    script = made.files["before-start"].replace(HOME, str(home))
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "GPUS": "GPU-1", "BINDING": bound.hash, "KEY": key}
    return subprocess.run(["sh", "-xc", script], env=environment, capture_output=True, text=True, check=False)


def put_key(home: Path, key: Secret) -> str:
    (home / "keys").mkdir(parents=True, exist_ok=True)
    (home / "keys" / key_digest(key)).write_text(f"Authorization: Bearer {key.unmask()}\n")
    return key_digest(key)


@pytest.mark.parametrize("engine", [{"stream-interval": 4, "tool-call-parser": "openai"}, {}])
def test_a_start_puts_the_key_of_the_binding_into_the_engines_file(tmp_path: Path, engine: dict[str, Any]) -> None:
    made = release(settings(engine=engine))
    done = start(made, tmp_path, put_key(tmp_path, KEY))
    assert done.returncode == 0, done.stderr
    file = tmp_path / "keyed" / "engine.yaml"
    assert load_yaml(file.read_text()) == {**engine, "api-key": KEY.unmask()}
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY.unmask() not in done.stderr, "no command of it has the key on its line"
    assert start(made, tmp_path, put_key(tmp_path, OTHER)).returncode == 0
    assert load_yaml(file.read_text())["api-key"] == OTHER.unmask()


@pytest.mark.parametrize("text", [None, "", "something else\n"])
def test_no_start_without_the_key(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "keys").mkdir(parents=True)
        (tmp_path / "keys" / key_digest(KEY)).write_text(text)
    done = start(release(settings()), tmp_path, key_digest(KEY))
    assert done.returncode == 1
    assert "key is not on this host" in done.stderr


def test_an_older_template_of_the_site_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "before-start.j2").write_text("#!/bin/sh\nexit 0\n")
    endpoint = settings()
    spec = endpoint_spec("llm", endpoint, "/srv/encodings", RESOLVED, _added(endpoint, Hardware()))
    with pytest.raises(SettingsError, match=r"api_key.*rackwright init --update"):
        build_release(spec, endpoint, tmp_path)
    build_release(replace(spec, key_option=""), endpoint, tmp_path)


# -- the key's file on the host


def seen_on(home: Path) -> SeenKeys:
    script = read(HostSettings.model_construct()).replace("/var/lib/rackwright/endpoints", str(home.parent))
    done = subprocess.run(["sh", "-c", f"reading_whole=\n{script}"], capture_output=True, text=True, check=True)
    assert KEY.unmask() not in done.stdout
    return parse(done.stdout).keys


def test_a_key_is_stored_once_for_root_only_and_put_right_again_text(tmp_path: Path) -> None:
    home = tmp_path / "llm"
    wanted = WantedReleases({}, {"llm": KEY})

    def due() -> list[str]:
        return [change.sentence for change in changes(wanted, replace(parse(""), keys=seen_on(home)))]

    home.mkdir()
    assert due() == ["store the key of endpoint llm for root only (it is not on the host)"]
    file = home / "keys" / put_key(home, KEY)
    file.chmod(0o600)
    owner = "root" if os.geteuid() == 0 else "nobody"
    assert due() == ([] if owner == "root" else due())
    file.chmod(0o644)
    assert due() == [f"make the key of endpoint llm readable by root only (its mode and owner are 644:{owner})"]
    file.write_text("Authorization: Bearer something-else-entirely\n")
    assert due() == ["store the key of endpoint llm for root only (its file was changed)"]


def test_the_key_travels_as_a_files_content_alone() -> None:
    [change] = changes(WantedReleases({}, {"llm": KEY}), parse(""))
    folder, file = change.steps
    assert isinstance(folder, Shell)
    assert isinstance(file, WriteFile)
    assert (file.mode, isinstance(file.content, Secret)) == ("0600", True)
    assert KEY.unmask() not in repr(change)


def test_a_commit_leaves_the_proven_binding_s_key_alone(tmp_path: Path) -> None:
    (tmp_path / "releases" / "a").mkdir(parents=True)
    for key in (KEY, OTHER):
        put_key(tmp_path, key)
    (tmp_path / "keyed").mkdir()
    for digest, remaining in ((key_digest(OTHER), [key_digest(OTHER)]), ("", None)):
        bound = Binding(("GPU-1",), digest)
        script = durable_script("commit", home=str(tmp_path), release_hash="a", binding=bound.text, keep=2)
        subprocess.run(["sh", "-c", script], check=True)
        present = [file.name for file in (tmp_path / "keys").iterdir()] if (tmp_path / "keys").exists() else None
        assert present == remaining
    assert not (tmp_path / "keyed").exists()
