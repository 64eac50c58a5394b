"""What a container may do is data: the usual set, what a backend needs in addition, and what the settings say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.container import endpoint_spec
from rackwright.concerns.endpoint.release.concern import _added
from rackwright.concerns.preflight.rights import RIGHTS
from rackwright.concerns.preflight.row import CheckRow
from rackwright.engines.rights import check_rights, needs, rights
from rackwright.engines.tables import table
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from tests.unit.machines import case, machine
from tests.unit.machines import settings as host_settings
from tests.unit.test_api_key import RESOLVED, settings

X86, ARM = Hardware(architecture="x86_64"), Hardware(architecture="aarch64")
USUAL = "--cap-drop NET_RAW --cap-drop MKNOD --cap-drop AUDIT_WRITE --cap-drop SETFCAP"
REST = "--security-opt no-new-privileges --pids-limit 32768"
A2A: dict[str, Any] = {
    "image": "vllm/vllm-openai:v0.33.0",
    "engine": {"all2all-backend": "flashinfer_nvlink_two_sided"},
}


def endpoint(kind: str = "vllm", **values: Any) -> EndpointSettings:
    return settings(kind, key=None, **values)


def words(endpoint: EndpointSettings, hardware: Hardware = X86) -> list[str]:
    spec = endpoint_spec("llm", endpoint, "/srv/encodings", RESOLVED, _added(endpoint, hardware))
    return [argument for group in spec.docker_run("x") for argument in group]


def serving(endpoint: EndpointSettings, hardware: Hardware = X86) -> str:
    return endpoint_spec("llm", endpoint, "/srv/encodings", RESOLVED, _added(endpoint, hardware)).serving_hash


@pytest.mark.parametrize(
    ("endpoint_settings", "hardware", "flags"),
    [
        (endpoint(), X86, f"{USUAL} {REST}"),
        (endpoint(**A2A), X86, f"{USUAL} --cap-add SYS_PTRACE {REST}"),
        (endpoint(**A2A), Hardware(), f"{USUAL} --cap-add SYS_PTRACE {REST}"),
        (endpoint(**A2A), ARM, f"{USUAL} {REST}"),
        (endpoint(engine={"all2all_backend": "flashinfer_all2allv"}), X86, f"{USUAL} --cap-add SYS_PTRACE {REST}"),
        (endpoint(engine={"all2all-backend": "pplx"}), X86, f"{USUAL} {REST}"),
        (
            endpoint("sglang", image="lmsysorg/sglang:v0.5.23", engine={"moe-a2a-backend": "flashinfer"}),
            X86,
            f"{USUAL} --cap-add SYS_PTRACE {REST}",
        ),
        (endpoint("sglang", engine={"moe-a2a-backend": "flashinfer"}), X86, f"{USUAL} {REST}"),
        (endpoint("tensorrt-llm", engine={"enable_attention_dp": True}), X86, f"{USUAL} --cap-add SYS_PTRACE {REST}"),
        (endpoint("tensorrt-llm", engine={"enable_attention_dp": False}), X86, f"{USUAL} {REST}"),
        (endpoint(container={"capabilities": "none"}), X86, f"--cap-drop ALL {REST}"),
        (endpoint(**A2A, container={"capabilities": "none"}), X86, f"--cap-drop ALL {REST}"),
        (
            endpoint(**A2A, container={"capabilities": "none", "add_capabilities": ["SYS_PTRACE"]}),
            X86,
            f"--cap-drop ALL --cap-add SYS_PTRACE {REST}",
        ),
        (endpoint(**A2A, container={"add_capabilities": ["SYS_PTRACE"]}), X86, f"{USUAL} --cap-add SYS_PTRACE {REST}"),
        (
            endpoint(container={"pids_limit": 4096, "user": "1000:1000", "read_only": True}),
            X86,
            f"{USUAL} --security-opt no-new-privileges --pids-limit 4096 --user 1000:1000 --read-only --tmpfs /tmp",
        ),
    ],
)
def test_the_rights_of_a_container(endpoint_settings: EndpointSettings, hardware: Hardware, flags: str) -> None:
    assert " ".join(rights(endpoint_settings, hardware)) == flags
    assert flags in " ".join(words(endpoint_settings, hardware))


def test_endpoints_over_several_hosts_lock_memory_for_rdma() -> None:
    assert [need.capability for need in needs(endpoint(), X86, "several hosts")] == ["IPC_LOCK"]
    assert needs(endpoint(), X86) == []


def test_every_need_has_its_reason_and_its_source() -> None:
    rows = [table("rights")["default"], *table("rights")["needs"]]
    assert all(row["why"] and row["source"].startswith("https://") for row in rows)


def test_shared_memory_is_the_hosts_or_the_containers_own() -> None:
    assert "--ipc=host" in words(endpoint())
    arguments = words(endpoint(container={"shm_size": "16g"}))
    assert "--ipc=host" not in arguments
    assert arguments[arguments.index("--shm-size") + 1] == "16g"


def test_a_user_by_number_and_a_read_only_root_have_a_home_that_can_be_written_to() -> None:
    for container in ({"user": "1000"}, {"read_only": True}):
        assert "HOME=/scratch/home" in words(endpoint(container=container))
    assert "HOME=/scratch/home" not in words(endpoint())


def test_what_the_settings_say_restarts_and_what_is_usual_does_not() -> None:
    usual = serving(endpoint())
    assert serving(endpoint(container={"capabilities": "default"})) == usual
    for container in ({"capabilities": "none"}, {"shm_size": "1g"}, {"pids_limit": 4096}, {"user": "1"}):
        assert serving(endpoint(container=container)) != usual
    a2a = endpoint(**A2A)
    assert serving(a2a, X86) == serving(a2a, ARM), "a right that is given by data waits for the next switch"


def test_a_container_of_the_settings_is_said_in_the_words_of_before() -> None:
    """Otherwise an upgrade of Rackwright restarts each endpoint whose settings have a `container`."""
    spec = endpoint_spec("llm", endpoint(container={"shm_size": "1g"}), "/srv/encodings", RESOLVED)
    before = {"add_capabilities", "capabilities", "pids_limit", "read_only", "shm_size", "user"}
    assert set(spec.as_json()["container"]) == before, "say a new key where it is set, and nowhere else"


def test_the_page_is_made_from_the_data() -> None:
    root = Path(__file__).parents[2]
    written = runpy.run_path(str(root / "scripts" / "rights.py"))["page"]()
    assert written == (root / "docs/reference/container-rights.md").read_text(), "next: python scripts/rights.py"


# -- what is missing is reported: offline, and as a row of the host's


def row(name: str, container: dict[str, Any], total: int | None = None) -> CheckRow:
    settings = host_settings(engine_kind="vllm", container=container, **A2A)
    found = case(settings=settings, machine=machine())
    if total is not None:
        found.machine.values["MemTotal"] = str(total)  # type: ignore[index]
    [one] = [row for check in RIGHTS if check.name == name for row in check.rows(found)]
    return one


def test_a_capability_that_is_taken_away_is_a_warning_with_its_source() -> None:
    endpoint_settings = endpoint(**A2A, container={"capabilities": "none"})
    [found] = check_rights(endpoint_settings, X86)
    assert "leaves out SYS_PTRACE" in found.sentence
    assert "add_capabilities: [SYS_PTRACE]" in found.sentence
    assert "flashinfer/issues/2394" in found.sentence
    assert list(check_rights(endpoint(**A2A), X86)) == []
    verdict = row("capabilities", {"capabilities": "none"})
    assert verdict.warns
    assert "pidfd_getfd" in verdict.reading


@pytest.mark.parametrize(("transport", "codes"), [("any", ["RW0325"]), ("rdma", [])])
def test_locked_memory_of_a_group_is_missed_where_nothing_gives_it(transport: str, codes: list[str]) -> None:
    endpoint_settings = endpoint(hosts=2, network="host", container={"capabilities": "none"}, group_transport=transport)
    assert [one.code for one in check_rights(endpoint_settings, X86)] == codes


@pytest.mark.parametrize(("size", "ok"), [("16g", True), ("40g", False)])
def test_shared_memory_takes_at_most_half_of_the_hosts(size: str, ok: bool) -> None:
    verdict = row("shared memory", {"shm_size": size}, total=64 * 2**20)
    assert (verdict.ok, verdict.stops) == (ok, not ok)
    assert "of 64 GiB of memory" in verdict.reading
