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
	$(BIN)/python examples/quickstart.py

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

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "nanobind>=3,<4"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[test]"
	touch $@

$(VENV)/.installed-lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[lint]"
	touch $@

.venv-peers/.installed: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade pip
	.venv-peers/bin/python -m pip install --quiet -r benchmarks/peers-requirements.txt
	touch $@

clean:
	rm -rf build .venv .venv-peers
