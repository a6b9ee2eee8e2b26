# What a person runs. `make help` lists it. Nothing here needs git.

# The first Python of 3.11 or newer that runs; `make PYTHON=/path/to/python ...` to choose one.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Byte code is made when a module is first imported: half the time of an install was spent on
# files that nobody imports.
INSTALL := $(PIP) install --no-compile

NOTEBOOK ?= notebooks/01_read_a_model.ipynb
PORT ?= 8888
# More words for JupyterLab, e.g. LAB_ARGS=--no-browser
LAB_ARGS ?=
# JupyterLab asks root to say that it is meant.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# More words for pytest, e.g. PYTEST_ARGS="-m 'not slow'"
PYTEST_ARGS ?=
WORKERS ?= 2
# More words for the benchmarks, e.g. BENCH_ARGS=--quick
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab install test lint types notebooks unit bench settle settled format pins screenshot clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

lab: install  ## install and open JupyterLab on the first notebook
	$(BIN)/jupyter lab --port=$(PORT) --LabApp.default_url=/lab/tree/$(NOTEBOOK) $(AS_ROOT) $(LAB_ARGS)

install: $(VENV)/.lab  ## the virtual environment that `make lab` opens

test: lint types notebooks unit  ## everything: lint, types, notebooks, tests, browser

lint: $(VENV)/.test  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy, strict
	$(BIN)/mypy

notebooks: $(VENV)/.test  ## run the notebooks; each output must be the one that is committed
	$(BIN)/python -m pytest --nbval --nbval-current-env --nbval-cell-timeout 60 \
		--nbval-sanitize-with tests/nbval_sanitize.cfg notebooks

unit: $(VENV)/.test  ## unit and property tests, doctests, the browser run, the Binder set
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

bench: $(VENV)/.bench  ## ratios against named peers
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

settle: $(VENV)/.test  ## run the notebooks and write their outputs in settled form
	$(BIN)/python tools/settle_notebooks.py

settled: $(VENV)/.test  ## say which notebooks `make settle` would change
	$(BIN)/python tools/settle_notebooks.py --check

format: $(VENV)/.test  ## ruff: mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pins: $(BIN)/python  ## resolve the pinned sets anew (on Python 3.11)
	$(BIN)/python tools/pin.py

screenshot: $(VENV)/.test  ## take docs/screenshot.png
	$(BIN)/python -m tools.screenshot

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python of 3.11 or newer found; name one: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp per layer: it is there when what it depends on was installed.
$(VENV)/.lab: binder/requirements.txt pyproject.toml | $(BIN)/python
	$(INSTALL) --requirement binder/requirements.txt
	$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.lab
	$(INSTALL) --requirement requirements/test.txt
	@touch $@

$(VENV)/.bench: requirements/bench.txt $(VENV)/.lab
	$(INSTALL) --requirement requirements/bench.txt
	@touch $@
