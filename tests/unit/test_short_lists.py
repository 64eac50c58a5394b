"""Short package lists name what lab hosts install, whole entries, and everything that those need."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rackwright_lab.hosts.short_lists import WANTED, kept_of, name_of, shortened, stanzas

NAMES = st.sampled_from(["a", "b", "c", "d", "libx1", "docker.io", "g++"])
ENTRIES = st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=8)


def entry(name: str, needs: list[str]) -> str:
    depends = ", ".join(f"{one} (>= 1.0) | other" for one in needs)
    return f"Package: {name}\nVersion: 1.2\nDepends: {depends}\nDescription: {name} itself"


@given(entries=ENTRIES, installed=st.sets(NAMES))
def test_what_stays_has_all_that_it_needs(entries: list[tuple[str, list[str]]], installed: set[str]) -> None:
    lists = {"one_Packages": "\n\n".join(entry(*one) for one in entries) + "\n"}
    kept = kept_of(lists, installed)
    assert kept >= {*WANTED, *installed}
    for name, needs in entries:
        assert name not in kept or set(needs) <= kept
    text = shortened(lists, kept)["one_Packages"]
    assert list(stanzas(text)) == [entry(*one) for one in entries if one[0] in kept]


def test_who_provides_a_name_stays_and_the_others_go() -> None:
    mail = "Package: exim4\nProvides: mail-transport-agent (= 4), exim\nPre-Depends: libc6\nDescription: mail"
    lists = {"x_Packages": f"{entry('jq', ['mail-transport-agent'])}\n\n{mail}\n\n{entry('games', [])}\n"}
    kept = kept_of(lists, ())
    assert {"exim4", "libc6"} <= kept
    assert "games" not in kept
    assert [name_of(one) for one in stanzas(shortened(lists, kept)["x_Packages"])] == ["jq", "exim4"]
