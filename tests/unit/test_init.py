"""`rackwright init`: a site of about ten files by profile and hosts, what it refuses, and what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli import init
from rackwright.cli.main import main
from rackwright.init.bases import Bases
from rackwright.init.choices import choices
from rackwright.init.fresh import followed_files, made_files
from rackwright.init.machine import Machine, machine_of
from rackwright.init.typed_host import TypedHost, typed_host
from rackwright.messages import RackwrightError
from rackwright.profiles import catalog
from tests.refused import refusal, refused

B200 = Machine("NVIDIA B200", 8, architecture="x86_64", driver="575.57.08", system="Debian 12", has_sudo=True)
H200 = Machine("NVIDIA H200", 8, architecture="x86_64", driver="575.57.08", system="Debian 12", has_sudo=True)
HERE, THERE = TypedHost("10.0.0.7", "ops"), TypedHost("10.0.0.8", "ops")
COLUMNS = 100
YOURS = {
    ".gitignore",
    "config.py",
    "deploy.py",
    "group_vars/all.yml",
    "group_vars/b200.yml",
    "inventory/b200.py",
    "tasks/__init__.py",
    "templates/before-start.j2",
    "templates/endpoint.service.j2",
    "templates/wait-ready.j2",
}


def files(site: Path) -> set[str]:
    return {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}


def has_wide_lines(text: str) -> list[str]:
    return [row for row in text.splitlines() if len(row) > COLUMNS]


# -- the files


def test_a_fresh_site_is_ten_files_and_what_is_rackwrights_is_apart(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--profile", "b200"]) == 0
    found = files(tmp_path)
    assert {name for name in found if not name.startswith(".rackwright/")} - {"rackwright.lock.yml"} == YOURS
    assert {name for name in found if name.startswith(".rackwright/")} == {
        ".rackwright/settings.schema.json",
        ".rackwright/shipped.json",
    }
    assert set(Bases(tmp_path).read()) == set(followed_files())


@pytest.mark.parametrize("profile", catalog.names())
def test_every_profile_makes_a_site_that_names_it(profile: str) -> None:
    found = made_files(choices([profile], {}))
    [group] = [text for path, text in found.items() if path.parts[0] == "group_vars"]
    assert yaml.safe_load(group) == {"profile": profile}
    [inventory] = [text.decode() for path, text in found.items() if path.parts[0] == "inventory"]
    compile(inventory, "inventory", "exec")
    assert has_wide_lines(inventory + group.decode()) == []


@pytest.mark.parametrize("profile", ["b200", "gb200_tray", "h200_vllm_eagle3", "dgx_spark_pair", "rtx_pro_6000_vllm"])
def test_a_site_is_right_before_it_is_edited(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path), "--profile", profile]) == 0
    monkeypatch.chdir(tmp_path)
    stem = catalog.profile(profile).inventory
    assert main(["check", f"inventory/{stem}.py"]) == 0, capsys.readouterr()
    hosts = load_inventory(f"inventory/{stem}.py")
    assert {host.settings.model.repository for host in hosts if host.settings.model} == {catalog.profile(profile).model}


SPARK = Machine("NVIDIA GB10", 1, architecture="aarch64", driver="580.95.05", system="Ubuntu 24.04", has_sudo=True)


def test_hosts_that_serve_together_are_told_of_their_addresses_to_each_other(
    machines: dict[TypedHost, Machine],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    machines.update({HERE: SPARK, THERE: SPARK})
    hosts = ["--host", "ops@10.0.0.7", "--host", "ops@10.0.0.8"]
    assert main(["init", str(tmp_path), "--profile", "dgx_spark_pair_vllm_qwen38_27b", *hosts]) == 0
    rows = (tmp_path / "inventory/dgx_spark.py").read_text().splitlines()
    [number] = [number for number, row in enumerate(rows, 1) if row.strip().startswith("# fabric_address")]
    output = capsys.readouterr().out
    assert f"inventory/dgx_spark.py:{number}" in output
    assert "NGC" not in output, "vLLM's image needs no login there"
    monkeypatch.chdir(tmp_path)
    assert main(["check", "inventory/dgx_spark.py"]) == 0
    head, member, *_ = capsys.readouterr().out.splitlines()
    assert "127.0.0.1:8000" in head
    assert "10.0.0.7, 10.0.0.8" in head
    assert "127.0.0.1" not in member, "the first one alone answers"
    assert "10.0.0.7" in member


@pytest.mark.parametrize(
    ("profiles", "shown"),
    [
        (["b200"], "two example hosts"),
        (["dgx_spark_ring_vllm_qwen35_397b"], "three example hosts"),
        (["b200", "b200_vllm"], "the groups, without a host yet"),
    ],
)
def test_an_inventory_without_hosts_says_what_is_in_it(
    profiles: list[str], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path), *(text for name in profiles for text in ("--profile", name))]) == 0
    output = capsys.readouterr().out
    assert shown in output
    assert re.search(r"inventory/\w+\.py:\d+ +your hosts", output)


def test_two_profiles_for_one_machine_are_two_groups(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--profile", "b200", "--profile", "b200_vllm", "--profile", "h200_vllm"]) == 0
    names = {name for name in files(tmp_path) if name.startswith(("inventory/", "group_vars/"))}
    groups = {f"group_vars/{name}.yml" for name in ("all", "b200", "b200_vllm", "h200")}
    assert names == {"inventory/b200.py", "inventory/h200.py", *groups}


def test_what_is_there_is_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deploy.py").write_text("# mine\n")
    (tmp_path / "notes.txt").write_text("mine\n")
    assert main(["init", str(tmp_path), "--profile", "b200"]) == 0
    assert (tmp_path / "deploy.py").read_text() == "# mine\n"
    assert "deploy.py" in capsys.readouterr().out.partition("\n\n")[0]
    assert Path("deploy.py") not in Bases(tmp_path).read()


def test_an_update_of_a_fresh_site_changes_nothing_and_keeps_its_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path), "--profile", "b200", "--lab", "--ansible"]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["init", "--update", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


# -- hosts


def test_each_host_is_in_the_group_of_the_profile_that_fits_it() -> None:
    found = choices(["b200", "h200_vllm"], {HERE: B200, THERE: H200})
    assert {group.name: [one.host for one in group.hosts] for group in found.groups} == {
        "b200": [HERE],
        "h200": [THERE],
    }
    assert found.left_out == ()


def test_a_host_that_no_profile_fits_is_left_out_and_one_that_was_not_read_is_not() -> None:
    silent = Machine(trouble="it did not answer")
    found = choices(["b200"], {HERE: H200, THERE: silent})
    assert [one.host for one in found.left_out] == [HERE]
    assert [one.host for one in found.groups[0].hosts] == [THERE]


@pytest.mark.parametrize(
    ("text", "name", "data"),
    [
        ("ops@10.0.0.7", "10.0.0.7", {"ssh_user": "ops"}),
        ("gpu-1:2222", "gpu-1", {"ssh_port": 2222}),
        ("[fd00::7]:22", "fd00-7", {"ssh_hostname": "fd00::7", "ssh_port": 22}),
    ],
)
def test_a_host_as_it_is_typed(text: str, name: str, data: dict[str, object]) -> None:
    assert (typed_host(text).name, typed_host(text).data) == (name, data)


NOT_HOSTS = (
    "-oProxyCommand=id",
    "ops@-oX",
    "-x@h",
    "a b",
    "http://x",
    "h:99999",
    "",
    "@h",
    "u@@h",
    "$(id)",
    "h;id",
    "é",
)


@pytest.mark.parametrize("text", NOT_HOSTS)
def test_what_ssh_or_a_shell_would_take_for_something_else_is_not_a_host(text: str) -> None:
    with refused("RW1082", error=RackwrightError):
        typed_host(text)


# -- what a machine says


def test_a_machine_says_what_it_is() -> None:
    gpus = ["gpu NVIDIA B200, 575.57.08"] * 8
    found = machine_of(
        ["arch x86_64", "system Debian GNU/Linux 12 (bookworm)", "sudo yes", "devices 8", "status 0", *gpus]
    )
    assert (found.gpu, found.gpus, found.driver, found.has_sudo, found.trouble) == (
        "NVIDIA B200",
        8,
        "575.57.08",
        True,
        "",
    )
    assert "b200" in found.fitting


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["arch x86_64", "devices 0"], "no NVIDIA GPU"),
        (["arch x86_64", "devices 8"], "8 NVIDIA GPUs and no driver"),
        (["arch x86_64", "devices 8", "status 124"], "within 30 s"),
        (["arch x86_64", "devices 8", "status 9", "error Driver/library version mismatch"], "mismatch"),
        (["hello"], "did not answer"),
        ([], "did not answer"),
    ],
)
def test_a_machine_without_a_gpu_that_answers_says_why(lines: list[str], words: str) -> None:
    assert words in machine_of(lines).trouble


def test_a_hosts_words_are_data() -> None:
    found = machine_of(
        ["arch \x1b[31mx86_64", "system a\x07" + "b" * 1000, "gpu \x1b]0;x\x07NVIDIA B200, 1", "devices 99999"]
    )
    assert not any(ord(char) < 32 for char in found.text)
    assert len(found.system) < 120


def test_several_kinds_of_gpus_are_told() -> None:
    found = machine_of(["arch x86_64", "gpu A, 1", "gpu B, 1", "gpu B, 1"])
    assert found.text.startswith("2 x B, 1 x A")


# -- questions


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a terminal at which these are typed."""
    typed: list[str] = []

    def answer(prompt: object = "") -> str:
        if not typed:
            raise EOFError
        print(f"{prompt}{typed[0]}")
        return typed.pop(0)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(init, "answer_to", answer)
    return typed


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> dict[TypedHost, Machine]:
    """Have these machines behind SSH."""
    found: dict[TypedHost, Machine] = {}
    monkeypatch.setattr(init, "read_machines", lambda hosts, ask: {host: found[host] for host in hosts})
    return found


