# Everything happens inside this clone: the environment in .venv, results in results/.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help run test lint bench bench-projection bench-rates clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

.venv/installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv || echo "uv could not be installed; using pip"
	@if test -x $(BIN)/uv; then VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install -q -e '.[conic,frames,plot]'; \
	else $(BIN)/python -m pip install -q -e '.[conic,frames,plot]'; fi
	@touch $@

.venv/installed-test: .venv/installed
	@if test -x $(BIN)/uv; then VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install -q -e '.[test,lint]'; \
	else $(BIN)/python -m pip install -q -e '.[test,lint]'; fi
	@touch $@

run: .venv/installed  ## set up everything and run the main job
	@$(BIN)/python -m lighttouch.demo

test: .venv/installed-test  ## set up everything and run the tests
	@$(BIN)/python -m pytest

lint: .venv/installed-test  ## style, types and import rules
	@$(BIN)/ruff check src tests benchmarks
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: .venv/installed  ## speed against the paper's C++ and unconstrained SGD
	@$(BIN)/python -m benchmarks.speed

bench-projection: .venv/installed-test  ## the projection against general solvers
	@$(BIN)/python -m benchmarks.projection

bench-rates: .venv/installed  ## Tables 2 and 3 of the paper, measured
	@$(BIN)/python -m benchmarks.rates

clean:  ## remove the environment, caches and results
	rm -rf .venv results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
