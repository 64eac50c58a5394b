"""Short package lists name what lab hosts install, whole entries, and what those need; large packages are stored."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rackwright_lab.hosts.plain_packages import LEAST, store
from rackwright_lab.hosts.short_lists import WANTED, kept_of, name_of, shortened, stanzas

NAMES = st.sampled_from(["a", "b", "c", "d", "libx1", "docker.io", "g++"])
ENTRIES = st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=8)


def entry(name: str, needs: list[str]) -> str:
    depends = ", ".join(f"{one} (>= 1.0) | other" for one in needs)
    return f"Package: {name}\nVersion: 1.2\nDepends: {depends}\nDescription: {name} itself"


@given(entries=ENTRIES, installed=st.sets(NAMES))
def test_what_stays_has_all_that_it_needs(entries: list[tuple[str, list[str]]], installed: set[str]) -> None:
    lists = {"one_Packages": "\n\n".join(entry(*one) for one in entries) + "\n"}
    remaining = kept_of(lists, installed)
    assert remaining >= {*WANTED, *installed}
    for name, needs in entries:
        assert name not in remaining or set(needs) <= remaining
    text = shortened(lists, remaining, {})["one_Packages"]
    assert list(stanzas(text)) == [entry(*one) for one in entries if one[0] in remaining]


def test_who_provides_a_name_stays_and_the_others_go() -> None:
    mail = "Package: exim4\nProvides: mail-transport-agent (= 4), exim\nPre-Depends: libc6\nDescription: mail"
    lists = {"x_Packages": f"{entry('jq', ['mail-transport-agent'])}\n\n{mail}\n\n{entry('games', [])}\n"}
    remaining = kept_of(lists, ())
    assert {"exim4", "libc6"} <= remaining
    assert "games" not in remaining
    assert [name_of(one) for one in stanzas(shortened(lists, remaining, {})["x_Packages"])] == ["jq", "exim4"]


VARIES = re.compile(r"size| \./$")
"""Lines with a size, and that of the topmost folder, which is made again, maybe in the next minute."""


def test_a_stored_package_has_its_own_size_and_hash_in_each_list() -> None:
    listed = (
        "Package: docker.io\nArchitecture: amd64\nVersion: 1:20.10+b6\nSize: 9\nMD5sum: aa\nSHA256: bb\nDescription: d"
    )
    other = listed.replace("1:20.10+b6", "1:20.11")
    sums = {"docker.io_1%3a20.10+b6_amd64.deb": "Size: 70\nSHA256: cc"}
    found = shortened({"a": f"{listed}\n\n{other}\n\n", "b": f"{listed}\n\n"}, {"docker.io"}, sums)
    mine = "Package: docker.io\nArchitecture: amd64\nVersion: 1:20.10+b6\nDescription: d\nSize: 70\nSHA256: cc"
    assert list(stanzas(found["a"])) == [mine, other]
    assert list(stanzas(found["b"])) == [mine]


def test_a_stored_package_has_the_files_and_scripts_of_the_compressed_one(tmp_path: Path) -> None:
    tree, archive, stored = tmp_path / "tree", tmp_path / "archive", tmp_path / "stored"
    (tree / "DEBIAN").mkdir(parents=True)
    archive.mkdir()
    (tree / "DEBIAN/control").write_text(
        "Package: big\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: b\n"
    )
    (tree / "DEBIAN/postinst").write_text("#!/bin/sh\n")
    (tree / "DEBIAN/postinst").chmod(0o755)
    (tree / "tool").write_bytes(random.Random(1).randbytes(2 * LEAST))
    (tree / "tool").chmod(0o4755)
    small = tmp_path / "small"
    shutil.copytree(tree, small)
    (small / "tool").write_text("x")
    for source, name in ((tree, "big_1_all.deb"), (small, "small_1_all.deb")):
        subprocess.run(["dpkg-deb", "-Zxz", "--root-owner-group", "--build", source, archive / name], check=True)
    sums = store(archive, stored)
    assert sorted(path.name for path in stored.iterdir()) == list(sums) == ["big_1_all.deb"]
    assert f"Size: {(stored / 'big_1_all.deb').stat().st_size}\n" in sums["big_1_all.deb"]
    for shown in ("--contents", "--info"):
        compressed, plain = (
            subprocess.run(
                ["dpkg-deb", shown, folder / "big_1_all.deb"], check=True, capture_output=True, text=True
            ).stdout.splitlines()
            for folder in (archive, stored)
        )
        first, second = ([shown for shown in lines if not VARIES.search(shown)] for lines in (compressed, plain))
        assert first == second
