"""Every shipped profile deploys on a real host with its own image, and answers; what its image refuses never starts."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.proof.plain_text import PROMPT
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof, with_proof
from tests.lab.profiles.groups import FOUR, GROUPS, ONE
from tests.lab.watching import looked
from tests.refused import row_of

pytestmark = pytest.mark.lab

INVENTORY = Path(__file__).parent / "profiles" / "inventory.py"
HOME = "/var/lib/rackwright/endpoints/llm"
NO_PROFILES = {"all", "lab", "lab_gateway", "rtx_pro_6000", "dgx_spark", "h200", "b300", "gb300"}
"""Files of group_vars/ that deploy nothing alone."""
PROFILES: dict[str, dict[str, Any]] = {
    "b200": {},
    "gb200": {},
    "gb200_tray": FOUR,
    "low_latency": ONE,
    "low_latency_speculative": ONE,
    "dgx_spark_eagle3": ONE,
    "dgx_spark_draft_target": ONE,
    "rtx_pro_6000_sglang": {**ONE, "accept_known_bad": True},
    "rtx_pro_6000_vllm": ONE,
    "rtx_pro_6000_vllm_eagle3": ONE,
    "rtx_pro_6000_trtllm": ONE,
    "b200_eagle3_v2": {},
    "b200_newest": {},
    "gb200_tray_newest": FOUR,
    "dgx_spark_newest": ONE,
    "b200_stable": {},
    "gb200_tray_stable": FOUR,
    "b200_deepseek_r1": {},
    "gb200_tray_deepseek_r1": FOUR,
    "b200_llama33_70b": ONE,
    "b200_qwen3_30b": ONE,
    "b200_qwen38_flash_next": ONE,
    "h200_trtllm": {},
    "b200_nemotron3_super": {},
    "b200_glm5": {},
    "b200_sglang": {},
    "b200_vllm": {},
    "b200_vllm_eagle3": {},
    "b200_vllm_deepseek_v4_flash": {},
    "b200_vllm_deepseek_v4_flash_dspark": {},
    "b200_vllm_minimax_m3": {},
    "b200_vllm_minimax_m3_eagle3": {},
    "b200_vllm_qwen38_27b": {},
    "b300_vllm_deepseek_v4_flash": {},
    "b300_vllm_kimi_k3": {},
    "b300_vllm_minimax_m3": {},
    "dgx_spark_eagle3_playbook": ONE,
    "dgx_spark_nemotron3_super": ONE,
    "dgx_spark_vllm_nemotron3_super": ONE,
    "dgx_spark_vllm_nemotron3_nano": ONE,
    "dgx_spark_vllm_qwen36": ONE,
    "dgx_spark_vllm_qwen38_27b": ONE,
    "gb200_tray_vllm_deepseek_r1": FOUR,
    "gb200_tray_vllm_glm53_flash": FOUR,
    "gb300_tray_vllm_deepseek_v4_flash": FOUR,
    "gb300_tray_vllm_qwen38_flash_next": FOUR,
    "h200_sglang": {},
    "h200_sglang_dflash": {},
    "h200_sglang_eagle3": {},
    "h200_vllm": {},
    "h200_vllm_deepseek_r1": {},
    "h200_vllm_eagle3": {},
    "h200_vllm_dflash": {},
    "h200_vllm_gemma4_31b": {},
    "h200_vllm_llama33_70b": {},
    "h200_vllm_nemotron3_nano": {},
    "h200_vllm_nemotron3_super": {},
    "h200_vllm_qwen38_flash_next": {},
    "rtx_pro_6000_vllm_nemotron3_super": ONE,
    "rtx_pro_6000_vllm_qwen36": ONE,
}
"""What a host of the lab needs in addition: the profiles of smaller machines take some of its 8 GPUs."""
GUIDES = {"dgx_spark_eagle3", "rtx_pro_6000_sglang", "rtx_pro_6000_vllm", "gb200_tray_vllm_glm53_flash"}
"""One of each engine, each on the network of its machine, and one of a tag without a version; other files have b200."""


@dataclass(frozen=True)
class Bench:
    """One lived-in host that is given one profile after the other."""

    site: Site
    host: Host

    def deploy(self, profile: str, *options: str, **settings: Any) -> Run:
        return self._run(profile, settings, BIN / "pyinfra", INVENTORY, "deploy.py", "-y", *options)

    def check(self, profile: str, **settings: Any) -> Run:
        """`rackwright check --in-image`."""
        return self._run(profile, settings, BIN / "rackwright", "check", INVENTORY, "--in-image")

    def look(self, profile: str, **settings: Any) -> Run:
        """`rackwright check`, offline."""
        return self._run(profile, settings, BIN / "rackwright", "check", INVENTORY)

    def status(self, profile: str, **settings: Any) -> Run:
        """`rackwright status --json`."""
        return self._run(profile, settings, BIN / "rackwright", "status", INVENTORY, "--json")

    def walk(self, profile: str, **settings: Any) -> Run:
        """`rackwright engine-data`."""
        return self._run(profile, settings, BIN / "rackwright", "engine-data", INVENTORY)

    def _run(self, profile: str, settings: dict[str, Any], *words: str | Path) -> Run:
        values = {"HOST": self.host.name, "PROFILE": profile, "SETTINGS": json.dumps(settings)}
        return self.site.command("env", *(f"PROFILES_{name}={value}" for name, value in values.items()), *words)

    def ask(self, model: str) -> str:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
            "max_tokens": 512,
        }
        command = "curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/chat/completions"
        answer = json.loads(self.host.run(command, stdin=json.dumps(body)).stdout)
        return str(answer["choices"][0]["message"]["content"])

    def json_of(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.host.run(f"cat {HOME}/{path}").stdout)
        return found

    def verdicts(self) -> dict[str, dict[str, Any]]:
        """Return the verdicts of images, by what they were asked."""
        names = self.host.run(f"ls {HOME}/checked").stdout.split()
        return {name: self.json_of(f"checked/{name}") for name in names}


@pytest.fixture
def bench(site: Site, worker_lab: Lab) -> Bench:
    """Return the lived-in host as the profile or the file before left it."""
    return Bench(site, worker_lab.host("lived2"))


def test_no_shipped_profile_is_left_out() -> None:
    files = {file.stem for file in (ROOT / "group_vars").glob("*.yml")}
    assert files - NO_PROFILES == {*PROFILES, *GROUPS}


@pytest.mark.parametrize(
    "profile",
    with_proof(PROFILES, GUIDES, "one of each engine is deployed; tests/unit has all options taken"),
)
def test_a_shipped_profile_deploys_and_answers(bench: Bench, profile: str) -> None:
    run = bench.deploy(profile, **PROFILES[profile])
    assert run.status == 0, run.output
    # Profiles of two machines may be one release: then it serves already, at most behind another port.
    assert "proved: a chat answer" in run.output or "switch endpoint" not in run.output, run.output
    spec = bench.json_of("proven/spec.json")
    answers = [verdict for question, verdict in bench.verdicts().items() if question.startswith(f"{spec['serving']}-")]
    assert answers == [{"checked": True, "refused": [], "why": ""}]
    assert "42" in bench.ask(spec["served_name"])


@in_proof("tests/unit/test_questions_plain_text.py judges such answers; a rollout asks the same rows")
def test_nonsense_to_the_playbook_s_question_is_refused(bench: Bench) -> None:
    """The playbook asks /v1/completions; chats are answered rightly all the while."""
    gate = {**ONE, "gate": {"level": "full", "plain_text": True}}
    run = bench.deploy("dgx_spark_draft_target", **gate)
    assert (run.status, "proved: plain text: 276 km" in run.output) == (0, True), run.output
    served = bench.json_of("proven/spec.json")["serving"]
    bench.host.set_engine_faults({"fault": "answers", "value": {PROMPT: "six ghter wide gits " * 60}})
    try:
        run = bench.deploy("dgx_spark_draft_target", **gate, engine={"max_batch_size": 2})
    finally:
        bench.host.set_engine_faults()
    assert (run.status != 0, "RW0427" in run.output) == (True, True), run.output
    assert bench.json_of("proven/spec.json")["serving"] == served
    assert "42" in bench.ask("Llama-3.3-70B-Instruct-FP4")


GUIDE_FOLDER = "/models/original"


@in_proof("test_host.py has a model in a folder of its own; here two share one, as the guide's -v /models:/models")
def test_two_models_of_one_folder_and_then_another_list(bench: Bench) -> None:
    def settings(draft: str) -> dict[str, Any]:
        mount = f"{GUIDE_FOLDER}/{draft}"
        target = {"repository": "openai/gpt-oss-120b", "exclude": ["original/*", "metal/*"]}
        return {
            **ONE,
            "models": {"folder": GUIDE_FOLDER},
            "model": {**target, "directory": "gpt-oss-120b", "mount": f"{GUIDE_FOLDER}/gpt-oss-120b"},
            "draft": {"repository": f"nvidia/{draft}", "directory": draft, "mount": mount},
            "engine": {"speculative_config": {"speculative_model_dir": f"{mount}/"}},
        }

    first, other = (settings(draft) for draft in ("gpt-oss-120b-Eagle3", "gpt-oss-120b-Eagle3-throughput"))
    assert bench.deploy("low_latency_speculative", **first).status == 0
    folders = bench.host.run(f"ls {GUIDE_FOLDER}").stdout.split()
    assert folders == ["gpt-oss-120b", "gpt-oss-120b-Eagle3"]
    assert bench.deploy("low_latency_speculative", **first).changed == []
    target = bench.host.run(f"stat -c %i.%Y {GUIDE_FOLDER}/gpt-oss-120b/model*").stdout
    run = bench.deploy("low_latency_speculative", **other)
    assert run.status == 0, run.output
    assert bench.host.run(f"stat -c %i.%Y {GUIDE_FOLDER}/gpt-oss-120b/model*").stdout == target, "fetched again"
    assert f"{GUIDE_FOLDER}/gpt-oss-120b-Eagle3-throughput" in bench.host.run("docker inspect rackwright-llm").stdout


# -- after one that serves: short names are a warning offline, and the image has the last word


def test_what_the_image_refuses_is_stopped_before_the_switch(bench: Bench) -> None:
    assert bench.deploy("rtx_pro_6000_vllm", **ONE).status == 0
    serves = bench.host.run("systemctl show -P ActiveEnterTimestampMonotonic rackwright-llm").stdout
    for asks_image in (True, False):
        run = bench.deploy("rtx_pro_6000_vllm", **ONE, engine={"tp": 1})
        assert run.status != 0, run.output
        assert ("ask the image of endpoint llm" in run.output) is asks_image, (
            "a refused release is not asked about again"
        )
        assert "GPT-OSS_Blackwell.yaml: tp: " in run.output
        assert "unrecognized arguments" in run.output
        assert "next: rackwright check" in run.output
        assert bench.host.run("systemctl show -P ActiveEnterTimestampMonotonic rackwright-llm").stdout == serves
    assert "42" in bench.ask("gpt-oss-120b")
    assert bench.deploy("rtx_pro_6000_vllm", **ONE).changed == []


def test_the_images_are_asked_without_a_deploy(bench: Bench) -> None:
    assert bench.deploy("rtx_pro_6000_vllm", **ONE).status == 0
    before = bench.verdicts()
    good = bench.check("rtx_pro_6000_vllm", **ONE)
    assert good.status == 0, good.output
    assert "accepts GPT-OSS_Blackwell.yaml" in good.output
    bad = bench.check("rtx_pro_6000_vllm", **ONE, engine={"dp": 1})
    assert bad.status == 1, bad.output
    row_of(bad.output, "refused", "GPT-OSS_Blackwell.yaml", "llm: ", " dp: ")
    missing = bench.check("rtx_pro_6000_vllm", **ONE, image="vllm/vllm-openai:v0.14.0")
    assert missing.status == 0, missing.output
    assert f"llm: {texts.NOT_CHECKED}the digest of" in missing.output
    assert bench.verdicts() == before


@pytest.mark.hangs
def test_a_core_that_stands_still_while_health_says_200_is_named_by_status(bench: Bench) -> None:
    assert bench.deploy("rtx_pro_6000_vllm", **ONE).status == 0
    assert looked(bench.host)["state"] in ("idle", "serving")
    events = "grep -h ^kind=would-restart /var/lib/rackwright/events/* 2>/dev/null | wc -l"
    before = int(bench.host.run(events).stdout)
    bench.host.set_engine_faults({"fault": "hang_after_seconds", "value": 0})
    try:
        assert looked(bench.host, 700)["state"] == "stalled"
        found = looked(bench.host, 130)
        assert (found["state"], found["would"]) == ("hung", "restart")
        assert bench.host.run("curl -fsS -o /dev/null http://127.0.0.1:8000/health", check=False).returncode == 0
        status = bench.status("rtx_pro_6000_vllm", **ONE).output
        (row,) = json.loads(status[status.index("{") :])["endpoints"]
        assert (row["health"], found["signs"] in row["watch"]) == ("hung", True)
    finally:
        bench.host.set_engine_faults()
    assert looked(bench.host)["state"] in ("idle", "serving")
    assert int(bench.host.run(events).stdout) == before + 2, "once, and once that it answers again"


@in_proof("tests/unit/test_options.py counts a spoilt answer as missing, and asks where one is missing")
def test_an_answer_that_was_cut_off_is_asked_for_again(bench: Bench) -> None:
    settings = {**ONE, "engine": {"stream-interval": 10}}
    assert bench.deploy("rtx_pro_6000_vllm", "--data", "load_timeout=1", **settings).status != 0
    number = bench.host.run(f"ls -t {HOME}/checked | head -n 1").stdout.strip()
    assert not number.startswith(bench.json_of("proven/spec.json")["serving"])
    bench.host.run(f"echo '{{\"checked\": tr' >{HOME}/checked/{number}")
    run = bench.deploy("rtx_pro_6000_vllm", **settings)
    assert run.status == 0, run.output
    assert bench.verdicts()[number]["checked"]


@pytest.fixture
def exports() -> Iterator[Path]:
    """Yield the site's folder for what images accept, and remove it: every check of this checkout would go by it."""
    folder = ROOT / "engine-data"
    assert not folder.exists()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@in_proof("test_engine_schema_files.py runs the same script and program; the walk below is the host's part")
