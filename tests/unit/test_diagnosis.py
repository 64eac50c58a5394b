"""DCGM's reports, what they mean, when a host is diagnosed, and what comes of it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright.cli.diagnose import with_gpus
from rackwright.cli.main import parser
from rackwright.concerns.diagnosis import changes, report
from rackwright.concerns.diagnosis.changes import asked_changes, due_changes, due_level, level_for
from rackwright.concerns.diagnosis.report import Report, parse_report
from rackwright.concerns.diagnosis.seen import HostDiagnosis, SeenDiagnosis, parse_kept
from rackwright.concerns.drained import DRAINED, SeenDrained
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.gpus import GPUS, SeenGpus
from rackwright.concerns.gpus import parse as parse_gpus
from rackwright.concerns.preflight.concern import PREFLIGHT, WantedHost
from rackwright.concerns.preflight.row import Case, CheckRow
from rackwright.exit_codes import ExitCode
from rackwright.hostside import job_script
from rackwright.inspect.drift import drift_of
from rackwright.loading.host import InventoryHost
from rackwright.messages import ReadingError
from rackwright.plan.change import Job, Refuse
from rackwright.plan.concern import HostReading
from rackwright.record.cause import Cause
from rackwright.record.quarantine import after_run
from rackwright.record.record import record_of
from rackwright.rollout.launch import Run
from rackwright.rollout.maintenance.diagnosis import RecordedDiagnosis, diagnose_hosts, diagnoses_in, table
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Diagnosis as DiagnosisSection
from rackwright_lab.gpu.pose import DCGMI, FILES, write_host
from tests.unit.machines import EVERYTHING, case, docker, gpu_output, gpus
from tests.unit.test_plan import recorded, settings

GB10 = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Deployment",
                "tests": [
                    {
                        "name": "software",
                        "results": [
                            {
                                "entity_group": "GPU",
                                "entity_group_id": 1,
                                "entity_id": 0,
                                "status": "Fail",
                                "warnings": [
                                    {
                                        "error_category": 8,
                                        "error_id": 29,
                                        "error_severity": 5,
                                        "warning": "Persistence Mode: it is disabled for GPU 0",
                                    }
                                ],
                            }
                        ],
                        "test_summary": {"info": ["SRAM threshold checking was skipped"], "status": "Fail"},
                    }
                ],
            }
        ]
    },
    "entity_groups": [
        {"entities": [{"device_id": "2e12", "entity_id": 0}], "entity_group": "GPU", "entity_group_id": 1}
    ],
    "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
}
"""The form and the values of a report that others have published of DCGM 4.2.3 on a DGX Spark; messages are ours."""


def printed(document: object) -> Report:
    return parse_report(json.dumps(document))


def of_test(status: str, *warnings: Mapping[str, Any] | str, **more: Any) -> Report:
    result = {"entity_group": "GPU", "entity_id": 3, "status": status, "warnings": list(warnings), **more}
    tests = [{"name": "memory", "results": [result]}]
    return printed({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}})


def says(severity: int | None, category: int | None = 10) -> dict[str, Any]:
    return {"warning": "it says so", "error_id": 1, "error_severity": severity, "error_category": category}


# -- reports


def test_a_report_of_dcgm_4_has_versions_gpus_and_what_they_say() -> None:
    found = printed(GB10)
    assert (found.version, found.driver, found.error) == ("4.2.3", "580.82.09", "")
    (result,) = found.results
    assert (result.test, result.entity, result.status) == ("software", "GPU 0", "fail")
    assert result.remarks[0].error == 29


def test_persistence_mode_that_is_off_blames_no_gpu() -> None:
    assert printed(GB10).verdict == "warn"


@pytest.mark.parametrize(
    ("status", "warnings", "verdict"),
    [
        ("Pass", (), "pass"),
        ("Skip", (says(5, 3),), "skip"),
        ("Not Run", (), "skip"),
        ("Fail", (), "fail"),
        ("Fail", (says(2),), "fail"),
        ("Fail", (says(2, 4),), "fail"),
        ("Fail", (says(4, 13),), "fail"),
        ("Fail", (says(4, 8),), "warn"),
        ("Fail", (says(6, 10),), "fail"),
        ("Fail", (says(6, 8),), "warn"),
        ("Fail", (says(1, 9),), "warn"),
        ("Fail", (says(5, 13),), "warn"),
        ("Fail", (says(5, 13), says(2)), "fail"),
        ("Fail", (says(3, 0),), "fail"),
        ("Fail", (says(None, None),), "fail"),
        ("Fail", ("a sentence alone, as DCGM 2 has it",), "fail"),
        ("Pass", (says(2),), "warn"),
        ("Warn", (), "warn"),
        ("a word of a coming version", (), "warn"),
    ],
)
def test_a_gpu_is_blamed_by_the_severity_and_the_category_of_each_message(
    status: str, warnings: Sequence[Any], verdict: str
) -> None:
    assert of_test(status, *warnings).verdict == verdict


def test_a_host_without_a_failed_gpu_may_still_have_failed_as_a_whole() -> None:
    tests = [
        {
            "name": "software",
            "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}],
            "test_summary": {"status": "Fail", "warnings": [says(2, 12)]},
        }
    ]
    found = printed({"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]}})
    assert [str(row) for row in found.rows("fail")] == ["the host: software: it says so"]


def test_a_summary_that_repeats_its_gpus_adds_no_row() -> None:
    tests = [
        {
            "name": "memory",
            "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [says(5, 8)]}],
            "test_summary": {"status": "Fail", "warnings": [says(5, 8)]},
        }
    ]
    found = printed({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}})
    assert [row.where for row in found.rows("fail", "warn")] == ["GPU 0"]


def test_equal_messages_of_several_gpus_are_one_row_and_the_worst_comes_first() -> None:
    def result(gpu: int, *warnings: Any) -> dict[str, Any]:
        return {"entity_group": "GPU", "entity_id": gpu, "status": "Fail", "warnings": list(warnings)}

    tests = [
        {"name": "software", "results": [result(n, says(5, 8)) for n in range(3)]},
        {"name": "memory", "results": [result(1, says(2))]},
    ]
    found = printed({"DCGM Diagnostic": {"test_categories": [{"category": "any", "tests": tests}]}})
    assert [(row.verdict, row.where) for row in found.rows("fail", "warn")] == [
        ("fail", "GPU 1"),
        ("warn", "GPU 0, 1, 2"),
    ]


def test_why_nothing_could_be_tested_is_no_verdict() -> None:
    found = printed({"DCGM Diagnostic": {"runtime_error": "the driver is not there", "version": "4.5.2"}})
    assert (found.error, found.verdict, found.version) == ("the driver is not there", "skip", "4.5.2")
    assert printed({"DCGM Diagnostic": {"test_categories": []}}).error == "dcgmi reported no test"


@pytest.mark.parametrize(
    "text", ["", "Error: no such host engine", "{}", "[]", "{" * 5000, '{"DCGM Diagnostic": 3}', '{"a": {"b": 1}}']
)
def test_what_is_no_report_is_an_error_with_its_words(text: str) -> None:
    with pytest.raises(ReadingError, match="dcgmi did not print a report") as caught:
        parse_report(text)
    assert caught.value.code == "RW2607"


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "x",
        [None, 3, "x", []],
        [{"tests": 5}],
        [{"tests": [{"name": 3, "results": {"status": "Fail"}}]}],
        [{"tests": [{"results": [{"status": ["Fail"], "warnings": {"warning": None}}]}]}],
        [{"tests": [{"results": [{"entity_id": {"x": 1}, "status": "Fail", "warnings": [[1]]}]}]}],
    ],
)
def test_a_report_of_any_shape_is_read(value: object) -> None:
    found = printed({"DCGM Diagnostic": {"test_categories": value}, "metadata": value})
    assert found.rows("fail", "warn", "pass", "skip") is not None


def test_texts_of_a_report_are_harmless_and_bounded() -> None:
    found = of_test("Fail", {"warning": "a\x1b[2Jb\n" + "x" * 9999, "error_severity": 2})
    (row,) = found.rows("fail")
    assert "\x1b" not in row.text
    assert len(row.text) <= report.LONGEST


def test_a_report_before_others_words_is_found() -> None:
    assert parse_report(f"Warning: no host engine\n{json.dumps(GB10)}\nbye\n").version == "4.2.3"


# -- the lab's stand-in prints what is read


def standin(tmp_path: Path, *words: str, model: str = "b200", **switches: str) -> subprocess.CompletedProcess[str]:
    """Run the lab's dcgmi as on a host with these switches."""
    (tmp_path / "usr/lib/rackwright-lab").mkdir(parents=True, exist_ok=True)
    (tmp_path / "usr/lib/rackwright-lab/gpu").mkdir(exist_ok=True)
    write_host(tmp_path, "h1", model)
    conf = tmp_path / "dcgm.conf"
    conf.write_text("".join(f"{name}='{value}'\n" for name, value in {"TAKES": "0", **switches}.items()))
    environment = {
        **os.environ,
        "RACKWRIGHT_LAB_LIB": str(tmp_path / "usr/lib/rackwright-lab/gpu"),
        "RACKWRIGHT_LAB_CONF": str(tmp_path / "etc/rackwright-lab/gpu.conf"),
        "RACKWRIGHT_LAB_DCGM": str(conf),
    }
    return subprocess.run(
        ["sh", str(FILES / Path(DCGMI).name), *words], capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.parametrize("version", ["4.5.2", "3.3.9"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_standin_of_a_well_host_is_read(tmp_path: Path, version: str, level: int) -> None:
    done = standin(tmp_path, "diag", "-r", str(level), "-j", DCGM=version)
    json.loads(done.stdout)
    found = parse_report(done.stdout)
    assert (done.returncode, found.verdict, found.version) == (0, "pass", version)
    assert found.driver == "580.159.04"
    assert len({one.entity for one in found.results} - {""}) == (0 if version == "3.3.9" and level == 1 else 8)


@pytest.mark.parametrize("version", ["4.5.2", "3.3.9"])
def test_the_standin_of_a_broken_gpu_is_read(tmp_path: Path, version: str) -> None:
    done = standin(tmp_path, "diag", "-r", "2", "-j", DCGM=version, FAULTS="3 memory 52")
    json.loads(done.stdout)
    (row,) = parse_report(done.stdout).rows("fail")
    assert (done.returncode, row.where) == (205, "GPU 3")
    assert row.test in ("memory", "GPU Memory")


def test_the_older_form_has_its_text_under_another_key(tmp_path: Path) -> None:
    done = standin(tmp_path, "diag", "-r", "1", "-j", DCGM="3.3.9", FAULTS="0 software 29")
    (row,) = parse_report(done.stdout).rows("warn")
    assert (done.returncode, row.where, row.test) == (226, "GPU 0", "Persistence Mode")
    assert "disabled" in row.text


def test_the_standin_refuses_what_dcgmi_refuses(tmp_path: Path) -> None:
    assert standin(tmp_path, "diag", "--level", "1").returncode == 255
    assert standin(tmp_path, "diag", "-j").returncode == 255
    assert "PARSE ERROR" in standin(tmp_path, "nonsense").stderr


# -- kept on the host


def packed_file(document: object, **values: str) -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    fields = {"format": "1", "level": "2", "boot": "b1", "at": "5", "seconds": "118", "status": "0", "report": packed}
    return "".join(f"{key}={value}\n" for key, value in {**fields, **values}.items())


def diagnosed(found: Report, level: int = 1, boot: str = "b1") -> SeenDiagnosis:
    return SeenDiagnosis(True, HostDiagnosis(level, boot, 0, 3, found))


BROKEN = of_test("Fail", {"warning": "3 faulty memory elements", "error_severity": 2, "error_id": 52})
WELL = of_test("Pass")


def test_the_file_on_the_host_is_read_back() -> None:
    found = parse_kept(packed_file(GB10))
    assert (found.level, found.boot, found.seconds, found.report.version) == (2, "b1", 118, "4.2.3")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (packed_file("it broke", status="1"), "it broke; it ended with 1"),
        (packed_file("", status="124", errors=base64.b64encode(b"hm\n").decode()), "dcgmi took longer than it may: hm"),
        (packed_file("", status="127"), "dcgmi could not be started"),
        ("report=%%%\n", "it ended with ?"),
        ("", "it ended with ?"),
    ],
)
def test_a_file_without_a_report_says_why(text: str, error: str) -> None:
    assert parse_kept(text).report.error.endswith(error)


def test_a_reading_has_dcgm_and_its_last_report() -> None:
    text = base64.b64encode(packed_file(GB10).encode()).decode()
    found = parse_gpus(f"{gpu_output()}\ndcgmi\ndiagnosis {text}")
    assert found.diagnosis.installed
    assert found.diagnosis.last is not None
    assert found.diagnosis.last.report.version == "4.2.3"
    assert parse_gpus(gpu_output()).diagnosis == SeenDiagnosis()
    assert parse_gpus("dcgmi").diagnosis.installed


# -- when it is due


def host(gpus: SeenGpus, boot: str = "b1", serves: bool = False) -> HostReading:
    base = recorded("converged" if serves else "bare").by_concern
    return HostReading({**base, GPUS.name: gpus, DRAINED.name: SeenDrained(boot=boot)})


def with_dcgm(diagnosis: SeenDiagnosis, machine: str = "b200") -> SeenGpus:
    return replace(gpus(machine), diagnosis=diagnosis)


def test_a_host_is_diagnosed_once_a_boot_before_it_serves() -> None:
    fresh, done = with_dcgm(SeenDiagnosis(True)), with_dcgm(diagnosed(WELL))
    assert due_level(settings(), host(fresh)) == 1
    assert due_level(settings(), host(done)) == 0
    assert due_level(settings(), host(done, boot="b2")) == 1
    assert due_level(settings(), host(fresh, serves=True)) == 0
    assert due_level(settings(), host(gpus())) == 0
    assert due_level(settings(diagnosis={"before_serving": 0}), host(fresh)) == 0
    assert due_level(settings(diagnosis={"before_serving": 2}), host(done)) == 2


def test_what_failed_is_repeated_at_its_level_after_a_restart() -> None:
    broken = with_dcgm(diagnosed(BROKEN, level=3))
    assert due_level(settings(), host(broken)) == 0
    assert due_level(settings(), host(broken, boot="b2")) == 3


def test_the_diagnosis_is_a_change_of_preflight_that_a_plan_shows() -> None:
    (change,) = due_changes(settings(), host(with_dcgm(SeenDiagnosis(True))))
    (job,) = change.steps
    assert isinstance(job, Job)
    assert "dcgmi" in change.sentence
    assert job.timeout > changes.LONGEST[1]
    case_ = WantedHost(case(), looks=(change,))
    assert PREFLIGHT.changes(case_, case_.case.machine) == [change]
    assert PREFLIGHT.looks


def test_gpus_that_are_not_for_data_centres_are_tested_at_level_1_alone() -> None:
    assert level_for(gpus("b200").gpus, 3) == (3, "")
    assert level_for(gpus("gb10").gpus, 1) == (1, "")
    for name in ("gb10", "rtx_pro_6000"):
        level, why = level_for(gpus(name).gpus, 3)
        assert level == 1
        assert "level 1 only, not 3" in why
    (change,) = asked_changes(host(with_dcgm(SeenDiagnosis(True), "gb10")), ("h1",), 3)
    assert "-r 1" in str(change.steps[0])
    assert "NVIDIA GB10" in change.why


def test_a_host_that_serves_is_refused_until_it_is_drained() -> None:
    (change,) = asked_changes(host(with_dcgm(SeenDiagnosis(True)), serves=True), ("h1",), 1)
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.code == "RW2627"
    assert "rackwright drain INVENTORY --limit h1" in step.text
    rests = recorded("converged")[ENDPOINT]
    stopped = replace(rests, endpoints={name: replace(one, active="inactive") for name, one in rests.endpoints.items()})
    reading = host(with_dcgm(SeenDiagnosis(True)), serves=True)
    drained = HostReading({**reading.by_concern, ENDPOINT.name: stopped})
    assert isinstance(asked_changes(drained, ("h1",), 2)[0].steps[0], Job)


def test_without_dcgm_or_beside_others_processes_it_is_refused() -> None:
    (change,) = asked_changes(host(gpus()), ("h1",), 1)
    assert isinstance(change.steps[0], Refuse)
    assert "apt-get install -y datacenter-gpu-manager" in change.steps[0].text
    busy = replace(gpus("b200", process="42,C,python,2048 MiB"), diagnosis=SeenDiagnosis(True))
    (two,) = asked_changes(host(busy), ("h1",), 2)
    assert isinstance(two.steps[0], Refuse)
    assert "ps -fp 42" in two.steps[0].text
    assert isinstance(asked_changes(host(busy), ("h1",), 1)[0].steps[0], Job)


# -- the job


def run_job(tmp_path: Path, dcgmi: str, seconds: int = 20) -> str:
    """Run the job's script with a dcgmi of that text; returns the file that it keeps."""
    job, programs = tmp_path / "job", tmp_path / "bin"
    job.mkdir()
    programs.mkdir()
    for name in ("nonce", "log"):
        (job / name).write_text("n\n")
    (programs / "dcgmi").write_text(f"#!/bin/sh\n{dcgmi}\n")
    (programs / "dcgmi").chmod(0o755)
    file = tmp_path / "state" / "diagnosis"
    script = job_script("diagnose", level=2, seconds=seconds, kept=str(file), usual="no time")
    environment = {**os.environ, "JOB": str(job), "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script], check=True, env=environment)
    return file.read_text()


def test_the_job_keeps_the_report_whatever_dcgmi_ended_with(tmp_path: Path) -> None:
    text = run_job(tmp_path, f"[ \"$*\" = 'diag -r 2 -j' ] || exit 3\necho '{json.dumps(GB10)}'\nexit 226")
    found = parse_kept(text)
    assert (found.level, found.report.version, found.verdict) == (2, "4.2.3", "warn")
    assert "status=226" in text
    assert found.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_dcgmi_that_hangs_is_ended_and_said(tmp_path: Path) -> None:
    found = parse_kept(run_job(tmp_path, "echo slow >&2; exec sleep 60", seconds=1))
    assert found.report.error.endswith(": slow")
    assert found.verdict == "skip"


# -- preflight


def rows(found: Case) -> list[CheckRow]:
    return [row for row in WantedHost(found).rows if row.code in ("RW3107", "RW3167") and not row.ok]


def test_a_failed_gpu_stops_a_host_that_serves_nothing() -> None:
    (row,) = rows(case(gpus=with_dcgm(diagnosed(BROKEN, level=2))))
    assert (row.code, row.stops) == ("RW3107", True)
    assert ("-r 2" in row.reading, "GPU 3" in row.reading, "memory" in row.reading) == (True, True, True)
    assert "rackwright diagnose INVENTORY --limit HOST" in row.fix


def test_a_setting_that_dcgm_names_is_a_warning_with_its_words() -> None:
    (row,) = rows(case(gpus=with_dcgm(diagnosed(printed(GB10)))))
    assert (row.code, row.warns) == ("RW3167", True)
    assert "Persistence Mode" in row.fix


def test_a_diagnosis_that_could_not_run_is_a_warning() -> None:
    (row,) = rows(case(gpus=with_dcgm(diagnosed(Report(error="no host engine")))))
    assert row.warns
    assert "no host engine" in row.reading


def test_nothing_is_judged_where_it_serves_or_is_not_asked_for() -> None:
    broken = with_dcgm(diagnosed(BROKEN))
    assert rows(case(gpus=broken, docker=docker(serving=("llm",)))) == []
    off = case(gpus=broken)
    without = off.settings.model_copy(update={"diagnosis": DiagnosisSection(before_serving=0)})
    assert rows(replace(off, settings=without)) == []
    well = [row for row in WantedHost(case(gpus=with_dcgm(diagnosed(WELL)))).rows if row.code == "RW3107"]
    assert [row.ok for row in well] == [True]
    assert [row for row in WantedHost(case()).rows if row.code == "RW3107"] == []


# -- a run of it


class MadeUpRun(Run):
    """A run whose pyinfra only notes what it would have."""

    def pyinfra(self, deploy: Path, hosts: Sequence[str], data: Mapping[str, Any], **fields: Any) -> int:
        assert (deploy.name, fields) == ("diagnose.py", {"level": 2})
        assert hosts == self.hosts
        for kind, values in EVENTS:
            self.note(kind, **values)
        return 0


EVENTS: list[tuple[str, dict[str, Any]]] = []


def made_up_run(folder: Path, *events: tuple[str, dict[str, Any]]) -> Run:
    EVENTS[:] = events
    return MadeUpRun(folder / "i.py", folder, ("h1", "h2"), folder / "x.jsonl")


def event(host: str, verdict: str, *found: Sequence[str]) -> tuple[str, dict[str, Any]]:
    rows_ = [list(one) for one in found]
    values = {"host": host, "level": 2, "verdict": verdict, "rows": rows_, "summary": "3 tests", "dcgm": "4.5.2"}
    return "diagnosis", {**values, "seconds": 9, "error": ""}


def done(host: str, state: str = "done") -> tuple[str, dict[str, Any]]:
    return "host", {"host": host, "state": state}


def test_hosts_that_are_well_end_it_with_0(tmp_path: Path) -> None:
    run = made_up_run(tmp_path, event("h1", "pass"), event("h2", "warn"), done("h1"), done("h2"))
    status, text = diagnose_hosts(run, 2)
    assert (status, text.startswith("done: the GPUs of 2 hosts")) == (ExitCode.DONE, True)


def test_a_failed_gpu_ends_it_with_1_and_the_next_commands(tmp_path: Path) -> None:
    failed = event("h2", "fail", ("fail", "GPU 3", "memory", "3 faulty memory elements"))
    run = made_up_run(tmp_path, event("h1", "pass"), failed, done("h1"), done("h2", "failed before its switch"))
    status, text = diagnose_hosts(run, 2)
    assert status == ExitCode.ERROR
    assert "RW0857" in text
    assert "failed on h2" in text
    assert "quarantine INVENTORY --release" in text


def test_a_host_that_was_not_tested_is_named(tmp_path: Path) -> None:
    run = made_up_run(tmp_path, event("h1", "pass"), done("h1"), done("h2", "failed before its switch"))
    status, text = diagnose_hosts(run, 2)
    assert (status, "RW0847" in text, "not tested: h2" in text) == (ExitCode.ERROR, True, True)


def test_the_table_has_a_row_a_host_and_one_for_each_bad_result() -> None:
    kinds = [event("h1", "pass"), event("h2", "fail", ("fail", "GPU 3", "memory", "broken"))]
    found = diagnoses_in([{"kind": kind, **values} for kind, values in kinds])
    lines = table(found, None).splitlines()
    assert [row.split()[:3] for row in lines[2:]] == [["h1", "2", "pass"], ["h2", "2", "fail"], ["h2", "2", "fail"]]
    assert "3 tests, DCGM 4.5.2, 9 s" in lines[2]
    assert "GPU 3" in lines[4]
    assert "not run" in table([RecordedDiagnosis("h1", 1, "skip", (), "", "no engine")], None)


def test_a_failed_gpu_puts_its_host_in_quarantine_with_the_reason() -> None:
    events: list[dict[str, Any]] = [
        {"kind": "begin", "hosts": ["h1"], "purpose": "diagnose"},
        {"kind": "phase", "name": "diagnose"},
        {"kind": "failure", "host": "h1", "cause": Cause.GPU, "check": "dcgmi diag -r 2: GPU 3", "wave": 0},
        {"kind": "host", "host": "h1", "state": "failed before its switch"},
    ]
    after = after_run({}, record_of("r1", events), "now")
    assert after["h1"].why == "dcgmi diag -r 2: GPU 3"


def test_the_level_is_one_of_three() -> None:
    assert parser("diagnose").parse_args(["diagnose", "i.py"]).level == 2
    with pytest.raises(SystemExit):
        parser("diagnose").parse_args(["diagnose", "i.py", "--level", "4"])


@pytest.mark.parametrize("value", [-1, 4, True, "all"])
def test_a_level_that_dcgm_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        settings(diagnosis={"before_serving": value})


def test_a_diagnosis_that_is_due_is_no_drift() -> None:
    reading = host(with_dcgm(SeenDiagnosis(True)), serves=True)
    rests = replace(reading[ENDPOINT], endpoints={})
    due = HostReading({**reading.by_concern, ENDPOINT.name: rests})
    assert due_level(settings(), due) == 1
    found = drift_of("h1", settings(), due, EVERYTHING).findings
    assert not [one for one in found if "diagnose" in one.text]


def test_mere_gateways_are_not_tested_beside_other_hosts() -> None:
    mere = InventoryHost("g1", ("gateway",), {}, HostSettings.model_validate({}).with_gateways((), ()), {})
    serving = InventoryHost("a", ("b200",), {}, settings(), {})
    assert with_gpus([mere, serving]) == [serving]
    assert with_gpus([mere]) == [mere], "it says itself that it has no dcgmi"
