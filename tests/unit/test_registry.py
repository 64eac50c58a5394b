from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.concerns import registry
from rackwright.concerns.registry import REGISTRY, SeenLogin
from rackwright.hostside import host_script
from rackwright.plan.change import Owned, Shell
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Registry

KEY = "nvapi-something-known"
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}


def host(**keys: Any) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, "registry": {"key": Secret(KEY), **keys}})


def login(key: str = KEY) -> Secret:
    found = registry.auth_of(Registry(key=Secret(key)))
    assert found is not None
    return found


def stored_login(key: str | None = None, mode: str = "600:root", helper: str | None = None) -> SeenLogin:
    return SeenLogin(mode, "salt", registry.digest("salt", login(key)) if key else None, helper)


def pending(settings: HostSettings, on_host: SeenLogin, owned: bool = False) -> list[str]:
    record = frozenset({Owned("login", "nvcr.io")} if owned else ())
    reading = HostReading({"ownership": record, "registry": on_host})
    return [change.what for change in REGISTRY.pending(settings, reading)]


def test_a_stored_login_needs_no_change() -> None:
    assert pending(host(), stored_login(KEY)) == []


def test_the_text_of_a_rotated_key_that_is_noticed_without_asking_the_registry() -> None:
    assert pending(host(), stored_login("an old key")) == ["store the login at nvcr.io for root only"]


def test_a_login_that_others_could_read_is_closed_text() -> None:
    assert pending(host(), stored_login(KEY, "644:root")) == ["make /root/.docker/config.json readable by root only"]


def test_nothing_stays_at_rest_when_it_is_not_to_be_kept_text() -> None:
    assert pending(host(keep=False), stored_login()) == []
    assert pending(host(keep=False), stored_login(KEY)) == [
        "remove the login at nvcr.io from /root/.docker/config.json"
    ]


def test_somebody_elses_login_stays_when_there_is_no_key_text() -> None:
    assert pending(host(key=None), stored_login("theirs")) == []
    assert pending(host(key=None), stored_login("ours, of an earlier run"), owned=True) == [
        "remove the login at nvcr.io from /root/.docker/config.json"
    ]


def test_a_credential_helper_is_left_its_business() -> None:
    on_host = stored_login(helper="pass")
    assert pending(host(), on_host) == []
    reading = HostReading({"ownership": frozenset(), "registry": on_host})
    assert REGISTRY.report is not None
    assert "docker-credential-pass" in REGISTRY.report(REGISTRY.wanted(host(), reading), on_host)


def test_the_key_is_in_no_script() -> None:
    reading = HostReading({"ownership": frozenset(), "registry": stored_login()})
    (change,) = REGISTRY.pending(host(), reading)
    (step,) = change.steps
    assert isinstance(step, Shell)
    assert login().unmask() not in step.script + REGISTRY.read(host()) + repr(change)
    assert step.stdin == login()


# -- the host's side, run by this machine's own sh


def edit(config: Path, act: str, name: str = "nvcr.io") -> subprocess.CompletedProcess[str]:
    script = host_script("login_edit", config=str(config), registry=name, act=act)
    secret = login().unmask() + "\n"
    return subprocess.run(["sh", "-c", script], input=secret, text=True, capture_output=True, check=False)


def read(config: Path, name: str = "nvcr.io") -> SeenLogin:
    script = host_script("login_read", config=str(config), registry=name)
    done = subprocess.run(["sh", "-c", script], text=True, capture_output=True, check=True)
    return registry.parse(done.stdout)


words = st.text(st.sampled_from("abcz.019-_/"), min_size=1, max_size=12)
auths = words.map(lambda password: base64.b64encode(f"user:{password}".encode()).decode())
logins = st.dictionaries(words, st.fixed_dictionaries({"auth": auths}, optional={"email": words}), max_size=4)
configs = st.fixed_dictionaries(
    {},
    optional={
        "auths": logins,
        "credHelpers": st.dictionaries(words, words, max_size=2),
        "HttpHeaders": st.dictionaries(words, words, max_size=2),
        "proxies": st.dictionaries(words, st.dictionaries(words, words, max_size=2), max_size=2),
    },
)


@settings(max_examples=20, deadline=None)
@given(config=configs, indent=st.sampled_from([None, 2, "\t"]), before=st.booleans())
def test_other_logins_and_unknown_keys_survive(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, Any], indent: int | str | None, before: bool
) -> None:
    file = tmp_path_factory.mktemp("docker") / "config.json"
    if before:
        config.setdefault("auths", {})["nvcr.io"] = {"auth": "bzpr"}
    file.write_text(json.dumps(config, indent=indent))
    assert edit(file, "put").returncode == 0
    on_host = read(file)
    assert on_host.digest == registry.digest(on_host.salt, login())
    assert file.stat().st_mode & 0o777 == 0o600
    expected = {**config, "auths": {**config.get("auths", {}), "nvcr.io": {"auth": login().unmask()}}}
    assert json.loads(file.read_text()) == expected
    assert edit(file, "drop").returncode == 0
    expected["auths"].pop("nvcr.io")
    assert json.loads(file.read_text()) == expected
    assert read(file).digest is None


def test_a_host_without_any_config_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "docker" / "config.json"
    assert edit(file, "put").returncode == 0
    assert json.loads(file.read_text()) == {"auths": {"nvcr.io": {"auth": login().unmask()}}}
    assert list(file.parent.iterdir()) == [file]


def test_reading_prints_no_login(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {"nvcr.io": {"auth": login().unmask()}}, "credsStore": "pass"}))
    script = host_script("login_read", config=str(file), registry="nvcr.io")
    output = subprocess.run(["sh", "-c", script], text=True, capture_output=True, check=True).stdout
    assert login().unmask() not in output
    assert "helper=pass" in output
