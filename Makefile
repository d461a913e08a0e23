# Spendgate. `make` alone lists the targets. Needs python3 (3.11 or newer) and make, nothing else.

PYTHON ?= python3
# Of the functions that `make deploy` builds: arm64 or x86_64.
ARCHITECTURE ?= arm64
UV_VERSION := 0.13.9

VENV := .venv
RUN := $(VENV)/bin/python
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
# More of them, see pyproject.toml, dependency-groups: of the deployment alone, the emulator with AWS's runtime of Lambda,
# SAM and checkov; and everything with the fuzzers beside it.
EMULATOR := .venv-deploy
SAM := .venv-sam
CHECKOV := .venv-checkov
FUZZERS := .venv-fuzz

# Folders of code that exist so far; mypy refuses an empty one.
CODE := layers/core/spendgate tests \
	$(if $(wildcard functions/*/*.py),functions) \
	$(if $(wildcard benchmarks/*.py),benchmarks) \
	$(if $(wildcard tools/*.py),tools)

.DEFAULT_GOAL := help
.PHONY: help local demo test deploy-test deploy release-check fuzz fuzz-parsers fuzz-http simulate simulate-mutants check format bench catalogue agents lock clean install

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

local: $(INSTALLED) ## the whole gateway on this machine, with a demo provider; Ctrl-C ends it
	@$(VENV)/bin/spendgate local $(ARGS)

demo: $(INSTALLED) ## a runaway agent meets its budget
	@$(VENV)/bin/spendgate demo $(ARGS)

test: $(INSTALLED) ## all tests, on every core
	@$(RUN) -m pytest --numprocesses auto $(ARGS)

deploy: $(INSTALLED) $(SAM)/.locked ## to the AWS account of your credentials; ARGS=--guided asks for what is yours, and keeps it
	@PYTHON=$(abspath $(RUN)) PLATFORM=$(subst arm64,aarch64,$(ARCHITECTURE)) SAM_CLI_TELEMETRY=0 \
		$(SAM)/bin/sam build --parameter-overrides Architecture=$(ARCHITECTURE)
	@SAM_CLI_TELEMETRY=0 $(SAM)/bin/sam deploy $(ARGS)

deploy-test: $(INSTALLED) $(EMULATOR)/.locked $(SAM)/.locked $(CHECKOV)/.locked ## the template and the functions, built, deployed to an emulator and driven
	@$(RUN) -m pytest tests/deployment -o python_files='check_*.py' $(ARGS)

release-check: $(INSTALLED) $(SAM)/.locked ## deploy a throwaway stack, look at it as its users do, remove everything; ARGS="--stack NAME" looks at one that is there
	@$(if $(or $(findstring --stack,$(ARGS)),$(findstring --help,$(ARGS))),,PYTHON=$(abspath $(RUN)) PLATFORM=$(subst arm64,aarch64,$(ARCHITECTURE)) SAM_CLI_TELEMETRY=0 \
		$(SAM)/bin/sam build --parameter-overrides Architecture=$(ARCHITECTURE))
	@PYTHONPATH=.:layers/core $(RUN) -m tools.release_check $(if $(findstring --stack,$(ARGS)),,--parameter Architecture=$(ARCHITECTURE)) $(ARGS)

fuzz: $(INSTALLED) ## requests against a provider that bills the worst it may; ARGS="--cases 1000000 --seed 7"
	@PYTHONPATH=.:layers/core $(RUN) -m tests.fuzz $(ARGS)

fuzz-parsers: $(FUZZERS)/.locked ## the parsers under a coverage-guided fuzzer; ARGS="--seconds 600 --target json"
	@PYTHONPATH=.:layers/core $(FUZZERS)/bin/python -m tests.parsers $(ARGS)

fuzz-http: $(FUZZERS)/.locked ## the gateway and the admin API under schemathesis; ARGS="--examples 1000 --seed 7"
	@PYTHONPATH=.:layers/core $(FUZZERS)/bin/python -m tests.surface $(ARGS)

conformance: $(INSTALLED) ## try to overspend a gateway; ARGS="--driver spendgate --driver hardcap --peers FOLDER --write docs/conformance.md"
	@$(VENV)/bin/spendgate conformance $(ARGS)

simulate: $(INSTALLED) ## whole histories from seeds; SEED=7 SEEDS=100 STEPS=1000, ARGS="--processes 2"
	@PYTHONPATH=.:layers/core $(RUN) -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(STEPS),--steps $(STEPS)) $(ARGS)

simulate-mutants: $(INSTALLED) ## put faults into the code, one at a time, and see each caught by the simulation
	@PYTHONPATH=.:layers/core $(RUN) -m tests.simulation.mutants $(ARGS)

check: $(INSTALLED) ## ruff and mypy, strict
	@$(RUN) -m ruff check $(CODE)
	@$(RUN) -m ruff format --check $(CODE)
	@$(RUN) -m mypy $(CODE)

format: $(INSTALLED) ## let ruff format the code and mend what it can
	@$(RUN) -m ruff check --fix-only $(CODE)
	@$(RUN) -m ruff format $(CODE)

bench: $(INSTALLED) ## the figures: round trips, write units, CPU a call, import time
	@$(RUN) -m benchmarks $(ARGS)

catalogue: $(INSTALLED) ## build the shipped prices, and say where their sources differ
	@$(RUN) -m tools.catalogue $(ARGS)

agents: $(INSTALLED) ## run the coding agents in a folder of npm's for a turn; ARGS="--programs FOLDER"
	@$(RUN) -m tools.agents $(ARGS)

install: $(INSTALLED) ## make .venv as requirements.lock says

lock: $(INSTALLED) ## resolve requirements.lock anew; ARGS=--upgrade for newer versions
	@$(RUN) -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@$(VENV)/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
		--extra local --extra dev $(ARGS) --output-file requirements.lock pyproject.toml
	@$(VENV)/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
		--constraints requirements.lock --output-file layers/core/requirements.txt pyproject.toml
	@for group in deploy sam checkov; do $(VENV)/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
		--group pyproject.toml:$$group $(ARGS) --output-file requirements-$$group.lock; done
	@$(VENV)/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --constraints requirements.lock \
		--extra local --extra dev --group fuzz $(ARGS) --output-file requirements-fuzz.lock pyproject.toml
	@if grep -nE '://|^ *--(find-links|index-url|extra-index-url|trusted-host)' requirements*.lock layers/core/requirements.txt; then \
		echo 'make: a lock names a host or a path (see above)' >&2; exit 1; fi

clean: ## remove .venv and every cache; the gateway's state in .spendgate stays
	@rm -rf $(VENV) $(EMULATOR) $(SAM) $(CHECKOV) $(FUZZERS) .aws-sam .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov layers/core/*.egg-info
	@find layers functions tests tools -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# $(call sync,PYTHON,LOCK): by uv, which takes seconds where pip needs minutes; by pip where only pip is told of a registry.
sync = $(VENV)/bin/uv pip install --no-config --quiet --require-hashes --python $(1) -r $(2) || \
	{ echo 'make: uv could not; by pip instead, which takes minutes ...' >&2; \
	$(1) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(2); }

# Two marks: a changed lock makes the environment anew, so that it never holds what the lock does not;
# a changed pyproject.toml only installs the project's own entry again.
$(LOCKED): requirements.lock
	@command -v $(PYTHON) >/dev/null || { \
		echo 'make: $(PYTHON) is not installed; Spendgate needs Python 3.11 or newer (Debian: apt install python3 python3-venv)' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1); Spendgate needs Python 3.11 or newer (make PYTHON=python3.13 ...)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'make: $(PYTHON) cannot make an environment; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@echo 'Making $(VENV) (once, about a minute) ...' >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@$(call sync,$(RUN),$<)
	@touch $@

$(EMULATOR)/.locked $(SAM)/.locked $(CHECKOV)/.locked $(FUZZERS)/.locked: .venv-%/.locked: requirements-%.lock $(LOCKED)
	@echo 'Making .venv-$* (once, about a minute) ...' >&2
	@$(RUN) -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@$(PYTHON) -m venv --clear .venv-$*
	@$(call sync,.venv-$*/bin/python,$<)
	@touch $@

$(INSTALLED): pyproject.toml $(LOCKED)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
