"""Why an engine died comes first: its own process's error, not the server's traceback that points at it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_script
from tests.unit.test_transaction import AFTER, DYING

API = "(APIServer pid=1)"
SERVER = [
    f"{API} Traceback (most recent call last):",
    f'{API}   File "/vllm/v1/engine/utils.py", line 959, in wait_for_engine_startup',
    f"{API}     raise RuntimeError(",
    f"{API} RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
]
LONG = [f'{API}   File "/usr/lib/python3.12/asyncio/runners.py", line {number}, in run' for number in range(60)]
SHAPE = "AssertionError: Tried to load weights of size torch.Size([128, 384])to a parameter of size torch.Size([96])"
FREE = "ValueError: Free memory on device (3.22/4.0 GiB) on startup is less than desired GPU memory utilization (0.9)."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.88 GiB. GPU 1 has 21.96 GiB."
CORE = "(EngineCore_DP0 pid=17374) ERROR 09-28 15:47:24 [core.py:718]"
SIGQUIT = "[2025-08-08 09:09:09] Received sigquit from a child process. It usually means the child failed."
RANK0 = "[11/18/2025-09:33:30] [TRT-LLM] [RANK 0]"
NCCL = "[TensorRT-LLM][ERROR] Assertion failed: Failed, NCCL error ../runtime/ncclCommunicator.cpp:90 'invalid usage'"

CASES = {
    "vllm: a draft of another shape": (
        [f"(EngineCore pid=48) {SHAPE}", *SERVER, *LONG],
        f"(EngineCore pid=48) {SHAPE}",
    ),
    "vllm: logged, then raised": (
        [
            f"{CORE} EngineCore failed to start.",
            f"{CORE} Traceback (most recent call last):",
            f"{CORE}     raise ValueError(",
            f"{CORE} {FREE}",
            "(EngineCore_DP0 pid=17374) Process EngineCore_DP0:",
            "(EngineCore_DP0 pid=17374) Traceback (most recent call last):",
            f"(EngineCore_DP0 pid=17374) {FREE}",
            *SERVER,
        ],
        f"(EngineCore_DP0 pid=17374) {FREE}",
    ),
    "vllm 0.8: no names in front": (
        [
            "INFO 05-07 02:14:18 [monitor.py:33] torch.compile takes 17.00 s in total",
            "ERROR 05-07 02:14:18 [core.py:396] EngineCore failed to start.",
            "ERROR 05-07 02:14:18 [core.py:396] Traceback (most recent call last):",
            "ERROR 05-07 02:14:18 [core.py:396] ValueError: No available memory for the cache blocks. Try more.",
            "Traceback (most recent call last):",
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ],
        "ValueError: No available memory for the cache blocks. Try more.",
    ),
    "vllm: a worker of two": (
        [
            f"(Worker_TP1 pid=77) ERROR 11-05 10:00:00 [multiproc_executor.py:783] {OOM}",
            "(Worker_TP0 pid=76) ERROR 11-05 10:00:01 [multiproc_executor.py:783] torch.distributed.DistBackendError: "
            "NCCL error in: ProcessGroupNCCL.cpp:77, remote process exited or there was a network error",
            "(EngineCore_DP0 pid=48) Exception: WorkerProc initialization failed due to an exception in a background "
            "process. See stack trace for root cause.",
            *SERVER,
        ],
        f"(Worker_TP1 pid=77) {OOM}",
    ),
    "vllm 0.7: VllmWorkerProcess": (
        [
            f"(VllmWorkerProcess pid=2421) ERROR 10-14 12:32:47 multiproc_worker_utils.py:233] {OOM}",
            "(VllmWorkerProcess pid=2421) ERROR 10-14 12:32:47 multiproc_worker_utils.py:233] ",
            "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
        ],
        f"(VllmWorkerProcess pid=2421) {OOM}",
    ),
    "vllm: a rank in the name": (
        ["(VllmWorker rank=5 pid=3073) ValueError: The number of heads (30) must be divisible by 4.", *SERVER],
        "(VllmWorker rank=5 pid=3073) ValueError: The number of heads (30) must be divisible by 4.",
    ),
    "vllm: the worker while serving": (
        [
            f"(Worker_TP0 pid=76) ERROR 11-05 10:00:00 [multiproc_executor.py:826] {OOM}",
            "(EngineCore_DP0 pid=48) ERROR 11-05 10:00:00 [core.py:843] EngineCore encountered a fatal error.",
            "(EngineCore_DP0 pid=48) ERROR 11-05 10:00:00 [core.py:843] RuntimeError: Worker failed with error 'CUDA "
            "out of memory', please check the stack trace above for the root cause",
            f"{API} ERROR 11-05 10:00:00 [async_llm.py:525] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
            "encountered an issue. See stack trace (above) for the root cause.",
        ],
        f"(Worker_TP0 pid=76) {OOM}",
    ),
    "vllm: the server itself": (
        [
            f"{API} INFO 11-05 10:00:00 [api_server.py:1977] vLLM API server version 0.14.1",
            f"{API} Traceback (most recent call last):",
            f"{API} pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
            f"{API}   Value error, User-specified max_model_len (131073) is greater than the derived max_model_len",
            f"{API}     For further information visit https://errors.pydantic.dev/2.12/v/value_error",
        ],
        f"{API} pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig Value error, "
        "User-specified max_model_len (131073) is greater than the derived max_model_len For further information visit "
        "https://errors.pydantic.dev/2.12/v/value_error",
    ),
    "vllm: an option": (
        ["usage: vllm serve [model_tag] [options]", "vllm serve: error: unrecognized arguments: --nonsense"],
        "vllm serve: error: unrecognized arguments: --nonsense",
    ),
    "vllm: its core was killed": (
        [
            f"{API} ERROR 11-05 10:00:00 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, "
            "shutting down client.",
            f"{API} RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
        ],
        f"{API} Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
    ),
    "sglang: the scheduler": (
        [
            "[2025-08-08 09:09:08 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            '  File "/sglang/srt/managers/scheduler.py", line 2336, in run_scheduler_process',
            '    raise RuntimeError(f"NCCL error: {error_str}")',
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "",
            SIGQUIT,
            "[2025-08-08 09:09:10] ERROR:    Traceback (most recent call last):",
            "asyncio.exceptions.CancelledError",
            "RuntimeError: Event loop stopped before Future completed.",
        ],
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
    ),
    "sglang: chained, of two ranks": (
        [
            "[2026-01-08 09:09:08 DP0 TP1] Scheduler hit an exception: Traceback (most recent call last):",
            "KeyError: 'lm_head.weight'",
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            "Traceback (most recent call last):",
            "ValueError: the draft model has no lm_head.weight",
            "[2026-01-08 09:09:09] Rank 0 scheduler died during initialization (exit code: -3).",
            "RuntimeError: Initialization failed. Please see the error messages above.",
        ],
        "ValueError: the draft model has no lm_head.weight",
    ),
    "sglang: too little memory": (
        [
            "[2025-03-29 18:56:25 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "[2025-03-29 18:56:26] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
        ],
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    ),
    "sglang: the child was killed": (
        [
            "[2026-01-08 09:09:08] server_args=ServerArgs(model_path='/m')",
            "[2026-01-08 09:09:09] Rank 0 scheduler is dead. Please check if there are relevant logs.",
            "[2026-01-08 09:09:09] Exit code: -9",
            "EOFError",
        ],
        "Rank 0 scheduler is dead. Please check if there are relevant logs.",
    ),
    "tensorrt-llm: a rank": (
        [
            "[11/18/2025-09:33:29] [TRT-LLM] [RANK 0] [I] [Autotuner]: Autotuning process ends",
            f"{RANK0} [E] Failed to initialize executor on rank 0: {NCCL}",
            "1       0x7a14a782a0f4 tensorrt_llm::common::throwRuntimeError(char const*, int, char const*) + 76",
            f"{RANK0} [E] Executor worker initialization error: Traceback (most recent call last):",
            "Traceback (most recent call last):",
            "RuntimeError: Executor worker returned error",
        ],
        f"[RANK 0] [E] Failed to initialize executor on rank 0: {NCCL}",
    ),
    "tensorrt-llm: memory of another rank": (
        [
            "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] Error executing load_single_module with args ('model'): CUDA "
            "out of memory. Tried to allocate 40.00 MiB.",
            f"{RANK0} [E] Failed to initialize executor on rank 0: RuntimeError",
            "RuntimeError: Executor worker returned error",
        ],
        "[RANK 2] [E] Error executing load_single_module with args ('model'): CUDA out of memory. Tried to allocate "
        "40.00 MiB.",
    ),
    "tensorrt-llm: under mpirun": (
        [
            "[1,1]<stderr>:ValueError: Unknown checkpoint format",
            "--------------------------------------------------------------------------",
            "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
            "[host:77] *** Process received signal ***",
        ],
        "ValueError: Unknown checkpoint format",
    ),
    "tensorrt-llm: its C++": (
        [
            "terminate called after throwing an instance of 'tensorrt_llm::common::TllmException'",
            "  what():  [TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (worldConfig.cpp:80)",
            "[node:1847] *** Process received signal ***",
        ],
        "  what():  [TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (worldConfig.cpp:80)",
    ),
    "a library is missing": (
        ["ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"],
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    ),
    "the loader": (
        ["trtllm-serve: error while loading shared libraries: libmpi.so.40: cannot open shared object file"],
        "trtllm-serve: error while loading shared libraries: libmpi.so.40: cannot open shared object file",
    ),
    "killed": (
        ["Loading weights", "rackwright-llm.service: Main process exited, code=exited, status=137/n/a"],
        "rackwright-llm.service: Main process exited, code=exited, status=137/n/a",
    ),
    "torch names the rank": (
        [f"[rank1]: {OOM}", "[rank0]: torch.distributed.DistBackendError: NCCL error", *SERVER],
        f"[rank1]: {OOM}",
    ),
    "colours": (
        [f"\x1b[0;36m(EngineCore_DP0 pid=4)\x1b[0;0m {SHAPE}", *SERVER],
        f"(EngineCore_DP0 pid=4) {SHAPE}",
    ),
    "another start before": (
        [
            f"(EngineCore pid=48) {OOM}",
            "Starting LLM endpoint llm on port 8000 (release 0123456789ab)...",
            "(EngineCore pid=48) ValueError: the port is taken",
        ],
        "(EngineCore pid=48) ValueError: the port is taken",
    ),
    # On a busy host systemd starts the unit again before its end is looked into: seen with a real vLLM.
    "another start has begun": (
        [
            f"(EngineCore pid=48) {SHAPE}",
            *SERVER,
            "rackwright-llm.service: Control process exited, code=exited, status=1/FAILURE",
            "Starting rackwright-llm.service - LLM endpoint llm on port 8000 (release 0123456789ab)...",
            "Error: No such container: rackwright-llm",
        ],
        f"(EngineCore pid=48) {SHAPE}",
    ),
}
SILENT = {
    "another start has ended, too, and says nothing": [
        f"(EngineCore pid=48) {OOM}",
        "Starting rackwright-llm.service - LLM endpoint llm on port 8000 (release 0123456789ab)...",
        "rackwright-llm.service: Control process exited, code=exited, status=1/FAILURE",
    ],
    "nothing": ["Loading weights", "INFO 11-05 [x.py:1] falls back to avoid out of memory", "out of memory"],
    "the server alone points elsewhere": [*SERVER, *LONG],
    "words in a log": [
        f"{API} INFO 11-05 10:00:00 [launcher.py:38] Route: /health, Methods: GET",
        "[2026-01-08 09:09:08 TP0] Error handling is on: see the documentation",
        f"{API} WARNING 11-05 10:00:00 [x.py:1] ValueError: not this one",
        "Error: No such container: rackwright-llm",
    ],
}


def ended(log: list[str], folder: Path, kernel: str = "") -> tuple[list[str], str]:
    """Return what is printed of an engine that died with this journal, and the reason that is kept."""
    (folder / "journal").write_text("\n".join(log) + "\n")
    kernels = f"printf '%s\\n' '{kernel}'"
    stub = f"journalctl() {{ case $* in *kernel*) {kernels} ;; --sync) ;; *) cat {folder}/journal ;; esac; }}\n"
    words = {"unit": "u", "load_timeout": "9", "main": AFTER, "reason": str(folder / "reason"), "since": "now"}
    done = subprocess.run(
        ["sh", "-c", DYING + stub + host_script("await_start")],
        env={**os.environ, **words},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout.splitlines(), (folder / "reason").read_text()


@pytest.mark.parametrize("case", CASES)
def test_the_engine_s_own_error_comes_first_and_the_tail_follows_text(case: str, tmp_path: Path) -> None:
    log, last_error = CASES[case]
    printed, reason = ended(log, tmp_path)
    first = last_error[:400]
    assert printed[:2] == ["the server died after 0 s; its own last error, then its last lines:", first]
    assert printed[-1] == log[-1][:300]
    assert len(printed) == 2 + min(30, len(log))
    assert reason == f"the server died after 0 s: {first}\n"


@pytest.mark.parametrize("case", SILENT)
def test_where_no_line_is_an_error_of_its_own_the_tail_stands_alone_text(case: str, tmp_path: Path) -> None:
    printed, reason = ended(SILENT[case], tmp_path)
    assert printed[0] == "the server died after 0 s; its last lines:"
    assert reason == "the server died after 0 s\n"


def test_a_process_that_the_kernel_killed_is_named_text(tmp_path: Path) -> None:
    kernel = "Memory cgroup out of memory: Killed process 812 (VLLM::EngineCor) total-vm:9kB"
    log, _ = CASES["vllm: its core was killed"]
    printed, _ = ended(log, tmp_path, kernel)
    assert printed[1] == "the kernel killed VLLM::EngineCor for want of memory"
    printed, _ = ended([f"(EngineCore pid=4) {SHAPE}"], tmp_path, kernel)
    assert printed[1] == f"(EngineCore pid=4) {SHAPE}"


def test_a_flood_takes_bounded_time_and_room(tmp_path: Path) -> None:
    printed, _ = ended([f"(EngineCore pid=4) {SHAPE}", *["x" * 3000] * 3000], tmp_path)
    assert printed[1] == f"(EngineCore pid=4) {SHAPE}"
    printed, _ = ended([f"(EngineCore pid=4) ValueError: {'y' * 9000}"], tmp_path)
    assert len(printed[1]) == 400


def test_status_reads_it_of_a_unit_that_failed(tmp_path: Path) -> None:
    log, last_error = CASES["vllm: a draft of another shape"]
    (tmp_path / "journal").write_text("\n".join(log) + "\n")
    for name, text in {
        "journalctl": f"cat {tmp_path}/journal",
        "systemctl": "echo ActiveState=${STATE}; echo SubState=${STATE}",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "home" / "llm").mkdir(parents=True)
    names = ("images", "units", "lease", "docker", "rules", "left", "repairs", "drained", "groups")
    places = {name: str(tmp_path / "none") for name in names}
    script = host_script("status_read", endpoints="llm 1F40 http://127.0.0.1:1", home=str(tmp_path / "home"), **places)
    script = script.replace("PATH=/usr/local/sbin", f"PATH={tmp_path}:/usr/local/sbin")

    def printed(state: str) -> list[str]:
        env = {**os.environ, "STATE": state}
        done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert f"died {last_error}" in printed("failed")
    assert not [row for row in printed("inactive") if row.startswith("died")]
