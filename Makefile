# Everything one does here. Each target sets up what it needs in .venv and is quick when nothing changed.

VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo up assets ansible check test soak mutants bench proto format lock

help:
	@echo "make demo    a simulated data centre, one cluster from order to receipt; KEEP=1 leaves it running till Ctrl-C"
	@echo "make up      Boatyard on this machine: gRPC 8000, REST 8080"
	@echo "make assets  the Kubernetes programs for real clusters here; ALL=1 every version (minutes, once)"
	@echo "make ansible an environment for Ansible, which runs templates (half a minute, once)"
	@echo "make check   format, lint, types, imports, unit and contract tests (a minute)"
	@echo "make test    every suite, minutes per suite at the end (a quarter of an hour)"
	@echo "make soak    the long forms of proofs, and every planted bug (two hours; ONLY=\"storm cuts\" for some)"
	@echo "make mutants plants bugs in a copy of the tree, reports those no test notices (20 minutes); NAMES=, SAMPLE=10"
	@echo "make bench   measurements side by side"
	@echo "make proto   generates what is made from proto/"
	@echo "make setup   only .venv; make format: formats; make lock: locks the dependencies anew"

demo: setup
	@$(BIN)/boatyard demo $(if $(KEEP),--keep)

up: setup
	@$(BIN)/boatyard up

assets: setup
	@$(BIN)/boatyard assets install $(if $(ALL),--all)

ansible: setup
	@$(BIN)/python -m boatyard.automation.drivers.local.ansible_environment

check: setup
	@$(BIN)/python .ci/check.py

test: setup
	@$(BIN)/python .ci/suites.py --reports build/reports/test $(SUITES)

soak: setup
	@$(BIN)/python .ci/soak.py $(ONLY)

mutants: setup
	@$(BIN)/python tools/mutants/run.py $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(NAMES)

bench: setup
	@for words in fleet.py api.py nodes.py local.py automation.py "fleet.py --hub kube" operators.py; do \
		echo "== bench/$$words"; $(BIN)/python bench/$$words || exit 1; \
	done

proto: setup
	@$(BIN)/python tools/generate.py
	@$(BIN)/python tools/settings_page.py

format: setup
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# --- .venv -----------------------------------------------------------------------------------

setup: $(VENV)/.editable

# An environment whose Python has gone (upgraded, moved) is made anew.
ifneq ($(shell test -x $(BIN)/python && echo good),good)
.PHONY: $(VENV)/.created
endif

$(VENV)/.created:
	@python=$$(sh .ci/find-python) && $$python -m venv --clear $(VENV)
	@touch $@

# uv is many times quicker than pip but does not read pip's configuration: where only pip knows
# the way to a package index, pip does the work.
$(VENV)/.locked: $(VENV)/.created requirements/uv.txt requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt || \
		$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

# Nothing is fetched here: the build back-end is part of the locked set.
$(VENV)/.editable: $(VENV)/.locked pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	@touch $@

# --- locks -----------------------------------------------------------------------------------

COMPILE = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
	--python-version 3.11 --no-header

# What is locked stays as it is unless the lists ask for something else; UPGRADE=--upgrade renews it.
lock: $(VENV)/.locked
	@$(COMPILE) $(UPGRADE) requirements/uv.in -o requirements/uv.txt
	@$(COMPILE) $(UPGRADE) pyproject.toml -o requirements/run.txt
	@$(COMPILE) $(UPGRADE) pyproject.toml requirements/dev.in -c requirements/run.txt -o requirements/dev.txt
	@$(COMPILE) $(UPGRADE) requirements/build.in -c requirements/dev.txt -o requirements/build.txt
	@$(COMPILE) $(UPGRADE) requirements/eda.in -o requirements/eda.txt
	@$(COMPILE) $(UPGRADE) requirements/ansible.in -o requirements/ansible.txt
