# Every target is complete on a fresh machine with Python >= 3.10, a C++ compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard core/*)

# The benchmark data, when it lies beside the checkout, switches the data tests on.
ifndef LDSM_DATA
ifneq ($(wildcard ../shared/data),)
export LDSM_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-long lint bench peers clean

demo: $(VENV)/.installed
	$(BIN)/ldsm demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

test-long: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "long or not long"

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed peers
	$(BIN)/python benchmarks/engine.py

# Other people's programs live in an environment of their own.
peers: .venv-peers/.installed

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One editable install per set of extras; each also counts as the plain one.
INSTALL = $(BIN)/python -m pip install --quiet --no-build-isolation --editable

$(VENV)/.build-tools: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "nanobind>=3,<4" cmake ninja
	touch $@

$(VENV)/.installed: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) .
	touch $@

$(VENV)/.installed-test: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) ".[test]"
	touch $(VENV)/.installed $@

$(VENV)/.installed-lint: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) ".[lint,test]"
	touch $(VENV)/.installed $@

.venv-peers/.installed: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade pip
	.venv-peers/bin/python -m pip install --quiet -r benchmarks/peers-requirements.txt
	touch $@

clean:
	rm -rf build .venv .venv-peers
