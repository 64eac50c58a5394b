"""`scripts/engine-news` on two made-up releases: what is gone, renamed, moved, changed and new, and whose it is."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rackwright.profiles import catalog
from rackwright_engines.data import PRODUCTS
from rackwright_engines.options.schema import Key, VersionLine, line_for, line_of
from scripts.engine_data import metrics, source
from scripts.engine_news import command
from scripts.engine_news.changes import Change, State, option_changes
from scripts.engine_news.grounds import Ground, Kind, grounds
from scripts.engine_news.judge import Found, has_option, judge
from scripts.engine_news.news import DONE, FAILED, NEWS, News, news
from scripts.engine_news.profiles import profile_news, settings_of
from scripts.engine_news.release import Release, given_release, known_release, read_release
from scripts.engine_news.tree import SourceTree, guards
from tests.unit.test_engine_from_source import SOURCE
from tests.unit.test_engine_schema_files import schema

ENGINES = ("vllm", "sglang", "tensorrt-llm")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "newest-releases.md"
MAKES_PAGE = "scripts/engine-news --since vllm=0.32.0 --since sglang=0.5.22 --page docs/reference/newest-releases.md"
ARGS = """
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        kwargs = get_kwargs(ModelConfig)
{options}

class SpeculativeConfig:
    pass
"""
OPTIONS = {
    "max-num-seqs": "max_num_seqs: int = 128",
    "swap-space": "swap_space: int = 4",
    "old-name": "old_name: float = 0.5",
    "level": 'level: Literal["low", "high"] = "low"',
    "tokens": "tokens: int = 1",
}
NEW_OPTIONS = {
    "max-num-seqs": "max_num_seqs: int = 256",
    "old-names": "old_names: float = 0.5",
    "level": 'level: Literal["low", "highest"] = "low"',
    "tokens": "tokens: str = 'many'",
    "brand-new": "brand_new: bool = False",
}
CONFIG = """
@config
class ModelConfig:
    {fields}

    def check(self):
        {check}
"""
CHECK = 'if self.tokens < self.max_num_seqs:\n            raise ValueError("no")'
NEW_CHECK = 'if self.tokens < 2 * self.max_num_seqs:\n            raise ValueError("no")'
LOGGERS = """
class Loggers:
    def __init__(self):
        self.one = self._counter_cls(name="vllm:generation_tokens")
        self.two = self._gauge_cls(name="vllm:{gauge}")
"""
CLI = """
class FrontendArgs:
    host: str | None = None

def load_config_file(path):
    return "--no-"

