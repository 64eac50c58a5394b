"""Profiles and the lab's stand-ins: each image and model is there, and its stand-in takes the options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.render import rendered_files
from rackwright.concerns.endpoint.container import server_command
from rackwright.settings.host_settings import HostSettings
from rackwright_lab.servers import image
from rackwright_lab.standins import option_tables, rootfs
from rackwright_lab.standins.hub_content import REPOSITORIES
from rackwright_lab.standins.option_tables import StandIn
from tests.unit.test_engine_profiles import EFFECTIVE, NEWEST, profile
from tests.unit.test_recipes import RECIPES

PROFILES = (*EFFECTIVE, *NEWEST, *RECIPES)
OF_HUB = {image.VLLM: StandIn("vllm", "0.14.1"), image.SGLANG: StandIn("sglang", "0.5.8"), **rootfs.OTHERS}
TRTLLM = {f"nvcr.io/{image.REPOSITORY}:{version}" for version in image.VERSIONS}
STARTED = {"${RANK}": "0", "${HEAD}": "127.0.0.1", "$HEADLESS": ""}
"""What the unit puts in on the first host."""
READ = {
    "vllm": """
from lab_standins.vllm.arg_utils import EngineArgs, check_values
from lab_standins.vllm.arguments import FlexibleArgumentParser, make_arg_parser, validate_parsed_serve_args
def read(words):
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    validate_parsed_serve_args(args)
    check_values(vars(EngineArgs.from_cli_args(args)))
""",
    "sglang": """
from lab_standins.sglang.server_args import prepare_server_args
def read(words):
    prepare_server_args(words[3:])
""",
}
LOOP = "import json, sys\nfor words in json.load(sys.stdin):\n    read(words)\n"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of Python packages as the images have it, tables included."""
    site = tmp_path_factory.mktemp("standins")
    rootfs.put_package(site, "engine", "common", "vllm", "sglang")
    for engine in READ:
        rootfs.put_tables(site, engine)
    return site


def reads(packages: Path, standin: StandIn, commands: list[list[str]]) -> str:
    """Have a version's stand-in read some command lines; returns what it refuses them with."""
    variable = f"{standin.engine.upper()}_STANDIN_VERSION"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(packages), variable: standin.name}
    argv = [sys.executable, "-c", READ[standin.engine] + LOOP]
    done = subprocess.run(
        argv, env=environment, input=json.dumps(commands), capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


def command(settings: HostSettings, folder: Path) -> list[str]:
    """Return the server's words on the first host, with its file in a folder of this machine."""
    endpoint = settings.all_endpoints["llm"]
    text = next(text for path, text in rendered_files(settings).items() if Path(path).name == endpoint.engine_file)
    file = folder / endpoint.engine_file
    file.write_text(text)
    words = [STARTED.get(str(argument), str(argument)) for argument in server_command(endpoint)]
    return [str(file) if argument.endswith(f"/{endpoint.engine_file}") else argument for argument in words if argument]


KNOWN_BAD = {"rtx_pro_6000_sglang": {"accept_known_bad": True}}


def settings_of(group: str) -> HostSettings:
    """Return a profile's settings, that which is known not to run there included."""
    return profile(group, **KNOWN_BAD.get(group, {}))


def of_image(reference: str) -> list[str]:
    """Return the profiles that name an image."""
    return [group for group in PROFILES if settings_of(group).image == reference]


def test_each_profiles_image_and_models_are_the_labs() -> None:
    settings = [settings_of(group) for group in PROFILES]
    named = {one.image for one in settings}
    assert named - {*OF_HUB, *TRTLLM} == set()
    assert set(rootfs.OTHERS) - named == set()
    models = {model.repository for one in settings for model in (one.model, one.draft) if model is not None}
    assert models - set(REPOSITORIES) == set()


@pytest.mark.parametrize("reference", OF_HUB)
def test_the_stand_in_takes_the_options_of_its_profiles(packages: Path, tmp_path: Path, reference: str) -> None:
    groups = of_image(reference)
    folders = [tmp_path / group for group in groups]
    for folder in folders:
        folder.mkdir()
    commands = [command(settings_of(group), folder) for group, folder in zip(groups, folders, strict=True)]
    assert commands
    assert reads(packages, OF_HUB[reference], commands) == ""


SERVER = ["python3", "-m", "sglang.launch_server", "--model-path", "/m"]
MTP = '{"method": "mtp", "num_speculative_tokens": 3'
REFUSED: list[tuple[StandIn, list[str], str]] = [
    (StandIn("vllm", "0.12.0"), ["/m", "--moe-backend", "b12x"], "unrecognized arguments: --moe-backend"),
    (StandIn("vllm", "0.33.0"), ["/m", "--swap-space", "4"], "unrecognized arguments: --swap-space"),
    (StandIn("vllm", "0.33.0"), ["/m", "--moe-backend", "B14X"], "invalid choice: 'b14x'"),
    (StandIn("vllm", "0.33.0"), ["/m", "--attention-backend", "b12x_mla_sparse"], "invalid choice: 'B12X_MLA_SPARSE'"),
    (StandIn("vllm", "0.33.0"), ["/m", "--speculative-config", f'{MTP}, "drafts": 3}}'], "SpeculativeConfig.drafts"),
    (StandIn("vllm", "0.33.0"), ["/m", "--speculative-config", '{"method": "mtp2"}'], "SpeculativeConfig.method"),
    (StandIn("sglang", "0.5.23"), [*SERVER, "--cuda-graph-max-bs", "8"], "unrecognized arguments: --cuda-graph-max-bs"),
    (StandIn("sglang", "0.5.23"), [*SERVER, "--speculative-algorithm", "EAGLE3"], "needs speculative_draft_model_path"),
]


@pytest.mark.parametrize(("standin", "words", "why"), REFUSED)
def test_what_a_version_lacks_its_stand_in_refuses(
    packages: Path, standin: StandIn, words: list[str], why: str
) -> None:
    assert why in reads(packages, standin, [words])


def test_an_image_of_others_takes_its_own_backend(packages: Path) -> None:
    words: list[Any] = ["/m", "--attention-backend", "B12X_MLA_SPARSE"]
    assert reads(packages, rootfs.OTHERS["eugr/spark-vllm-b12x:latest"], [words]) == ""


def test_there_is_no_table_of_a_version_without_data() -> None:
    with pytest.raises(LookupError, match=r"no data of vllm 0\.33\.1"):
        option_tables.table_of(StandIn("vllm", "0.33.1"))
