"""`profile: NAME`: weaker than every file of the site, kept in the lock file, and changed by `pin` alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from rackwright.cli import pin
from rackwright.cli.main import main
from rackwright.cli.render import rendered_files
from rackwright.inventory import load_inventory
from rackwright.loading.host import InventoryHost
from rackwright.loading.profile_text import one_file
from rackwright.messages import SettingsError
from rackwright.profiles import catalog
from rackwright.profiles.content import sha256_of
from rackwright.profiles.locked import LockedProfile
from rackwright.settings.host_settings import HostSettings
from rackwright.sources import profile_lock
from rackwright.sources.lockfile import FILE, Lock, Locks, load_lock, write_lock
from rackwright.sources.profile_lock import changed_keys, lock_profiles
from rackwright.sources.resolve import Resolver
from rackwright_engines.quick_yaml import load_yaml
from tests.refused import refusal, refused

HOSTS = {"rack": ["h1", "h2"]}
ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + "1" * 64
Write = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a site's files, each with its text, and returns the inventory's path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploy.py").touch()

    def write(files: dict[str, str], hosts: object = HOSTS, children: object = None) -> Path:
        text = f"from rackwright.inventory import build\nglobals().update(build(__file__, {hosts!r}, {children!r}))\n"
        for name, content in {"inventory/rack.py": text, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return tmp_path / "inventory" / "rack.py"

    return write


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Return a function that ships a profile's file with another text, as `pip install -U` would."""
    folder = tmp_path / "shipped"
    shutil.copytree(ROOT / "group_vars", folder)

    def ship(file: str, old: str, new: str) -> None:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        monkeypatch.setattr(catalog, "FOLDERS", (folder,))
        catalog.profile.cache_clear()

    yield ship
    catalog.profile.cache_clear()


def first(inventory: Path) -> InventoryHost:
    return load_inventory(inventory)[0]


def served(inventory: Path) -> dict[str, str]:
    """Return every file that a host is to have, with the lock file's pins."""
    host = first(inventory)
    return rendered_files(Locks(host.root).pin(host.settings))


def test_a_host_gets_what_a_group_with_the_shipped_files_gets(site: Write) -> None:
    named = first(site({"group_vars/rack.yml": "profile: h200_vllm_eagle3\n"}))
    files = {f"group_vars/{name}": text for name, text in catalog.profile("h200_vllm_eagle3").files.items()}
    groups = {"h200_vllm_eagle3": ["h1"]}
    copied = first(site(files, groups, {"h200": ["h200_vllm"], "h200_vllm": ["h200_vllm_eagle3"]}))
    one, other = (host.settings.model_dump(exclude={"profile"}) for host in (named, copied))
    assert one == other
    assert named.settings.profile == "h200_vllm_eagle3"


@pytest.mark.parametrize("place", ["group_vars/all.yml", "group_vars/rack.yml", "host_vars/h1.yml"])
def test_a_profile_is_weaker_than_every_file_wherever_it_is_named(site: Write, place: str) -> None:
    files = {"group_vars/all.yml": "port: 9001\nengine: {max_batch_size: 3}\n", "group_vars/rack.yml": ""}
    files[place] = f"{files.get(place, '')}profile: b200\n"
    settings = first(site({"host_vars/h2.yml": "profile: b200\n", **files})).settings
    assert settings.port == 9001
    assert settings.engine["max_batch_size"] == 3
    assert settings.engine["max_num_tokens"] == 131072


def test_an_inventory_names_one_for_a_group_or_a_host(site: Write) -> None:
    inventory = site({}, {"rack": [("h1", {"profile": "b200"})], "other": (["h2"], {"profile": "h200_vllm"})})
    assert [host.settings.profile for host in load_inventory(inventory)] == ["b200", "h200_vllm"]


