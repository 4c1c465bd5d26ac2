# Everything that a checkout can do: `make help` lists it.
# ARGS continues to the program behind a target: make test ARGS="-k resume"

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
# As many tests at once; 0 runs them in one process, for a debugger.
JOBS ?= 4
# The order of the tests, and by `make test-all` what they draw.
SEED ?= 1

CHECKS := check-format check-lint check-types check-imports check-lock check-tree check-words check-switches check-docs

.PHONY: help setup browser shell demo demo-resume test test-all bench crash drift miniwob mutations check $(CHECKS) screenshots cassettes lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with exactly the locked packages
	@scripts/setup.sh

browser: setup ## make sure that there is a browser to drive
	@$(BIN)/runops install

shell: browser ## have the browser that tests start most, where it can be had
	@scripts/headless_shell.sh

# `exec` leaves no shell between: Ctrl-C reaches the demo once, and make says the exit code of the demo itself.
demo: setup browser ## show a run that is killed half-way and continues
	@exec $(BIN)/python scripts/demo.py $(ARGS)

demo-resume: setup browser ## continue with the run that the demo left
	@exec $(BIN)/python scripts/demo.py --resume $(ARGS)

# Each of the processes compiles every module anew where Python may not keep what it compiled.
test: setup browser shell ## run the tests
	@exec env PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=worksteal --randomly-seed=$(SEED) $(ARGS)

test-all: setup browser shell ## run the tests with all their cases, of which `make test` tries a sample
	@exec env RUNOPS_TEST_WHOLE=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=worksteal $(ARGS)

bench: setup browser ## measure
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

crash: setup browser shell ## kill checkouts and conversations at every moment that has a name, and continue (an hour)
	@exec $(BIN)/python -m tests.kills $(ARGS)

drift: setup browser ## change the shop under workflows in every way, and see what repair makes of it (10 minutes)
	@exec $(BIN)/python -m tests.drift $(ARGS)

miniwob: setup browser shell ## do 115 and more tasks of MiniWoB++ by workflow files, with fresh seeds (SEEDS="3 71" TASKS="a b" choose; 20 minutes)
	@exec $(BIN)/python -m tests.miniwob $(ARGS)

mutations: setup ## put faults into a copy of the code, and see that the tests find each
	@exec $(BIN)/python -m tests.mutations $(ARGS)

check: $(CHECKS) ## run all checks of the code (with -k: also after one failed)

check-format: setup
	@$(BIN)/ruff format --check --quiet . || { echo "  make it so:  $(BIN)/ruff format ." >&2; exit 1; }

check-lint: setup
	@$(BIN)/ruff check --quiet .

check-types: setup
	@$(BIN)/basedpyright

# The cache of lint-imports misses a change within the same second.
check-imports: setup
	@$(BIN)/lint-imports --no-cache --no-logo

check-lock: setup
	@$(BIN)/python scripts/check_lock.py

check-tree: setup
	@$(BIN)/python scripts/check_tree.py

check-words: setup
	@$(BIN)/python scripts/check_words.py

check-switches: setup
	@$(BIN)/python scripts/check_switches.py

check-docs: setup
	@$(BIN)/python scripts/command_docs.py --check
	@$(BIN)/python scripts/node_docs.py --check
	@$(BIN)/python scripts/setting_docs.py --check
	@$(BIN)/python scripts/state_docs.py --check

screenshots: setup browser ## take the pictures of the README anew
	@exec $(BIN)/python scripts/screenshots.py $(ARGS)

cassettes: setup browser ## record the cassettes of the examples again
	@$(BIN)/python scripts/record_cassettes.py $(ARGS)

lock: setup ## make requirements.lock again (ARGS=--upgrade: with the newest versions)
	@$(BIN)/uv pip compile pyproject.toml --extra dev --output-file requirements.lock --quiet \
		--universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url $(ARGS)
	@$(BIN)/python scripts/check_lock.py

clean: ## remove what the other targets made, but no runs
	@rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache test-results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
