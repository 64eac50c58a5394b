"""One YAML file: values, lines, vault values that stay encrypted, and what is refused."""

from __future__ import annotations

from rackwright.loading.yaml_file import Ciphertext, parse
from rackwright.settings.origin import Origin

TEXT = """\
image: a:1
engine:
  kv_cache_config:
    enable_block_reuse: false
allow_from:
  - 10.0.0.0/8
hub_token: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  6162
name: !unsafe "{{ kept }}"
"""


def test_every_key_knows_its_line() -> None:
    document = parse(TEXT, "group_vars/all.yml")
    lines = {path: origin.line_number for path, origin in document.origins.items()}
    assert document.problems == ()
    assert lines == {
        ("image",): 1,
        ("engine",): 2,
        ("engine", "kv_cache_config"): 3,
        ("engine", "kv_cache_config", "enable_block_reuse"): 4,
        ("allow_from",): 5,
        ("allow_from", 0): 6,
        ("hub_token",): 7,
        ("name",): 10,
    }


def test_vault_values_stay_encrypted_and_unsafe_text_is_text() -> None:
    values = parse(TEXT, "f").values
    assert values["hub_token"] == Ciphertext("$ANSIBLE_VAULT;1.1;AES256\n6162", Origin("f", 7))
    assert values["name"] == "{{ kept }}"


def test_a_key_that_comes_twice_is_a_problem_at_any_depth_text() -> None:
    found = parse("a: 1\nengine:\n  b: 1\n  b: 2\na: 3\n", "f").problems
    texts = [(str(problem.where), problem.path, problem.text) for problem in found]
    assert texts == [
        ("f:4", ("engine", "b"), "comes twice; the first is on line 3"),
        ("f:5", ("a",), "comes twice; the first is on line 1"),
    ]


def test_merge_keys_are_not_duplicates() -> None:
    document = parse("base: &b {x: 1}\nengine:\n  <<: *b\n  x: 2\n", "f")
    assert document.problems == ()
    assert document.values["engine"] == {"x": 2}


def test_an_alias_to_itself_ends() -> None:
    (problem,) = parse("engine: &a\n  b: *a\n", "f").problems
    assert (str(problem.where), "an alias " in problem.text) == ("f:1", True)


def test_text_that_is_no_yaml_says_the_line() -> None:
    (problem,) = parse("a: 1\nb: [1, 2\nc: 3\n", "f").problems
    assert (str(problem.where), problem.text) == ("f:3", "not valid YAML: expected ',' or ']', but got ':'")


def test_a_tag_that_ansible_does_not_know_is_a_problem() -> None:
    (problem,) = parse("a: !!python/object:os.system x\n", "f").problems
    assert "constructor" in problem.text


def test_a_list_is_no_settings_file_and_an_empty_file_is() -> None:
    (problem,) = parse("- a\n", "f").problems
    assert "`key: value`" in problem.text
    assert parse("# nothing\n", "f").values == {}


def test_keys_must_be_text() -> None:
    document = parse("1: a\nb: c\n", "f")
    assert [problem.text for problem in document.problems] == ["a key must be text: put it in quotes"]
    assert document.values == {"b": "c"}
