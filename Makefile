# The two commands of a newcomer are `make demo` and `make test`; both do all their own set-up.
SHELL := /bin/sh
BIN := .venv/bin
LAB := demo

.PHONY: demo demo-down test unit browser lab proof lint types lock docs setup clean

setup:
	@scripts/setup

## demo: a lab of two hosts, one bare and one lived-in, deployed and asked a question
demo: setup
	@$(BIN)/rackwright lab up --id $(LAB) --hosts 2 --bare 1
	@RACKWRIGHT_LAB_ID=$(LAB) PYINFRA_PROGRESS=off $(BIN)/pyinfra inventory/lab.py deploy.py -y
	@RACKWRIGHT_LAB_ID=$(LAB) $(BIN)/rackwright chat inventory/lab.py "What is the capital of France?"
	@printf '\nWhat to type next:\n'
	@printf '  %s\n' "$(BIN)/pyinfra inventory/lab.py deploy.py -y      # again: nothing changes" \
	  "$(BIN)/rackwright lab ssh HOST               # look around on a host: systemctl cat rackwright-*" \
	  "$(BIN)/rackwright check inventory/lab.py --show-origin" \
	  "make demo-down                          # take it all away"

## demo-down: nothing of the demo stays
demo-down: setup
	@$(BIN)/rackwright lab down --id $(LAB)

## test: every test, the lab's included
test: setup lint types
	@scripts/run-tests -n 3 tests/unit tests/operations
	@scripts/browser
	@scripts/run-tests tests/browser
	@scripts/run-tests -n 4 --dist loadfile --no-loadscope-reorder tests/lab

unit: setup
	@scripts/run-tests -n 3 tests/unit tests/operations

browser: setup
	@scripts/browser
	@scripts/run-tests tests/browser

lab: setup
	@scripts/run-tests -n 4 --dist loadfile --no-loadscope-reorder tests/lab

## proof: forty hosts under constant load; good and bad changes (about an hour on two cores)
proof: setup
	@RACKWRIGHT_FLEET_HOSTS=$${RACKWRIGHT_FLEET_HOSTS:-40} $(BIN)/python -m pytest -v tests/lab/fleet

lint: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: setup
	@$(BIN)/mypy --no-error-summary

## lock: pin the development packages again
lock:
	@$(BIN)/uv pip compile -q --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  pyproject.toml requirements/dev.in -o requirements/dev.txt

clean:
	@rm -rf .venv artefacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