def test_every_profile_is_valid_by_its_name_alone(site: Write) -> None:
    hosts = {
        name: [
            (f"{name}-{number}".replace("_", "-"), {"fabric_address": f"192.0.2.{number + 1}"})
            for number in range(catalog.profile(name).hosts)
        ]
        for name in catalog.names()
    }
    files = {f"group_vars/{name}.yml": f"profile: {name}\n" for name in hosts}
    files["group_vars/rtx_pro_6000_sglang.yml"] += "accept_known_bad: true\n"
    found = load_inventory(site(files, hosts))
    assert {host.settings.profile for host in found} == set(catalog.names())


def test_origins_name_the_profile_its_file_and_the_line(site: Write, capsys: pytest.CaptureFixture[str]) -> None:
    inventory = site({"group_vars/all.yml": "profile: h200_vllm\n"})
    assert main(["check", str(inventory), "--show-origin", "--limit", "h1"]) == 0
    (row,) = [row for row in capsys.readouterr().out.splitlines() if row.split()[:1] == ["hardware.gpu_count"]]
    number = catalog.profile("h200_vllm").files["h200.yml"].splitlines().index("  gpu_count: 8") + 1
    assert row.endswith(f"profile h200_vllm, h200.yml:{number}")


def test_an_unknown_name_is_refused_with_the_nearest_one(site: Write) -> None:
    with refused("RW0241", "group_vars/all.yml:1", "b200_stabel", "b200_stable"):
        load_inventory(site({"group_vars/all.yml": "profile: b200_stabel\n"}))


@pytest.mark.parametrize(
    ("files", "places"),
    [
        (
            {"group_vars/all.yml": "profile: b200\n", "group_vars/rack.yml": "\nprofile: b200_vllm\n"},
            ("all.yml:1", "rack.yml:2"),
        ),
        (
            {"group_vars/rack.yml": "profile: b200\n", "host_vars/h1.yml": "profile: b200_vllm\n"},
            ("rack.yml:1", "h1.yml:1"),
        ),
        ({"group_vars/rack.yml": "profile: b200\n", "host_vars/h1.yml": "profile: null\n"}, ("rack.yml:1", "h1.yml:1")),
    ],
)
def test_two_profiles_on_a_host_are_refused_with_both_places(
    site: Write, files: dict[str, str], places: tuple[str, ...]
) -> None:
    with refused("RW0251", *places):
        load_inventory(site(files))


def test_the_same_name_twice_is_one_profile(site: Write) -> None:
    files = {"group_vars/all.yml": "profile: b200\n", "host_vars/h1.yml": "profile: b200\n"}
    assert first(site(files)).settings.profile == "b200"


def test_data_counts_and_is_no_way_past_the_files(site: Write, capsys: pytest.CaptureFixture[str]) -> None:
    inventory = site({"group_vars/all.yml": "port: 9001\n"})
    assert main(["check", str(inventory), "--data", "profile=b200_vllm", "--show-origin"]) == 0
    assert "vllm/vllm-openai" in capsys.readouterr().out
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    assert main(["check", str(inventory), "--data", "profile=b200_vllm"]) == 1
    refusal(capsys.readouterr().err, "RW0251", "--data", "group_vars/all.yml:1")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("profile: [b200]", "RW0212"),
        ("profile: 200", "RW0212"),
        ("profile: {name: b200}", "RW0212"),
        ("profile: '{{ which }}'", "RW0215"),
        ("profile: ''", "RW0241"),
        ("profile: ../b200", "RW0241"),
        ("profile: B200", "RW0241"),
        ("profile: |\n  b200\n  b200", "RW0241"),
    ],
)
def test_what_is_not_a_name_is_refused_with_its_line(site: Write, text: str, code: str) -> None:
    with refused(code, "group_vars/all.yml:1", "profile"):
        load_inventory(site({"group_vars/all.yml": text + "\n"}))


def test_an_endpoint_has_no_profile_of_its_own(site: Write) -> None:
    with refused("RW0210", "endpoints.a.profile"):
        load_inventory(site({"group_vars/all.yml": "profile: b200\nendpoints: {a: {profile: b200_vllm}}\n"}))


