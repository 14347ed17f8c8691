# Every target makes `.venv` when it is missing or out of date, so any of them is a first command.

PYTHON ?= python3
ARGS   ?=

BIN := .venv/bin
COMMA := ,
# Three stages: what `make run` runs, what its tests need, and what all tests, lint and
# documentation need on top of that.
RUNS  := .venv/.runs
TESTS := .venv/.tests
STAMP := .venv/.complete
# Present while an installation is under way; found at the start of one, it means the last was killed.
UNDER_WAY := .venv/.installing

# Some environments forbid compiled modules. The tests start hundreds of processes, and each would
# compile PyTorch and all else anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run test test-all torture lint docs fragments packages reproduce study bench sanitize clean data
.SUFFIXES:

help:  ## show this list
	@echo 'usage: make TARGET [ARGS="..."] [PYTHON=python3]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

run: $(RUNS) data  ## run the main experiment: slimfl run $(ARGS)
	@$(BIN)/slimfl run $(ARGS)

test: $(TESTS)  ## does it work here? The quick tests: pytest $(ARGS)
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not slow and not browser' $(ARGS)

# In the order of the folders: files with few tests would come last, and the live deployments, which
# wait for minutes, are such files.
test-all: $(STAMP) data  ## run all tests, also live federations and browsers: pytest $(ARGS)
	@$(BIN)/python -m pytest -n 2 --complete --dist loadfile --no-loadscope-reorder $(ARGS)

torture: $(STAMP)  ## test kills, full disks and hostile input exhaustively: pytest --torture $(ARGS)
	@$(BIN)/python -m pytest -n 2 --torture -m torture tests $(ARGS)

lint: $(STAMP)  ## check style, types and the order of the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: $(STAMP)  ## build the documentation into docs/_build/html
	@$(BIN)/python docs/fragments.py --check
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

fragments: $(STAMP)  ## regenerate the parts of README and docs that show code and results
	@$(BIN)/python docs/fragments.py

packages:  ## install from the checkout, from a wheel, and from an sdist without a compiler
	@PYTHON=$(PYTHON) bash .ci/packages

reproduce: $(RUNS) data  ## reproduce the paper: python -m lab reproduce $(ARGS)
	@$(BIN)/python -m lab reproduce $(ARGS)

study: $(RUNS) data  ## answer our own questions: python -m lab study $(ARGS)
	@$(BIN)/python -m lab study $(ARGS)

bench: $(RUNS) data  ## compare the engines on this machine: python -m benchmarks $(ARGS)
	@$(BIN)/python -m benchmarks $(ARGS)

# The C++ is built once more with the sanitizers; the tests of the compiled module then use that
# build. Python itself is not built for them, so their libraries are loaded before it.
SANITIZED := build/sanitized
sanitize: $(STAMP)  ## test the native engine under the address and undefined-behaviour sanitizers
	@$(BIN)/cmake -S . -B $(SANITIZED) -G Ninja -DSLIMFL_SANITIZE=ON -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	    -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	@$(BIN)/cmake --build $(SANITIZED)
	@SLIMFL_NATIVE_BUILD=$(CURDIR)/$(SANITIZED) ASAN_OPTIONS=detect_leaks=0 \
	    LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	    $(BIN)/python -m pytest -q -p no:cacheprovider tests/native

clean:  ## remove generated files, but keep .venv and runs/
	@rm -rf build dist docs/_build docs/reference/rooms docs/tutorials/pages \
	    .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .benchmarks
	@find . -path ./.venv -prune -o -path ./.git -prune -o -path ./runs -prune \
	    -o -name __pycache__ -type d -exec rm -rf {} +

data: $(RUNS)
	@$(BIN)/slimfl data fetch >/dev/null

# torch comes first, alone and with its exact version as the specifier: a range, or the same pin given
# only as a constraint, may resolve to a build for GPUs, which is gigabytes larger. On Linux that is
# what PyPI has, so the processors' build is taken from PyTorch's own index; TORCH_INDEX= asks for
# PyPI's. Python compiles what it imports, so pip need not compile everything. pip applies PIP_CONSTRAINT (older versions) or PIP_BUILD_CONSTRAINT (newer ones) inside
# the isolated build.
ifeq ($(shell uname -s),Linux)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
endif
$(RUNS) $(TESTS) $(STAMP): export PIP_CONSTRAINT := constraints.txt
$(RUNS) $(TESTS) $(STAMP): export PIP_BUILD_CONSTRAINT := constraints.txt
$(RUNS) $(TESTS) $(STAMP): export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A new package or a change in the C++ has to be installed again; other changes take effect at once.
$(RUNS): pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/native/* src/slimfl/*/__init__.py src/slimfl/*/*/__init__.py)
	@command -v $(PYTHON) >/dev/null || { \
	    echo 'There is no $(PYTHON): install Python 3.11 or newer, or name it with PYTHON=...' >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "slimfl needs Python 3.11 or newer and $(PYTHON) is $$($(PYTHON) --version 2>&1):" \
	         "name a newer one with PYTHON=..." >&2; exit 2; }
	@if [ -e $(UNDER_WAY) ]; then rm -rf .venv; fi
	@mkdir -p .venv && touch $(UNDER_WAY)
	@echo 'installing into .venv (some minutes the first time)' >&2
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --retries 1 --no-compile --no-deps -c constraints.txt \
	    $(addprefix --extra-index-url ,$(TORCH_INDEX)) $$(grep '^torch==' constraints.txt)
	@$(BIN)/python -m pip install -q --no-compile -c constraints.txt -e .
	@rm $(UNDER_WAY) && touch $@

# slimfl is installed by now, so this adds what an extra names and builds nothing again.
define ADD
@if [ -e $(UNDER_WAY) ]; then rm -rf .venv && $(MAKE) --no-print-directory $(RUNS); fi
@touch $(UNDER_WAY)
@echo 'adding what $(1) need' >&2
@$(BIN)/python -m pip install -q --no-compile -c constraints.txt 'slimfl[$(2)]'
@rm $(UNDER_WAY) && touch $@
endef

$(TESTS): $(RUNS)
	$(call ADD,the quick tests,test)

$(STAMP): $(RUNS)
	$(call ADD,all tests$(COMMA) lint and documentation,dev)
	@touch $(TESTS)
