"""The site's file of the gateway's keys: what is in it, what is refused, and what an edit leaves alone."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.concerns.gateway.key_maps import key_maps, map_file
from rackwright.loading import gateway_keys
from rackwright.loading.gateway_keys import change_keys, load_keys, parse_keys
from rackwright.loading.key_file_text import edits
from rackwright.messages import SettingsError
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_keys import CLIENT, GatewayKey, GatewayKeys, new_key, sha256_of

NOW = datetime(2026, 11, 27, 6, tzinfo=UTC)
A, B = "a" * 64, "b" * 64
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(
    lambda when: when.replace(microsecond=0)
)
ONE = st.builds(
    GatewayKey,
    name=st.from_regex(CLIENT, fullmatch=True).filter(lambda name: not name.endswith("\n")),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    created=TIMES,
    expires=TIMES,
    models=st.none()
    | st.lists(st.sampled_from(["gpt-oss-120b", "1e3", "no", "a.b+c"]), min_size=1, max_size=3).map(tuple),
    requests_per_minute=st.none() | st.integers(0, 1000),
    requests_in_flight=st.none() | st.integers(0, 1000),
)
KEYS = st.lists(ONE, max_size=5, unique_by=lambda key: key.sha256).map(lambda keys: GatewayKeys(keys=tuple(keys)))


def key(name: str = "alice", sha256: str = A, **more: object) -> GatewayKey:
    return GatewayKey.model_validate({"name": name, "sha256": sha256, "created": NOW, **more})


def by_hash(keys: GatewayKeys) -> dict[str, GatewayKey]:
    return {one.sha256: one for one in keys.keys}


@settings(max_examples=150, deadline=None)
@given(before=KEYS, more=KEYS, gone=st.sets(st.integers(0, 4)), ends=st.none() | TIMES, comment=st.booleans())
def test_any_change_is_what_the_file_says_then(
    before: GatewayKeys, more: GatewayKeys, gone: set[int], ends: datetime | None, comment: bool
) -> None:
    (text,) = list(edits("", GatewayKeys(), before))[-1:]
    if comment:
        text = text.replace("- name", "# of a team\n- name") + "# the end\n"
    remaining = [one for n, one in enumerate(before.keys) if n not in gone]
    changed = [one.model_copy(update={"expires": ends}) if n % 2 else one for n, one in enumerate(remaining)]
    hashes = {one.sha256 for one in before.keys}
    new = [one for one in more.keys if one.sha256 not in hashes]
    after = GatewayKeys(keys=(*changed, *new))
    first = next(edits(text, parse_keys(text, "f"), after))
    # Several lasting keys of a client are refused when the file is read, and so is not what this is about.
    lasting = [one.name for one in after.keys if one.expires is None]
    if len(set(lasting)) == len(lasting):
        assert by_hash(parse_keys(first, "f")) == by_hash(after)
    assert first.count("#") == text.count("#")


def test_comments_blank_lines_and_other_keys_stay(tmp_path: Path) -> None:
    path = tmp_path / "keys.yml"
    path.write_text(
        f"# team A\nkeys:\n\n  - name: alice  # by ticket 7\n    sha256: {A}\n    created: 2026-01-02\n\n  # Bob's\n"
        f'  - sha256: "{B}"\n    name: bob\n    created: 2026-01-02T03:04:05+01:00\n# end\n'
    )
    change_keys(path, lambda keys: GatewayKeys(keys=(*keys.keys, key("carol", "c" * 64))))
    change_keys(path, lambda keys: keys.without({A}))
    text = path.read_text()
    assert text.startswith("# team A\nkeys:\n\n\n  # Bob's\n")
    assert [one.name for one in load_keys(path).keys] == ["bob", "carol"]
    assert "# end\n  - name" in text


@pytest.mark.parametrize(
    "text",
    [f"keys: [{{name: alice, sha256: {A}, created: 2026-01-01}}]\n", "keys: []  # none yet\n", "keys:\n", "", "# x"],
)
def test_any_form_of_the_list_takes_a_key(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.yml"
    path.write_text(text)
    before, after = change_keys(path, lambda keys: GatewayKeys(keys=(*keys.keys, key("carol", "c" * 64))))
    assert load_keys(path) == after
    change_keys(path, lambda _: before)
    assert load_keys(path) == before
    change_keys(path, lambda _: GatewayKeys())
    assert load_keys(path) == GatewayKeys()


@pytest.mark.parametrize(
    ("text", "line_number", "named"),
    [
        (f"keys:\n- name: Alice\n  sha256: {A}\n  created: 2026-01-01\n", 2, "keys[0].name"),
        ("keys:\n- name: alice\n  sha256: abc\n  created: 2026-01-01\n", 3, "keys[0].sha256"),
        (f"keys:\n- name: alice\n  sha256: {A}\n  made: 2026-01-01\n", 4, "keys[0].made"),
        (f"keys:\n- name: a\n  sha256: {A}\n  created: 2026-01-01\n  models: [a b]\n", 5, "keys[0].models"),
        ("keys:\n- name: alice\n  name: bob\n", 3, "keys[0].name"),
        ("keys: [\n", 2, "YAML"),
        ("other: 1\n", 1, "other"),
        ("- name: alice\n", 1, "mapping"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, text: str, line_number: int, named: str) -> None:
    path = tmp_path / "keys.yml"
    path.write_text(text)
    with pytest.raises(SettingsError) as error:
        change_keys(path, lambda keys: keys)
    assert error.value.code == "RW0236"
    assert f"{path}:{line_number}: " in str(error.value)
    assert named in str(error.value)
    assert path.read_text() == text


def test_one_key_twice_and_two_lasting_keys_of_a_client_are_refused() -> None:
    item = "- name: {}\n  sha256: {}\n  created: 2026-01-01\n"
    for second in (item.format("bob", A), item.format("alice", B)):
        with pytest.raises(SettingsError) as error:
            parse_keys("keys:\n" + item.format("alice", A) + second, "f.yml")
        assert error.value.code == "RW0236"
    parse_keys("keys:\n" + item.format("alice", A) + item.format("alice", B) + "  expires: 2026-02-01\n", "f.yml")


@pytest.mark.parametrize("written", ["rk-" + "z" * 43, "of-another-gateway", "A" * 64])
def test_a_key_in_the_place_of_its_hash_is_not_shown(tmp_path: Path, written: str) -> None:
    path = tmp_path / "keys.yml"
    path.write_text(f"keys:\n- name: alice\n  sha256: {written}\n  created: 2026-01-01\n")
    with pytest.raises(SettingsError) as error:
        load_keys(path)
    assert written not in str(error.value)


def test_what_is_no_file_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.yml").mkdir()
    (tmp_path / "bytes.yml").write_bytes(b"keys: \xff\n")
    (tmp_path / "link.yml").symlink_to("nowhere.yml")
    for name in ("folder.yml", "bytes.yml", "link.yml"):
        with pytest.raises(SettingsError) as error:
            load_keys(tmp_path / name)
        assert error.value.code == "RW0236"
    assert load_keys(tmp_path / "none.yml") == GatewayKeys()


def rows(count: int) -> str:
    """Return a file of so many keys."""
    return "keys:\n" + "".join(f"- {{name: c{n}, sha256: a{n:063x}, created: 2026-01-01}}\n" for n in range(count))


def test_three_thousand_clients_are_not_too_many(tmp_path: Path) -> None:
    path = tmp_path / "keys.yml"
    path.write_text(rows(3000))
    assert len(load_keys(path).keys) == 3000


def test_more_keys_than_a_file_may_have_are_refused_before_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_keys, "MOST_VALUES", 12)
    path = tmp_path / "keys.yml"
    change_keys(path, lambda keys: GatewayKeys(keys=(key("alice", A),)))
    text = path.read_text()
    with pytest.raises(SettingsError) as error:
        change_keys(path, lambda keys: GatewayKeys(keys=(*keys.keys, key("bob", B))))
    assert (error.value.code, path.read_text()) == ("RW0236", text)


@pytest.mark.parametrize("first", [b"", b"\xef\xbb\xbf"])
def test_an_editor_of_another_system_may_have_written_it(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "keys.yml"
    path.write_bytes(first + f"# ours\r\nkeys:\r\n- name: alice\r\n  sha256: {A}\r\n  created: 2026-01-01\r\n".encode())
    before = path.read_bytes()
    change_keys(path, lambda keys: GatewayKeys(keys=(*keys.keys, key("bob", B))))
    after = path.read_bytes()
    assert (after.startswith(before), after.count(b"\n"), after.count(b"\r\n")) == (True, 8, 8)
    assert [one.name for one in load_keys(path).keys] == ["alice", "bob"]


def test_mode_and_link_of_the_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yml", tmp_path / "keys.yml"
    real.write_text("keys: []\n")
    real.chmod(0o640)
    link.symlink_to("real.yml")
    change_keys(link, lambda _: GatewayKeys(keys=(key(),)))
    assert (link.is_symlink(), real.stat().st_mode & 0o777, len(load_keys(real).keys)) == (True, 0o640, 1)


def _add_some(path: Path, first: int) -> None:
    for n in range(first, first + 10):
        more = key(f"c{n}", f"{n:064x}")
        change_keys(path, lambda keys, more=more: GatewayKeys(keys=(*keys.keys, more)))  # type: ignore[misc]


def test_two_people_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.yml"
    several = [multiprocessing.get_context("fork").Process(target=_add_some, args=(path, n)) for n in (0, 100, 200)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert len(load_keys(path).keys) == 30


def test_a_key_has_256_random_bits_and_one_form() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {(one[:3], len(one)) for one in keys} == {("rk-", 46)}
    assert len(sha256_of(keys.pop())) == 64


# -- maps


def test_maps_leave_out_what_has_expired_or_was_revoked() -> None:
    keys = GatewayKeys(
        keys=(
            key("alice", A, expires=NOW + timedelta(seconds=1)),
            key("alice", "c" * 64, requests_per_minute=0, models=("m",)),
            key("bob", B, expires=NOW),
            key("carol", "d" * 64, requests_in_flight=3),
        )
    )
    found = key_maps(Gateway(requests_per_minute=60), keys, NOW, revoked=["d" * 64])
    assert found == {
        map_file("keys"): f"{A} alice\n{'c' * 64} alice\n",
        map_file("expiries"): f"{A} {int(NOW.timestamp()) + 1}\n",
        map_file("limits"): "",
        map_file("inflight"): "",
        map_file("models"): "alice some\nalice/m yes\n",
    }
    assert key_maps(Gateway(requests_per_minute=60), keys, NOW)[map_file("limits")] == "carol 60\n"