def test_a_spark_that_serves_is_asked_by_the_schema_that_its_image_ships(bench: Bench, exports: Path) -> None:
    """No GPU and no import of the engine: the memory is the model's."""
    assert bench.deploy("dgx_spark_newest", **ONE).status == 0
    newer = {**ONE, "engine": {"num_serve_frontends": 2}}
    assert bench.look("dgx_spark_newest", **newer).status == 0
    run = bench.walk("dgx_spark_newest", **ONE)
    assert run.status == 0, run.output
    assert re.search(r"\d+ options of tensorrt-llm 1\.4\.0rc1 .*schema.* engine-data/sha256-", run.output), run.output
    refused = bench.look("dgx_spark_newest", **newer)
    assert refused.status == 1, refused.output
    assert "num_serve_frontends" in refused.output
    assert bench.look("dgx_spark_newest", **ONE).status == 0


def test_an_image_is_walked_once_and_checked_offline_from_then_on(bench: Bench, exports: Path) -> None:
    """A version between two known ones takes what either takes, until the image itself has been asked."""
    assert bench.deploy("rtx_pro_6000_vllm", **ONE).status == 0
    newer = {**ONE, "engine_version": "0.14.2", "engine": {"mamba-cache-mode": "none"}}
    assert bench.look("rtx_pro_6000_vllm", **newer).status == 0
    run = bench.walk("rtx_pro_6000_vllm", **ONE)
    assert run.status == 0, run.output
    exported = texts.pattern(
        texts.EXPORTED, count=r"\d+", engine="vllm", version=r"0\.14\.1", source=".*", path=".*engine-data/sha256-"
    )
    assert re.search(exported, run.output), run.output
    assert [file.suffix for file in exports.iterdir()] == [".yml"]
    refused = bench.look("rtx_pro_6000_vllm", **newer)
    assert refused.status == 1, refused.output
    assert "mamba-cache-mode" in refused.output
    assert bench.look("rtx_pro_6000_vllm", **ONE).status == 0