PATHS = ["/health", "/metrics", "/v1/completions"]
"""


def vllm(options: dict[str, str], check: str = CHECK, gauge: str = "running", config: str = "model") -> dict[str, str]:
    """Return the files of a made-up release of vLLM."""
    added = "\n".join(
        f'        parser.add_argument("--{name}", **kwargs["{name.replace("-", "_")}"])' for name in options
    )
    return {
        "vllm/engine/arg_utils.py": ARGS.format(options=added),
        f"vllm/config/{config}.py": CONFIG.format(fields="\n    ".join(options.values()), check=check),
        "vllm/v1/metrics/loggers.py": LOGGERS.format(gauge=gauge),
        "vllm/entrypoints/openai/cli_args.py": CLI,
    }


def tar_of(version: str, files: dict[str, str], folder: Path) -> Path:
    path = folder / f"vllm-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"vllm-{version}/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def release(version: str, files: dict[str, str], folder: Path) -> Release:
    engine, named, sources = source.sources_of_file(tar_of(version, files, folder), folder / "cache")
    return read_release(engine, named, sources)


@pytest.fixture
def old(tmp_path: Path) -> Release:
    return release("9.8.0", vllm(OPTIONS), tmp_path)


def changes(old: Release, new: Release) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for one in option_changes(old.schema, new.schema):
        found.setdefault(one.name, []).append(one)
    return found


def judged(ground: Ground, old: Release, new: Release) -> list[Found]:
    return list(judge(ground, old, new, changes(old, new)))


def test_options_are_gone_renamed_changed_and_new(old: Release, tmp_path: Path) -> None:
    found = changes(old, release("9.9.0", vllm(NEW_OPTIONS), tmp_path))
    assert {name: [(one.state, one.text) for one in several] for name, several in found.items()} == {
        "max-num-seqs": [(State.DEFAULT, "128, now 256")],
        "swap-space": [(State.GONE, "")],
        "old-name": [(State.RENAMED, "perhaps old-names now")],
        "level": [(State.VALUES, "no high; more: highest")],
        "tokens": [(State.TYPE, "was int, is str"), (State.DEFAULT, "1, now many")],
        "brand-new": [(State.NEW, "bool")],
    }


def test_an_alias_says_the_new_name_whatever_it_is_like() -> None:
    def schema_of(keys: dict[str, Any]) -> Any:
        return line_of("sglang", "9.9.9", {"versions": ["9.9.9"], "sections": {"Server": keys}})

    new = schema_of({"attention-data-parallel-size": {"type": "int", "names": ["--dp"]}, "dpp": {"type": "int"}})
    (found, more) = option_changes(schema_of({"dp": {"type": "int"}}), new)
    assert (found.state, found.text) == (State.RENAMED, "perhaps attention-data-parallel-size now")
    assert (more.name, more.state) == ("dpp", State.NEW)


def test_tensorrt_llm_s_classes_leave_defaults_to_its_validators() -> None:
    def schema_of(default: Any) -> Any:
        raw = {"versions": ["9"], "sections": {"TorchLlmArgs": {"size": {"type": "int?", "default": default}}}}
        return line_of("tensorrt-llm", "9.9.9", raw)

    assert option_changes(schema_of(8), schema_of(None)) == []
    assert [one.text for one in option_changes(schema_of(8), schema_of(9))] == ["8, now 9"]


def test_a_release_that_changes_nothing_has_no_news(old: Release, tmp_path: Path) -> None:
    assert option_changes(old.schema, release("9.9.0", vllm(OPTIONS), tmp_path).schema) == []


RULE = Ground("rule tokens", Kind.CHECK, ("vllm/config/model.py", "ModelConfig.check"), ("tokens", "max-num-seqs"))


def test_a_rule_s_check_is_compared_by_its_conditions(old: Release, tmp_path: Path) -> None:
    (found,) = judged(RULE, old, release("9.9.0", vllm(OPTIONS, NEW_CHECK), tmp_path))
    assert (found.change.state, found.change.text) == (State.CHANGED, "1 condition less, 1 more")
    assert [*found.old, *found.new] == ["(self.tokens < self.max_num_seqs)", "(self.tokens < 2 * self.max_num_seqs)"]


@pytest.mark.parametrize(
    "check",
    [CHECK.replace('"no"', '"in other words"'), f'"""Say."""\n        {CHECK}', f"x = self.level\n        {CHECK}"],
)
def test_other_code_around_a_condition_is_no_news(old: Release, tmp_path: Path, check: str) -> None:
    assert judged(RULE, old, release("9.9.0", vllm(OPTIONS, check), tmp_path)) == []


def test_a_condition_counts_with_the_ones_around_it() -> None:
    code = """
def check(self):
    if self.elastic:
        if self.stages > 1:
            raise ValueError("stages")
        elif self.hybrid:
            raise ValueError("hybrid")
        assert self.balanced, "not balanced"
    raise ValueError("elsewhere")