def test_hosts_and_a_profile_for_each_kind_are_asked(
    answers: list[str], machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: B200, THERE: H200})
    answers += ["-oX", "ops@10.0.0.7 ops@10.0.0.8", "99", "", "h200_vllm"]
    assert main(["init", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert '("10.0.0.8", {"ssh_user": "ops"}),  # 8 x NVIDIA H200' in (tmp_path / "inventory/h200.py").read_text()
    assert yaml.safe_load((tmp_path / "group_vars/b200.yml").read_text()) == {"profile": B200.fitting[0]}
    assert has_wide_lines(output.replace(str(tmp_path), "site")) == []


def test_what_takes_several_hosts_says_how_many(
    answers: list[str], machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: SPARK})
    answers += ["ops@10.0.0.7", ""]
    assert main(["init", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    pairs = output.partition("  2 hosts that serve one model together:\n")[2].partition("  3 hosts that serve one")[0]
    assert {row.split()[1] for row in pairs.splitlines()} == {
        name for name in catalog.names() if name.startswith("dgx_spark_pair")
    }
    assert has_wide_lines(output.replace(str(tmp_path), "site")) == []


def test_without_hosts_the_machine_is_asked(answers: list[str], tmp_path: Path) -> None:
    answers += ["", "5", "2"]
    assert main(["init", str(tmp_path)]) == 0
    [inventory] = [name for name in files(tmp_path) if name.startswith("inventory/")]
    assert inventory == "inventory/h200.py"


@pytest.mark.parametrize("typed", [[], [""], ["", "3"]])
def test_an_input_that_ends_is_refused_and_nothing_is_written(
    typed: list[str], answers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers += typed
    assert main(["init", str(tmp_path / "site")]) == 1
    refusal(capsys.readouterr().err, "RW1052", "--profile NAME")
    assert not (tmp_path / "site").exists()


# -- without a terminal


@pytest.mark.parametrize("words", [[], ["--host", "10.0.0.7"], ["--yes"]])
def test_without_a_terminal_and_a_profile_it_says_what_to_type(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(["init", str(tmp_path / "site"), *words]) == 1
    refusal(capsys.readouterr().err, "RW1052", "--profile NAME", "rackwright profiles list")
    assert not (tmp_path / "site").exists()


def test_yes_takes_the_best_profile_of_each_kind(
    machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: B200, THERE: H200})
    assert main(["init", str(tmp_path), "--yes", "--host", "ops@10.0.0.7", "--host", "ops@10.0.0.8"]) == 0
    assert yaml.safe_load((tmp_path / "group_vars/h200.yml").read_text()) == {"profile": H200.fitting[0]}


def test_yes_says_which_hosts_let_no_profile_be_chosen(
    machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: Machine(trouble="it did not answer")})
    assert main(["init", str(tmp_path / "site"), "--yes", "--host", "ops@10.0.0.7"]) == 1
    printed = capsys.readouterr()
    assert "10.0.0.7: it did not answer" in printed.out
    refusal(printed.err, "RW1416", "--host ops@10.0.0.7 --profile NAME")
    assert not (tmp_path / "site").exists()


def test_a_site_that_is_there_says_how_a_host_is_added(
    machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: B200, THERE: B200})
    texts = []
    for hosts in (["ops@10.0.0.7"], [], ["ops@10.0.0.7", "ops@10.0.0.8"]):
        typed = [argument for host in hosts for argument in ("--host", host)]
        assert main(["init", str(tmp_path), "--profile", "b200", *typed]) == 0
        texts.append(capsys.readouterr().out)
    fresh, again, more = texts
    assert "another host" not in fresh
    assert f"another host: rackwright init {tmp_path} --profile b200 --host USER@ADDRESS\n" in again
    assert f'add to {tmp_path}/inventory/b200.py, in b200:\n  ("10.0.0.8", {{"ssh_user": "ops"}}),\n' in more


def test_a_host_that_is_left_out_is_told_with_its_own_command_and_fails(
    machines: dict[TypedHost, Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.update({HERE: B200, THERE: H200})
    hosts = ("--host", "ops@10.0.0.7", "--host", "ops@10.0.0.8")
    assert main(["init", str(tmp_path), "--profile", "b200", *hosts]) == 1
    assert (
        f"next: rackwright init {tmp_path} --profile {H200.fitting[0]} --host ops@10.0.0.8" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--profile", "b20"], "RW1092"),
        (["--profile", "b200", "--host=-oProxyCommand=id"], "RW1082"),
        (["--profile", "b200", "--host", "a", "--host", "x@a"], "RW1082"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_written(
    words: list[str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "site"), *words]) == 1
    refusal(capsys.readouterr().err, code)
    assert not (tmp_path / "site").exists()


def test_what_it_prints_names_lines_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "site"), "--profile", "b200"]) == 0
    output = capsys.readouterr().out
    rows = [row.split() for row in output.partition("Edit:")[2].partition("Next:")[0].splitlines() if row.strip()]
    assert len(rows) >= 2
    for at, *_ in rows:
        path, _, number = at.partition(":")
        assert (tmp_path / "site" / path).read_text().splitlines()[int(number) - 1].strip()


def test_the_lab_needs_its_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rackwright.init.making.entry_points", lambda **_: [])
    assert main(["init", str(tmp_path / "site"), "--lab"]) == 1
    refusal(capsys.readouterr().err, "RW1029", "./packages/lab")


def test_ansibles_reader_is_added_to_a_site_without_a_question(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--profile", "b200"]) == 0
    before = files(tmp_path)
    assert main(["init", str(tmp_path), "--ansible"]) == 0
    assert files(tmp_path) - before == {"inventory/ansible.py"}
    assert Path("inventory/ansible.py") in Bases(tmp_path).read()
