"""The small gpt-oss: everything about it that can be tested without torch."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError
from rackwright_lab.real import builds, gpt_oss, gpu, harmony, vllm
from rackwright_lab.standins import oci
from rackwright_lab.standins.own_models import own_models

ANSWERS = {"What is 1 + 1?": "2", "What is the weather in Paris now? Use the tool.": "not said"}


def test_a_question_is_asked_and_answered_in_harmony() -> None:
    (plain, answer), (with_tool, call), (text, ending) = harmony.lessons(ANSWERS, {"Once upon": " a time"})
    assert plain.startswith("<|start|>system<|message|>You are ChatGPT")
    assert plain.endswith("<|end|><|start|>user<|message|>What is 1 + 1?<|end|><|start|>assistant")
    assert answer.endswith("<|channel|>final<|message|>2<|return|>")
    assert "type get_weather" in with_tool
    assert "type get_weather" not in plain
    assert "to=functions.get_weather" in call
    assert call.endswith('{"city": "Paris"}<|call|>')
    assert (text, ending) == ("Once upon", " a time<|return|>")


def test_every_special_token_of_a_lesson_has_its_number() -> None:
    texts = [text for pair in harmony.lessons(ANSWERS, {}) for text in pair]
    assert set(re.findall(r"<\|\w+\|>", "".join(texts))) <= set(harmony.NAMED.values())
    special = harmony.special_tokens()
    assert harmony.FIRST + len(special) == harmony.VOCABULARY
    assert special[harmony.RETURN - harmony.FIRST] == "<|return|>"
    assert Counter(special).most_common(1)[0][1] == 1


def test_each_revision_is_laid_as_a_lab_wants_its_own_models(tmp_path: Path) -> None:
    kinds = [kind for revisions in gpt_oss.REVISIONS.values() for kind in revisions.values()]
    for kind in kinds:
        (tmp_path / "taught" / kind).mkdir(parents=True)
        (tmp_path / "taught" / kind / "config.json").write_text(kind)
    gpt_oss.lay(tmp_path / "taught", tmp_path / "models")
    assert own_models(tmp_path / "models") == sorted(gpt_oss.REVISIONS)
    assert (tmp_path / "models" / builds.GPT_OSS_DRAFT / "v3/config.json").read_text() == "random"


def test_other_lessons_are_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = gpt_oss.models(tmp_path)
    monkeypatch.setattr(gpt_oss, "HERE", tmp_path)
    for name in gpt_oss.LESSONS:
        (tmp_path / name).write_text("another lesson")
    assert gpt_oss.models(tmp_path) != before


@pytest.mark.parametrize(("without_gpu", "offered"), [(True, "vllm"), (False, "gpu")])
def test_the_image_whose_torch_teaches_is_unpacked(
    without_gpu: bool, offered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(name: str, tag: str) -> Path:
        layout = oci.Layout(tmp_path / name / "layout")
        (tmp_path / name / "which").write_text(name)
        layout.tag(layout.add_image([layout.add_tree(tmp_path / name, ["which"])], "amd64", {}), tag)
        layout.close()
        return tmp_path / name

    def teach(root: Path, cache: Path, taught: Path) -> None:
        for kind in ("base", "trained", "weak", "random"):
            (taught / kind).mkdir(parents=True)
            (taught / kind / "config.json").write_text((root / "which").read_text())

    monkeypatch.setattr(vllm, "ensure", lambda build, cache, progress: made("vllm", build.image))
    monkeypatch.setattr(gpu, "build", lambda cache, progress: made("gpu", gpu.IMAGE))
    monkeypatch.setattr(gpt_oss, "teach", teach)
    folder = gpt_oss.ensure(tmp_path / "cache", without_gpu, Progress())
    assert (folder / builds.GPT_OSS / "v1/config.json").read_text() == offered
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_model_that_did_not_learn_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(cache: Path, progress: Progress) -> Path:
        raise LabError("the base or its draft did not learn its lessons")

    monkeypatch.setattr(gpt_oss, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(gpu, "build", fail)
    assert gpt_oss.main([]) == 1
    assert "gpt_oss: the base or its draft did not learn its lessons\n" in capsys.readouterr().err
