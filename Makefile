# Everything here works in a fresh clone. What is set up once is not asked for again: a stamp in each environment
# says so, and as long as it is newer than the three files it depends on, neither pip nor apt-get is called.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
EXAMPLES ?= 1000
# Many tests wait for a child or a server, so more of them than there are processors run at once; each worker takes whole
# files, and starts Ray and a master of its own where a file needs one.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
EXTRAS := dev,docs,ray,mooncake-cpu
# What the Mooncake wheel links against and does not bring: library=Debian package.
LIBRARIES := libibverbs.so.1=libibverbs1 libnuma.so.1=libnuma1 libcurl.so.4=libcurl4
# What tests of faults and of completion start: program=Debian package.
TOOLS := etcd=etcd-server ip=iproute2 nft=nftables zsh=zsh fish=fish
# What tests of the schema in an editor run, for the packages in tests/editor/package.json; the demo does without.
JAVASCRIPT := node=nodejs npm=npm

BIN := .venv/bin
READY := .venv/.ready
EDITOR_READY := tests/editor/node_modules/.ready
WHEELS_READY := .wheels/.ready
LOWEST := .venv-lowest/bin
LOWEST_READY := .venv-lowest/.ready
LOWEST_TOOLS := build hatchling hypothesis jsonschema numpy packaging pytest pytest-timeout pytest-xdist
# Files of tests that are not about the core, or need more than the tools above.
LOWEST_WITHOUT := docs* editor embedding_hydra installed store* typing
TORCH_BIN := .venv-torch/bin
TORCH_READY := .venv-torch/.ready
# The usual wheels for Linux bring CUDA along, some GB of it. PyTorch's page "Get Started" has the pip arguments for a CPU
# build; give them as TORCH_ARGS.
TORCH_ARGS ?= torch==2.13.0
SECONDS ?= 300
# `write` puts the outputs of `make two-node` into docs/how-to/check-a-cluster.md.
PAGE ?=
DOCS_PORT ?= 8000
PIP := -m pip --disable-pip-version-check install -qq

.PHONY: help setup libraries javascript demo test lint suite test-lowest test-torch docs two-node bench soak fuzz schemas clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: libraries $(READY) $(EDITOR_READY) $(WHEELS_READY) ## make .venv with everything that demo and test need (PYTHON=python3.12 picks another Python)

demo: libraries $(READY) ## start a real Mooncake master on loopback, explain, move a rollout, shut down
	@$(BIN)/python -m mooncake_config demo

test: setup lint suite test-lowest ## all checks and tests, as in CI

lint: $(READY) ## ruff, mypy, import-linter
	@echo "lint: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --diff .
	@echo "lint: mypy"
	@$(BIN)/mypy --no-error-summary
	@echo "lint: import-linter"
	@report=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }

suite: libraries $(READY) $(EDITOR_READY) $(WHEELS_READY) ## the tests, with the coverage of branches held
	@echo "suite: pytest under coverage"
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -n $(WORKERS) --dist loadfile
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

test-lowest: $(LOWEST_READY) ## the core's tests at the lowest versions that pyproject.toml allows
	@echo "test-lowest: pytest at constraints-lowest.txt"
	@$(LOWEST)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not ray and not mooncake" $(LOWEST_WITHOUT:%=--ignore-glob="tests/test_%.py")

test-torch: libraries $(TORCH_READY) ## the tests of tensors, with a CPU build of torch (TORCH_ARGS=… is passed to pip)
	@echo "test-torch: pytest with torch"
	@$(TORCH_BIN)/python -m pytest -q tests/test_store_tensors.py tests/test_docs_types.py

docs: setup ## build the site strictly into site/, and serve it on loopback (DOCS_PORT=8000)
	@$(BIN)/python -c "import socket; socket.create_server(('127.0.0.1', $(DOCS_PORT)))" 2>/dev/null || \
		{ echo "docs: port $(DOCS_PORT) is taken or is none; choose another: make docs DOCS_PORT=8001" >&2; exit 2; }
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "docs: http://127.0.0.1:$(DOCS_PORT)/ until Ctrl-C"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory site $(DOCS_PORT)

two-node: setup ## the walkthrough on two hosts of namespaces, and a cluster that is broken in eight ways (needs root)
	@PAGE=$(PAGE) $(BIN)/python -m pytest -q -s --no-header tests/two_node