"""
    hybrid = " and ".join(("(self.elastic)", "not (self.stages > 1)", "(self.hybrid)"))
    others = {"(self.elastic) and (self.stages > 1)", "(self.elastic) and self.balanced"}
    assert guards(ast.parse(code), ["elastic"]) == {hybrid, *others}
    assert guards(ast.parse(code), ["hybrid"]) == {hybrid}


def test_a_check_that_has_moved_is_found_again(old: Release, tmp_path: Path) -> None:
    (found,) = judged(RULE, old, release("9.9.0", vllm(OPTIONS, config="other"), tmp_path))
    assert (found.change.state, found.change.text) == (State.MOVED, "to vllm/config/other.py")
    unknown = Ground("rule", Kind.CHECK, ("vllm/config/model.py", "ModelConfig.no_such"), ("tokens",))
    assert [one.change.state for one in judged(unknown, old, old)] == [State.GONE]


def test_code_without_a_condition_on_the_option_is_compared_whole(old: Release, tmp_path: Path) -> None:
    ground = Ground("rule", Kind.CHECK, ("vllm/config/model.py", "ModelConfig.check"), ("unrelated",))
    assert judged(ground, old, release("9.9.0", vllm(OPTIONS), tmp_path)) == []
    (found,) = judged(ground, old, release("9.9.1", vllm(OPTIONS, NEW_CHECK), tmp_path))
    assert found.change.state is State.CHANGED


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("vllm:running",), [(State.GONE, "")]),
        (("vllm:never",), [(State.GONE, "the release before lacks it as well")]),
        (("vllm:generation_tokens_total",), []),
        (("vllm:waiting", "vllm:running"), []),
        (("vllm:running", "vllm:waiting"), [(State.GONE, "vllm:waiting is read in its place")]),
    ],
)
def test_metrics_are_looked_up_by_the_names_of_their_series(
    old: Release, tmp_path: Path, names: tuple[str, ...], found: list[tuple[State, str]]
) -> None:
    new = release("9.9.0", vllm(OPTIONS, gauge="waiting"), tmp_path)
    states = [(one.change.state, one.change.text) for one in judged(Ground("top", Kind.METRIC, names), old, new)]
    assert states == found


@pytest.mark.parametrize(
    ("kind", "names", "gone"),
    [
        (Kind.WORD, ("/v1/completions",), False),
        (Kind.WORD, ("/v1/other", "/health"), False),
        (Kind.WORD, ("/v1/other",), True),
        (Kind.MODULE, ("vllm.engine.arg_utils:EngineArgs",), False),
        (Kind.MODULE, ("vllm.entrypoints.openai.cli_args:other", "vllm.config.model:ModelConfig"), False),
        (Kind.MODULE, ("vllm.engine.other:EngineArgs",), True),
        (Kind.LOG, ("vllm.entrypoints.utils",), True),
        (Kind.OPTION, ("swap-space",), False),
        (Kind.OPTION, ("no-such",), True),
    ],
)
def test_what_is_gone_is_said_of_whatever_rests_on_it(
    old: Release, kind: Kind, names: tuple[str, ...], gone: bool
) -> None:
    assert [one.change.state for one in judged(Ground("row", kind, names), old, old)] == [State.GONE] * gone


def test_a_class_that_has_moved_is_named_with_its_file(old: Release) -> None:
    (found,) = judged(Ground("row", Kind.MODULE, ("vllm.engine.other:EngineArgs",)), old, old)
    assert found.change.text == "EngineArgs is in vllm/engine/arg_utils.py"


def test_data_of_old_releases_count_only_where_the_release_before_has_them(old: Release, tmp_path: Path) -> None:
    new = release("9.9.0", vllm(NEW_OPTIONS), tmp_path)
    for name, states in (("swap-space", [State.GONE]), ("gone-long-ago", [])):
        ground = Ground("keys.yaml", Kind.OPTION, (name,), history=True)
        assert [one.change.state for one in judged(ground, old, new)] == states


# -- what the product really rests on


@pytest.mark.parametrize("engine", ENGINES)
def test_each_kind_of_ground_is_read_from_the_product(engine: str) -> None:
    version = command.newest_known(engine)
    every = grounds(engine, version)
    kinds = {one.kind for one in every}
    assert len(every) > 40
    assert kinds >= {Kind.OPTION, Kind.METRIC, Kind.WORD, Kind.MODULE, Kind.CHECK}

    assert all(one.names and all(one.names) for one in every if one.kind is not Kind.CHECK)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_data_have_every_option_and_metric_that_the_product_rests_on(engine: str) -> None:
    old = known_release(engine, command.newest_known(engine), None)
    assert [found for one in grounds(engine, old.version) for found in judge(one, old, old, {})] == []


def test_rules_name_the_options_that_they_compare_with() -> None:
    named = {one.names[0] for one in grounds("vllm", "0.33.0") if one.owner == "rule tokens_below_sequences"}
    assert {"max-num-batched-tokens", "max-num-seqs"} <= named
    assert has_option(line_for("vllm", "0.33.0")[0], "speculative-config.method")
    assert not has_option(line_for("vllm", "0.33.0")[0], "speculative-config.no_such")


def test_a_metric_that_became_another_kind_has_both(tmp_path: Path) -> None:
    files = vllm(OPTIONS)
    release("9.8.0", files, tmp_path)
    loggers = "vllm/v1/metrics/loggers.py"
    release("9.9.0", {**files, loggers: files[loggers].replace("_gauge_cls", "_histogram_cls")}, tmp_path)
    assert metrics.names("vllm", ["9.9.0", "9.8.0"], tmp_path / "cache") == {
        "vllm:generation_tokens": {"kind": "counter", "since": "9.8.0"},
        "vllm:running": {"kind": "histogram", "since": "9.8.0", "once": "gauge", "turned": "9.9.0"},
    }


# -- profiles


def test_each_profile_is_judged_by_the_new_release() -> None:
    old = known_release("vllm", "0.32.0", None)
    newest = line_for("vllm", "0.33.0")[0]
    keys = dict(newest.sections[newest.root])
    del keys["stream-interval"]
    keys["seed"] = Key("seed", "int", default=7)
    new = Release("vllm", "9.9.9", _with(newest, keys), None)
    by_name = {one.name: one for one in profile_news(old, new)}
    assert {settings_of(name).engine_kind for name in by_name} == {"vllm"}
    texts = "\n".join(by_name["b200_vllm"].lines)
    assert "must change: engine.stream-interval" in texts
    assert "note: engine.seed" in texts
    assert "stream-interval" not in "\n".join(by_name["h200_vllm_llama33_70b"].lines)


def _of_page(engine: str) -> str:
    """Return an engine's part of the page of the newest releases."""
    return PAGE.read_text().partition(f"## {PRODUCTS[engine]}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_profile_has_its_row_in_the_page_of_newest_releases(engine: str) -> None:
    endpoints = {name: next(iter(settings_of(name).all_endpoints.values())) for name in catalog.names()}
    shipped = {(name, one.version) for name, one in endpoints.items() if one.engine_kind == engine}
    text = _of_page(engine)
    expected = set[tuple[str, str]]() if "nothing of it was read" in text else shipped
    assert set(re.findall(r"^\| `(\w+)` \| (\S+) \|", text, re.MULTILINE)) == expected, f"next: {MAKES_PAGE}"


def test_what_both_releases_refuse_is_no_news_in_other_words() -> None:
    newest = line_for("vllm", "0.33.0")[0]
    keys = newest.sections[newest.root]
    key = replace(keys["kv-cache-dtype"], more=False)
    both = [
        Release("vllm", version, _with(newest, {**keys, key.name: replace(key, values=values)}), None)
        for version, values in (("9.9.8", ("auto",)), ("9.9.9", ("auto", "fp7")))
    ]
    by_name = {one.name: one for one in profile_news(*both)}
    assert "kv-cache-dtype" not in "".join(by_name["b200_vllm"].lines)
    assert "kv-cache-dtype" in "".join(by_name["b200_vllm"].to_move)


def _with(line_of_version: VersionLine, keys: dict[str, Key]) -> VersionLine:
    sections = {**line_of_version.sections, line_of_version.root: keys}
    return replace(line_of_version, versions=("9.9.9",), sections=sections)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_changes_for_a_profile_where_no_release_is_new(engine: str) -> None:
    old = known_release(engine, command.newest_known(engine), None)
    found = profile_news(old, old)
    assert len(found) > 2
    assert {one.name: one.lines for one in found if one.lines} == {}


# -- the command


def test_new_metrics_and_paths_are_named(old: Release, tmp_path: Path) -> None:
    files = vllm(OPTIONS, gauge="waiting")
    files["vllm/entrypoints/api.py"] = '@router.post("/v1/new")\ndef new(): ...\napp.add_api_route(\n    "/v2", new)\n'
    found = news(old, release("9.9.0", files, tmp_path))
    assert found.more == {"new metrics": ["vllm:waiting"], "new paths of the server": ["/v1/new", "/v2"]}
    assert not any(news(old, old).more.values())


def test_two_archives_are_compared_without_an_index_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_links", no_index)
    files = [tar_of("9.8.0", vllm(OPTIONS), tmp_path), tar_of("9.9.0", vllm(NEW_OPTIONS), tmp_path)]
    page = tmp_path / "page.md"
    words = [*(f"--from={path}" for path in files), f"--cache={tmp_path / 'cache'}", f"--page={page}"]
    assert command.main(words) == NEWS
    shown = capsys.readouterr().out
    assert "vLLM 9.9.0, beside 9.8.0: the data do not know it yet" in shown
    assert "options: 1 new, 1 gone, 1 renamed, 2 with another default, 2 with other values or types" in shown
    assert "new: brand-new" in shown
    assert "must change: engine.stream-interval" in shown
    assert "| swap-space | gone |" in page.read_text()


TRTLLM_COLLECTOR = """
class MetricsCollector:
    \"\"\"Makes trtllm_num_requests_running, one day.\"\"\"
    def __init__(self, labels):
        self.metric_prefix = "trtllm_"
        self.tokens = Counter(name=self.metric_prefix + "generation_tokens_total", documentation="Of answers.")
        self.first = Histogram(name=self.metric_prefix + "time_to_first_token_seconds")
        self.plain = Gauge("trtllm_plain", "Named in full.")
        self.wait = Gauge(name=named(labels), documentation="By a call.")

    def log(self, stats):
        self._log_counter(self.tokens, stats["num_tokens"])
"""


def test_tensorrt_llm_s_own_schema_is_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trtllm-serve-config.schema.json").write_text(schema())
    found = given_release(tmp_path / "trtllm-serve-config.schema.json", tmp_path)
    assert (found.engine, found.version, found.series, found.tree) == ("tensorrt-llm", "1.9.0rc2", None, None)
    assert has_option(found.schema, "nvfp4_gemm_config")
    assert command.main([f"--from={tmp_path}/trtllm-serve-config.schema.json", f"--cache={tmp_path}"]) == NEWS
    assert "1.9.0rc2" in capsys.readouterr().out


TRTLLM_FILES = {
    "version.py": '__version__ = "9.9.0rc1"',
    "llmapi/llm_args.py": SOURCE,
    "metrics/collector.py": TRTLLM_COLLECTOR,
    "serve/openai_server.py": 'ROUTES = ["/health", "/prometheus/metrics"]',
}


def trtllm_tree(folder: Path, **others: str) -> Path:
    """Write a made-up TensorRT-LLM. others: files by their names without `.py`, in the place of these."""
    for name, text in {**TRTLLM_FILES, **{f"{name}.py": text for name, text in others.items()}}.items():
        (folder / "tensorrt_llm" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "tensorrt_llm" / name).write_text(text)
    return folder


def test_tensorrt_llm_s_tree_is_read_by_its_classes_and_its_collector(tmp_path: Path) -> None:
    found = given_release(trtllm_tree(tmp_path), tmp_path)
    assert (found.version, found.tree is not None) == ("9.9.0rc1", True)
    assert has_option(found.schema, "cache_config.reuse")
    assert found.counts("trtllm_generation_tokens_total")
    assert found.counts("trtllm_time_to_first_token_seconds_sum")
    assert not found.counts("trtllm_num_requests_running")
    assert found.counts("trtllm_plain")
    assert found.series is not None
    assert not [name for name in found.series if "named" in name or "num_tokens" in name]
    states = judged(Ground("metrics", Kind.WORD, ("/prometheus/metrics",)), found, found)
    assert states == []


def test_the_tests_of_a_source_tree_say_nothing_of_its_server(tmp_path: Path) -> None:
    tree = trtllm_tree(tmp_path)
    for name in ("tests/unittest/test_server.py", "tensorrt_llm/_torch/models/server.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text('PATH = "/only/here"')
    found = given_release(tree, tmp_path)
    assert [one.change.state for one in judged(Ground("row", Kind.WORD, ("/only/here",)), found, found)] == [State.GONE]


VALIDATOR = """
class EagleDecodingConfig(DecodingBaseConfig):
    def validate_eagle_config(self):
        if self.use_dynamic_tree and {refused}:
            raise ValueError("no")
"""


def test_a_validator_behind_a_rule_of_tensorrt_llm_is_compared(tmp_path: Path) -> None:
    old, new = (
        given_release(
            trtllm_tree(tmp_path / name, **{"llmapi/llm_args": SOURCE + VALIDATOR.format(refused=refused)}), tmp_path
        )
        for name, refused in (("a", "self.eagle_choices"), ("b", "not self.dynamic_tree_max_topK"))
    )
    new = replace(new, version="9.9.1rc1")
    rows = [one for one in grounds("tensorrt-llm", new.version) if one.owner == "rule dynamic tree"]
    (check,) = [one for one in rows if one.kind is Kind.CHECK]
    assert {one.names[0] for one in rows if one.kind is Kind.OPTION} == set(check.fields)
    assert [(one.change.state, one.change.text) for one in judged(check, old, new)] == [
        (State.CHANGED, "1 condition less, 1 more")
    ]
    assert judged(check, old, replace(old, version=new.version)) == []


# -- a git repository


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; returns what it prints."""
    author = ("-c", "user.name=a", "-c", "user.email=a@x.example", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *author, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with two releases of TensorRT-LLM, and a later commit in its work tree."""
    folder = tmp_path / "TensorRT-LLM"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for version in ("9.9.0rc1", "9.9.0rc2", "9.9.0rc2 # and more"):
        more = SOURCE.replace("lt=9", "lt=99") if version != "9.9.0rc1" else SOURCE
        number, _, comment = version.partition(" ")
        trtllm_tree(folder, version=f'__version__ = "{number}"\n{comment}\n', **{"llmapi/llm_args": more})
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", version)
        if not comment:
            git(folder, "tag", f"v{number}")
    return folder


def test_two_tags_of_a_repository_are_compared_without_a_checkout_text(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_links", no_index)
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
    words = [f"--from={bare}@v9.9.0rc2", f"--from={bare}@v9.9.0rc1", f"--cache={tmp_path / 'cache'}"]
    assert command.main(words) == NEWS
    shown = capsys.readouterr().out
    assert "TensorRT-LLM 9.9.0rc2, beside 9.9.0rc1" in shown
    assert re.search(r"size +values +bounds gt 0, lt 9, now gt 0, lt 99", shown)
    assert sorted(path.name.partition("+")[0] for path in (tmp_path / "cache" / "tensorrt-llm").iterdir()) == [
        "9.9.0rc1",
        "9.9.0rc2",
    ]


def test_a_commit_without_a_tag_is_told_from_a_release(repository: Path, tmp_path: Path) -> None:
    tag, branch = (given_release(Path(f"{repository}@{name}"), tmp_path) for name in ("v9.9.0rc2", "main"))
    commit = git(repository, "rev-parse", "--short=8", "main")
    assert (tag.version, branch.version) == ("9.9.0rc2", f"9.9.0rc2+{commit}")
    assert tag.tree is not None
    assert branch.tree is not None
    assert tag.tree.folder != branch.tree.folder


def test_the_work_tree_s_other_files_are_not_read_at_a_tag(repository: Path, tmp_path: Path) -> None:
    (repository / "tensorrt_llm" / "version.py").write_text("changed")
    (repository / "tensorrt_llm" / "serve" / "more.py").write_text('PATH = "/only/here"')
    found = given_release(Path(f"{repository}@v9.9.0rc1"), tmp_path)
    assert found.tree is not None
    assert (found.version, found.tree.has_text("/only/here")) == ("9.9.0rc1", False)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("TensorRT-LLM@v1.0.0", "has no v1.0.0; next: git -C"),
        ("TensorRT-LLM@--upload-pack=x", "has no --upload-pack=x"),
        ("nowhere@v1.0.0", "is not a folder"),
        ("empty@v1.0.0", "not a git repository"),
        ("empty", "has no tensorrt_llm/version.py; next:"),
        ("other@main", "has no Python files of TensorRT-LLM, vLLM, SGLang"),
        ("vllm@main", "do not say their version; next: a tag"),
    ],
)
def test_a_repository_that_cannot_be_read_is_one_sentence_text(
    name: str, part: str, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for folder, file in (("other", "README.py"), ("vllm", "vllm/engine/arg_utils.py")):
        (tmp_path / folder / file).parent.mkdir(parents=True)
        (tmp_path / folder / file).write_text("")
        git(tmp_path / folder, "init", "--quiet", "--initial-branch=main")
        git(tmp_path / folder, "add", "--all")
        git(tmp_path / folder, "commit", "--quiet", "--message", "x")
    assert command.main([f"--from={tmp_path / name}", f"--cache={tmp_path / 'cache'}"]) == FAILED
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert part in output.err


@pytest.mark.parametrize(("newest", "status"), [("9.9.0rc2", NEWS), ("9.9.0rc3", FAILED)])
def test_the_tags_of_a_repository_stand_for_an_index_without_sources(
    newest: str, status: int, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "tag", f"v{command.newest_known('tensorrt-llm')}", "v9.9.0rc1")
    monkeypatch.setattr(command, "newest", lambda *_: newest)
    monkeypatch.setattr(command, "fetched_tree", lambda *_: None)
    page = tmp_path / "page.md"
    words = ["tensorrt-llm", f"--trtllm={repository}", f"--page={page}", f"--cache={tmp_path / 'cache'}"]
    assert command.main(words) == status
    assert ("now gt 0, lt 99" in page.read_text()) is (status == NEWS)
    assert ("has no v9.9.0rc3" in page.read_text()) is (status == FAILED)


def no_index(engine: str) -> list[str]:
    raise AssertionError(f"the index was asked for {engine}")


def test_the_exit_status_is_that_of_what_was_found() -> None:
    found = [Found(RULE, Change("x", State.GONE))]
    assert News("vllm", "1", "1").status == DONE
    assert News("vllm", "1", "2").status == NEWS
    assert News("vllm", "1", "1", found=found).status == NEWS
    assert News("tensorrt-llm", "1", "2", unread="why").status == FAILED
    assert News("tensorrt-llm", "1", "1", unread="why").status == DONE


@pytest.mark.parametrize(
    ("newest", "status"), [(command.newest_known("tensorrt-llm"), DONE), ("99.0.0rc1", FAILED), ("0.9.0", DONE)]
)
def test_a_release_without_sources_is_a_failure_only_where_it_is_new(
    newest: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stub = io.BytesIO()
    with tarfile.open(fileobj=stub, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("tensorrt_llm/PKG-INFO"))
    version = newest if status else command.newest_known("tensorrt-llm")
    monkeypatch.setattr(command, "newest", lambda *_: newest)
    monkeypatch.setattr(source, "_links", lambda _: [f"https://x.example/tensorrt_llm-{version}.tar.gz"])
    monkeypatch.setattr(source, "_opened", lambda *_: io.BytesIO(stub.getvalue()))
    assert command.main(["tensorrt-llm", f"--cache={tmp_path}"]) == status
    assert "scripts/engine-news --from FILE" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--since", "vllm=9.9.9"], ["--since", "0.33.0"], ["--from", "other-1.0.tar.gz"], ["--from", "none.json"]]
)
def test_wrong_words_end_with_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == FAILED
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith("engine-news: ")


def test_the_newest_of_an_index_is_no_candidate_unless_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "vllm-0.9.2.tar.gz",
        "vllm-0.10.0.tar.gz",
        "vllm-0.11.0rc1.tar.gz",
        "vllm-0.12.0.dev1.tar.gz",
        "other-9.tar.gz",
    )
    monkeypatch.setattr(source, "_links", lambda _: [f"https://x.example/{name}#sha256=0" for name in names])
    assert (source.newest("vllm", False), source.newest("vllm", True)) == ("0.10.0", "0.11.0rc1")


# -- a large wheel is read by parts


class Wheel(BaseHTTPRequestHandler):
    """A server of one file, by ranges."""

    content = b""
    sent: list[int]

    def __init__(self, sent: list[int], content: bytes, *more: Any) -> None:
        self.sent, self.content = sent, content
        super().__init__(*more)

    def do_GET(self) -> None:
        first, last = (int(one) for one in self.headers["Range"].removeprefix("bytes=").split("-"))
        part = self.content[first : last + 1]
        self.sent.append(len(part))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(self.content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def wheel() -> Iterator[tuple[str, list[int], int]]:
    out, sent = io.BytesIO(), list[int]()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("tensorrt_llm/libs/kernels.so", b"\0" * 3_000_000)
        file.writestr("tensorrt_llm/version.py", '__version__ = "9.9.0"')
        file.writestr("tensorrt_llm/schemas/trtllm-serve-config.schema.json", "{}")
        file.writestr("tensorrt_llm/libs/more.so", b"\0" * 3_000_000)
    server = HTTPServer(("127.0.0.1", 0), partial(Wheel, sent, out.getvalue()))
    Thread(target=server.serve_forever, daemon=True).start()
    yield (
        f"http://127.0.0.1:{server.server_port}/tensorrt_llm-9.9.0-cp312-cp312-linux_x86_64.whl",
        sent,
        len(out.getvalue()),
    )
    server.shutdown()
    server.server_close()


def test_of_a_large_wheel_only_the_python_files_are_asked_for(
    wheel: tuple[str, list[int], int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, sent, size = wheel
    monkeypatch.setattr(source, "_links", lambda _: [url, "https://x.example/tensorrt_llm-9.9.0.tar.gz"])
    monkeypatch.setattr(source, "LARGE", 1_000_000)
    monkeypatch.setattr(source, "BLOCK", 10_000)
    folder = source.sources("tensorrt-llm", "9.9.0", tmp_path)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"tensorrt_llm/version.py", "tensorrt_llm/schemas/trtllm-serve-config.schema.json"}
    assert sum(sent) < size / 50
    assert SourceTree(folder).texts == {"tensorrt_llm/version.py": '__version__ = "9.9.0"'}