def test_a_deploy_file_names_none(site: Write, capsys: pytest.CaptureFixture[str]) -> None:
    deploy = "from rackwright.operations import site\nsite(profile='b200')\n"
    inventory = site({"deploy.py": deploy, "group_vars/all.yml": "profile: b200\n"})
    assert main(["check", str(inventory)]) == 1
    refusal(capsys.readouterr().err, "RW0261", "deploy.py")


# -- Ansible


def test_an_ansible_inventory_names_one_and_another_programs_is_left_alone(
    site: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    site({"hosts.ini": "[gpu]\nh1\n[web]\nw1\n", "group_vars/gpu.yml": "profile: b200\n"})
    site({"group_vars/web.yml": "model: {repository: a/b, mount: /m/b}\n", "host_vars/w1.yml": ""})
    assert first(Path("hosts.ini")).settings.profile == "b200"


def test_beside_an_ansible_inventory_of_others_only_the_names_of_profiles_count(
    site: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site({"ansible/hosts.ini": "[gpu]\nh1\n[web]\nw1\n[near]\nm1\n", "ansible/group_vars/gpu.yml": "profile: b200\n"})
    site(
        {"ansible/group_vars/web.yml": "profile: production\n", "ansible/group_vars/near.yml": "profile: b200_stabl\n"}
    )
    (tmp_path / "deploy.py").unlink()
    with caplog.at_level("WARNING", logger="pyinfra"):
        (host,) = load_inventory("ansible/hosts.ini", arguments=False)
    assert (host.name, host.settings.profile) == ("h1", "b200")
    (warning,) = [text for text in caplog.messages if "b200_stable" in text]
    assert "group_vars/near.yml:1: profile" in warning


# -- the lock file


def test_the_lock_files_text_counts_and_comes_back_as_it_was(site: Write, tmp_path: Path) -> None:
    files = {"b200.yml": catalog.profile("b200").files["b200.yml"].replace("max_batch_size: 10", "max_batch_size: 11")}
    lock = Lock(images={"a/b:1": DIGEST}, profiles={"b200": LockedProfile.of(files)})
    write_lock(tmp_path, lock)
    assert load_lock(tmp_path) == lock
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    assert first(inventory).settings.engine["max_batch_size"] == 11


def test_text_in_the_lock_file_stands_as_lines_that_a_diff_shows(tmp_path: Path) -> None:
    write_lock(
        tmp_path, Lock(profiles={name: LockedProfile.of(catalog.profile(name).files) for name in catalog.names()})
    )
    lines = [row.strip() for row in (tmp_path / FILE).read_text().splitlines()]
    for name in catalog.names():
        for text in catalog.profile(name).files.values():
            assert set(filter(None, map(str.strip, text.splitlines()))) <= set(lines)


def test_a_lock_file_of_its_own_has_its_own_profile(site: Write, tmp_path: Path) -> None:
    files = {"b200.yml": catalog.profile("b200").files["b200.yml"].replace("max_batch_size: 10", "max_batch_size: 12")}
    write_lock(tmp_path, Lock(profiles={"b200": LockedProfile.of(files)}), "lab.lock.yml")
    inventory = site(
        {"group_vars/all.yml": "profile: b200\n", "host_vars/h2.yml": "paths: {lock_file: lab.lock.yml}\n"}
    )
    assert [host.settings.engine["max_batch_size"] for host in load_inventory(inventory)] == [10, 12]


def test_a_profile_that_is_no_longer_shipped_goes_on_out_of_the_lock_file(
    site: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lock(tmp_path, Lock(profiles={"b100": LockedProfile.of(catalog.profile("b200").files)}))
    inventory = site({"group_vars/all.yml": "profile: b100\n"})
    assert main(["check", str(inventory)]) == 0
    assert "profile b100" in capsys.readouterr().out
    assert main(["profiles", "show", "b100"]) == 0
    assert main(["profiles", "add", "b100", "--as", "ours"]) == 0


def spoilt() -> dict[str, str]:
    """Return lock files that no Rackwright wrote."""
    whole = yaml.safe_dump(
        {"version": 1, "profiles": {"b200": LockedProfile.of({"b200.yml": "port: 1\n"}).model_dump()}}
    )
    other_hash = whole.replace(sha256_of({"b200.yml": "port: 1\n"}), "0" * 64)
    return {
        "torn": whole[: len(whole) // 2],
        "edited": whole.replace("port: 1", "port: 2"),
        "another hash": other_hash,
        "no hash": "version: 1\nprofiles: {b200: {files: {b200.yml: 'port: 1'}}}\n",
        "a list": "version: 1\nprofiles: [b200]\n",
        "a path": yaml.safe_dump(
            {"version": 1, "profiles": {"b200": LockedProfile.of({"../x.yml": "port: 1\n"}).model_dump()}}
        ),
        "another key": whole + "profils: {}\n",
        "twice": whole + "profiles: {}\n",
        "empty": yaml.safe_dump({"version": 1, "profiles": {"b200": LockedProfile.of({}).model_dump()}}),
    }


@pytest.mark.parametrize("kind", sorted(spoilt()))
def test_a_spoilt_lock_file_is_refused_by_what_changes_hosts_and_what_only_looks_goes_on(
    site: Write, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FILE).write_text(spoilt()[kind])
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    assert first(inventory).settings.port != 2
    assert main(["check", str(inventory)]) == 1
    refusal(capsys.readouterr().err, "RW0916", FILE)


def test_a_torn_lock_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(spoilt()["torn"])
    (warning,) = lock_profiles(tmp_path, [HostSettings.model_validate({"profile": "b200"})])
    refusal(warning, "RW0921", "b200")
    assert (tmp_path / FILE).read_text() == spoilt()["torn"]


def test_a_deploy_keeps_what_hosts_name_and_leaves_what_is_there(site: Write, tmp_path: Path) -> None:
    older = LockedProfile.of({"h200.yml": "port: 7\n"})
    write_lock(tmp_path, Lock({"a/b:1": DIGEST}, profiles={"h200_vllm": older}))
    inventory = site({"host_vars/h1.yml": "profile: b200\n", "host_vars/h2.yml": "profile: b200_vllm\n"})
    settings = [host.settings for host in load_inventory(inventory)]
    written = lock_profiles(tmp_path, [*settings, HostSettings.model_validate({"profile": "h200_vllm"})])
    assert [text.split()[1] for text in written] == ["b200:", "b200_vllm:"]
    lock = load_lock(tmp_path)
    assert lock.images == {"a/b:1": DIGEST}
    assert lock.profiles["h200_vllm"] == older
    assert lock.profiles["b200"].sha256 == catalog.profile("b200").sha256
    assert lock_profiles(tmp_path, settings) == []


def test_what_another_run_has_written_meanwhile_stays(
    site: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = LockedProfile.of({"b200.yml": "port: 7\n"})
    write_lock(tmp_path, Lock(profiles={"b200": older}))
    monkeypatch.setattr(profile_lock, "locked_profiles", lambda _: {})  # as it was when the run looked
    assert lock_profiles(tmp_path, [HostSettings.model_validate({"profile": "b200"})]) == []
    assert load_lock(tmp_path).profiles == {"b200": older}


def test_a_folder_that_cannot_be_written_is_a_warning(site: Write, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = HostSettings.model_validate({"profile": "b200"})
    (warning,) = lock_profiles(tmp_path / "file", [settings])
    refusal(warning, "RW0921", "b200")


# -- an upgrade, and `pin`


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let registry and hub answer with one digest for every image."""
    monkeypatch.setattr(Resolver, "lock", lambda _, settings: Lock({settings.image: DIGEST}))


def test_an_upgrade_changes_no_byte_on_a_host_before_pin(
    site: Write, upgrade: Callable[[str, str, str], None], registry: None, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = site({"group_vars/all.yml": "profile: b200\nengine: {max_num_tokens: 4096}\n"})
    lock_profiles(Path.cwd(), [first(inventory).settings])
    assert main(["pin", str(inventory)]) == 0
    before, digests = served(inventory), load_lock(Path.cwd()).images
    assert main(["check", str(inventory)]) == 0
    assert "ships other settings" not in capsys.readouterr().out

    upgrade("b200.yml", "max_batch_size: 10", "max_batch_size: 16")
    upgrade("b200.yml", "release:1.1.0rc0", "release:1.1.0rc0-dgx")
    assert served(inventory) == before
    assert main(["check", str(inventory)]) == 0
    out = capsys.readouterr().out
    assert "engine.max_batch_size: 10 -> 16" in out
    assert f"rackwright pin {inventory}" in out
    assert main(["check", str(inventory), "--json"]) == 0
    assert any("engine.max_batch_size" in text for text in json.loads(capsys.readouterr().out)["warnings"])

    assert main(["pin", str(inventory)]) == 0
    out = capsys.readouterr().out
    assert "  engine.max_batch_size: 10 -> 16\n" in out
    assert "release:1.1.0rc0 -> nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0-dgx\n" in out
    assert f"next: rackwright plan {inventory}" in out
    assert served(inventory) != before
    assert first(inventory).settings.engine["max_batch_size"] == 16
    assert first(inventory).settings.engine["max_num_tokens"] == 4096
    pinned_images = load_lock(Path.cwd()).images
    assert pinned_images == {**digests, "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0-dgx": DIGEST}
    assert main(["check", str(inventory)]) == 0
    assert "ships other settings" not in capsys.readouterr().out


def test_a_kept_text_that_this_version_refuses_says_how_to_take_another(
    site: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = f"{catalog.profile('b200').files['b200.yml']}key_of_yesterday: 1\n"
    write_lock(tmp_path, Lock(profiles={"b200": LockedProfile.of({"b200.yml": older})}))
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    assert main(["check", str(inventory)]) == 1
    refusal(capsys.readouterr().err, "RW0210", "profile b200, b200.yml", "key_of_yesterday", "--profiles")
    assert main(["pin", str(inventory), "--profiles"]) == 0
    assert main(["check", str(inventory)]) == 0


def test_without_the_lock_file_an_upgrade_does_change_it(site: Write, upgrade: Callable[[str, str, str], None]) -> None:
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    before = served(inventory)
    upgrade("b200.yml", "max_batch_size: 10", "max_batch_size: 16")
    assert served(inventory) != before


def test_other_comments_wait_for_nothing(
    site: Write, upgrade: Callable[[str, str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    lock_profiles(Path.cwd(), [first(inventory).settings])
    upgrade("b200.yml", "# DGX B200", "# A DGX B200")
    assert main(["check", str(inventory)]) == 0
    assert "profile b200" not in capsys.readouterr().out
    assert main(["pin", str(inventory), "--profiles"]) == 0
    assert load_lock(Path.cwd()).profiles["b200"].sha256 == catalog.profile("b200").sha256


def test_pin_takes_the_profiles_alone_without_a_server(
    site: Write, upgrade: Callable[[str, str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    assert main(["pin", str(inventory), "--profiles"]) == 0
    upgrade("b200.yml", "max_batch_size: 10", "max_batch_size: 16")
    capsys.readouterr()
    assert main(["pin", str(inventory), "--profiles"]) == 0
    assert "engine.max_batch_size: 10 -> 16" in capsys.readouterr().out
    assert first(inventory).settings.engine["max_batch_size"] == 16
    inventory = site({"group_vars/all.yml": "model: {repository: a/b, mount: /m/b}\n"})
    assert main(["pin", str(inventory), "--profiles"]) == 1
    assert "rackwright profiles list" in capsys.readouterr().out


def test_pin_from_hosts_leaves_the_profile_with_which_they_were_proven(
    site: Write, upgrade: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = site({"group_vars/all.yml": "profile: b200\n"})
    lock_profiles(Path.cwd(), [first(inventory).settings])
    before = load_lock(Path.cwd()).profiles
    upgrade("b200.yml", "max_batch_size: 10", "max_batch_size: 16")
    monkeypatch.setattr(pin, "_from_hosts", lambda hosts: [(one.name, Lock({"a/b:1": DIGEST})) for one in hosts])
    assert main(["pin", str(inventory), "--from-hosts"]) == 0
    assert load_lock(Path.cwd()) == Lock({"a/b:1": DIGEST}, profiles=before)


def test_keys_that_come_and_go_are_named() -> None:
    before, after = (
        {"a.yml": "engine: {a: 1, b: 2}\nport: 1\n"},
        {"a.yml": "engine: {a: 1, c: 3}\n", "b.yml": "port: 2\n"},
    )
    assert changed_keys(before, after) == ["engine.c: (none) -> 3", "port: 1 -> 2", "engine.b: 2 -> (none)"]


# -- rackwright profiles


@pytest.mark.parametrize("name", catalog.names())
def test_one_file_says_what_all_files_of_a_profile_say(name: str) -> None:
    files = catalog.profile(name).files
    assert changed_keys(files, {"one.yml": one_file(files)}) == []


def test_list_by_machine_by_gpu_by_columns_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(catalog.names()) <= set(words)
    assert main(["profiles", "list", "--gpu", "RTX PRO 6000", "--columns", "profile,source"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert {row.split()[0] for row in rows} >= {"rtx_pro_6000_vllm", "low_latency"}
    assert "b200" not in {row.split()[0] for row in rows}
    assert main(["profiles", "list", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["h200_vllm"]["files"] == ["h200.yml", "h200_vllm.yml"]
    assert found["h200_vllm"]["source"].startswith("https://")
    assert main(["profiles", "list", "--gpu", "B20"]) == 1
    refusal(capsys.readouterr().err, "RW1001", "B200")


def test_the_list_fits_a_hundred_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["profiles", "list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_show_prints_yaml_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "h200_vllm_eagle3"]) == 0
    out = capsys.readouterr().out
    assert catalog.profile("h200_vllm_eagle3").source in out
    assert load_yaml(out)["draft"]["repository"] == "nvidia/gpt-oss-120b-Eagle3-v3"
    assert main(["profiles", "show", "h200_vlm"]) == 1
    refusal(capsys.readouterr().err, "RW1041", "h200_vllm")


def test_a_copy_is_the_profile_and_is_written_once(site: Write, capsys: pytest.CaptureFixture[str]) -> None:
    inventory = site({"group_vars/all.yml": "profile: h200_vllm_eagle3\n"})
    named = first(inventory).settings.model_dump(exclude={"profile"})
    assert main(["profiles", "add", "h200_vllm_eagle3", "--as", "rack"]) == 0
    Path("group_vars/all.yml").write_text("")
    assert first(inventory).settings.model_dump(exclude={"profile"}) == named
    copy = Path("group_vars/rack.yml").read_text()
    capsys.readouterr()
    assert main(["profiles", "add", "b200", "--as", "rack"]) == 1
    refusal(capsys.readouterr().err, "RW1051", "rack.yml")
    assert Path("group_vars/rack.yml").read_text() == copy


@pytest.mark.parametrize("other", ["rack", "rack.yaml", "rack.json"])
def test_a_copy_is_not_written_beside_another_file_of_the_group(
    site: Write, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site({f"group_vars/{other}": "{}"})
    assert main(["profiles", "add", "b200", "--as", "rack"]) == 1
    refusal(capsys.readouterr().err, "RW1051", other)


@pytest.mark.parametrize("group", ["../x", "a/b", "_x", ""])
def test_a_copy_is_for_a_group_that_can_be(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profiles", "add", "b200", "--as", group])
    refusal(capsys.readouterr().err, "RW1024")


def test_a_copy_is_what_the_lock_file_has(site: Write, tmp_path: Path) -> None:
    write_lock(tmp_path, Lock(profiles={"b200": LockedProfile.of({"b200.yml": "port: 7\n"})}))
    site({})
    assert main(["profiles", "add", "b200"]) == 0
    assert (tmp_path / "group_vars" / "b200.yml").read_text() == "port: 7\n"


def test_a_misspelt_file_is_still_found_beside_a_named_profile(site: Write) -> None:
    with refused("RW0219", "group_vars/rakc.yml", error=SettingsError):
        load_inventory(site({"group_vars/all.yml": "profile: b200\n", "group_vars/rakc.yml": "port: 1\n"}))