soak: setup ## producers, consumers and faults against a real master for SECONDS=300; status 1 when anything is lost
	@$(BIN)/python -m benchmarks.soak $(SECONDS)

bench: setup ## the benchmarks, each figure beside its peer
	@$(BIN)/python -m benchmarks

fuzz: setup ## the property tests with new questions, and how many were asked (EXAMPLES=1000 of each, 20 minutes or so)
	@EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=fuzz --hypothesis-show-statistics --timeout=1800 | \
	awk '/^ +- [0-9]+ passing, / {asked += $$2 + $$4 + $$7} {print} END {print "fuzz: " asked + 0 " executions"}'

schemas: setup ## write schemas/ anew from the table of fields
	@$(BIN)/python -m mooncake_config schema --write

clean: ## remove the environments and all that tools left
	@rm -rf .venv .venv-lowest .venv-torch build dist site .coverage .coverage.* htmlcov \
		.wheels tests/editor/node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backends, ours and that of OmegaConf's parser, come first and from the same pins: no install then needs an
# environment of its own. So does pip: what an old Python brings cannot install for a new one.
$(READY): pyproject.toml constraints.txt Makefile
	@echo "setup: .venv with $$($(PYTHON) --version) and the extras $(EXTRAS)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) -c constraints.txt hatchling pip setuptools
	@$(BIN)/python $(PIP) -c constraints.txt --no-build-isolation -e '.[$(EXTRAS)]'
	@touch $@

# No lock file: it would hold the address of a registry. Every package stands in package.json, in one exact version.
$(EDITOR_READY): tests/editor/package.json | javascript
	@echo "setup: tests/editor/node_modules with npm $$(npm --version)"
	@npm install --prefix tests/editor --no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
	@touch $@

$(WHEELS_READY): $(READY) tests/pythons.py
	@echo "setup: .wheels for an install without extras on each Python of this machine"
	@$(BIN)/python tests/pythons.py .wheels
	@touch $@

$(LOWEST_READY): pyproject.toml constraints.txt constraints-lowest.txt Makefile
	@echo "setup: .venv-lowest with $$($(PYTHON) --version) and the lowest versions of the core's dependencies"
	@$(PYTHON) -m venv .venv-lowest
	@$(LOWEST)/python $(PIP) -c constraints.txt $(LOWEST_TOOLS)
	@$(LOWEST)/python $(PIP) -c constraints-lowest.txt --no-build-isolation -e .
	@touch $@

$(TORCH_READY): pyproject.toml constraints.txt Makefile
	@echo "setup: .venv-torch with $$($(PYTHON) --version) and $(TORCH_ARGS)"
	@$(PYTHON) -m venv .venv-torch
	@$(TORCH_BIN)/python $(PIP) -c constraints.txt hatchling hypothesis numpy pytest pytest-timeout
	@$(TORCH_BIN)/python $(PIP) $(TORCH_ARGS)
	@$(TORCH_BIN)/python $(PIP) -c constraints.txt --no-build-isolation -e '.[ray,mooncake-cpu]'
	@touch $@

javascript: TOOLS := $(JAVASCRIPT)
javascript: LIBRARIES :=

libraries javascript:
	@known=$$(PATH="$$PATH:/usr/sbin:/sbin" ldconfig -p 2>/dev/null || true); missing=; \
	for pair in $(LIBRARIES); do \
		[[ $$known == *"$${pair%%=*} "* ]] || missing+=" $${pair#*=}"; \
	done; \
	for pair in $(TOOLS); do \
		PATH="$$PATH:/usr/sbin:/sbin" command -v "$${pair%%=*}" >/dev/null || missing+=" $${pair#*=}"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as_root=; \
	elif command -v sudo >/dev/null; then as_root=sudo; \
	else echo "setup: this needs$$missing. Run as root: apt-get install -y$$missing" >&2; exit 1; fi; \
	echo "setup: apt-get install$$missing"; \
	export DEBIAN_FRONTEND=noninteractive; \
	{ $$as_root apt-get -qq update && $$as_root apt-get -qq install -y $$missing; } >/dev/null || \
	{ echo "setup: that failed. Run as root: apt-get install -y$$missing" >&2; exit 1; }
