# Every target makes `.venv` when it is missing or out of date, so any of them is a first command.

PYTHON ?= python3
ARGS   ?=

BIN   := .venv/bin
STAMP := .venv/.complete
# Present while an installation is under way; found at the start of one, it means the last was killed.
UNDER_WAY := .venv/.installing

.DEFAULT_GOAL := help
.PHONY: help run test torture lint docs bench sanitize clean data
.SUFFIXES:

help:  ## show this list
	@echo 'usage: make TARGET [ARGS="..."] [PYTHON=python3]'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 10

run: $(STAMP) data  ## run the main experiment: slimfl run $(ARGS)
	@$(BIN)/slimfl run $(ARGS)

test: $(STAMP) data  ## run the tests: pytest -n 2 $(ARGS)
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

torture: $(STAMP)  ## kills, full disks and hostile input, exhaustively: pytest --torture $(ARGS)
	@$(BIN)/python -m pytest -n 2 --torture -m torture tests/torture $(ARGS)

lint: $(STAMP)  ## check style, types and the order of the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: $(STAMP)  ## build the documentation into docs/_build/html
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(STAMP) data  ## compare the engines on this machine: slimfl bench $(ARGS)
	@$(BIN)/slimfl bench $(ARGS)

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

clean:  ## remove what the other targets made, but keep .venv and runs/
	@rm -rf build dist docs/_build docs/_generated docs/reference/rooms docs/tutorials/pages \
	    .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .benchmarks
	@find . -path ./.venv -prune -o -path ./.git -prune -o -path ./runs -prune \
	    -o -name __pycache__ -type d -exec rm -rf {} +

data: $(STAMP)
	@$(BIN)/slimfl data fetch >/dev/null

# torch comes first and with its exact version as the specifier: a range, or the same pin given only
# as a constraint, may resolve to a build for GPUs, which is gigabytes larger. pip applies
# PIP_CONSTRAINT (older versions) or PIP_BUILD_CONSTRAINT (newer ones) inside the isolated build.
$(STAMP): export PIP_CONSTRAINT := constraints.txt
$(STAMP): export PIP_BUILD_CONSTRAINT := constraints.txt
$(STAMP): export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A new package or a change in the C++ has to be installed again; other changes take effect at once.
$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/native/* src/slimfl/*/__init__.py src/slimfl/*/*/__init__.py)
	@command -v $(PYTHON) >/dev/null || { \
	    echo 'There is no $(PYTHON): install Python 3.11 or newer, or name it with PYTHON=...' >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "slimfl needs Python 3.11 or newer and $(PYTHON) is $$($(PYTHON) --version 2>&1):" \
	         "name a newer one with PYTHON=..." >&2; exit 2; }
	@if [ -e $(UNDER_WAY) ]; then rm -rf .venv; fi
	@mkdir -p .venv && touch $(UNDER_WAY)
	@echo 'installing into .venv (some minutes the first time)' >&2
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q -c constraints.txt $$(grep '^torch==' constraints.txt)
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@rm $(UNDER_WAY) && touch $@
