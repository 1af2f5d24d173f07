# `make demo` and `make test` set up what is missing, in .venv, and need nothing but Python 3.11 to 3.13 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -q -c constraints.txt
LOWEST := .venv-lowest
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

.PHONY: demo test test-gpu test-slow test-lowest check lock docs pictures clean reproduce-cbt-ne reproduce-cbt-cn bundle

demo: $(VENV)/.ready
	$(BIN)/asreader demo --out runs/demo

test: check
	$(BIN)/python -m pytest -q -n $(CORES) -m "not slow"

# What needs a GPU, where only torch, triton, numpy, pytest and the packages of a plain machine are installed.
test-gpu:
	PYTHONPATH=src $(PYTHON) scripts/test_gpu.py $(if $(OUT),--out $(OUT))

test-slow: $(VENV)/.ready-to-develop
	$(BIN)/python -m pytest -q -m slow

# Old packages warn of newer ones that they did not know: here warnings are no errors.
test-lowest: $(LOWEST)/.ready
	ASREADER_LOWEST=1 $(LOWEST)/bin/python -m pytest -q -n $(CORES) -m "not slow" -W default

check: $(VENV)/.ready-to-develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock:
	$(PYTHON) scripts/lock.py

docs: $(VENV)/.ready-to-develop
	$(BIN)/python docs/write_cli.py

pictures: $(VENV)/.ready-to-develop
	$(BIN)/python docs/write_pictures.py --page

clean:
	rm -rf $(VENV) $(LOWEST) .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "asreader needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV) || (echo "python venv is missing: on Debian, apt install python3-venv" >&2; rm -rf $(VENV); exit 1)

# The build back end comes first, from the lock: pip would fetch the newest of what it needs for a build of its own.
$(VENV)/.ready-to-build: $(VENV)/bin/python constraints.txt
	$(INSTALL) hatchling editables setuptools
	touch $@

$(VENV)/.ready: $(VENV)/.ready-to-build pyproject.toml
	$(INSTALL) --no-build-isolation -e .
	touch $@

$(VENV)/.ready-to-develop: $(VENV)/.ready-to-build pyproject.toml
	$(INSTALL) --no-build-isolation -e '.[dev]'
	touch $(VENV)/.ready $@

$(LOWEST)/.ready: pyproject.toml scripts/lock.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) scripts/lock.py --lowest > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install -q -c $(LOWEST)/constraints.txt -e '.[dev]'
	touch $@

# The bundled reader, from raw books; reproduce/bundle.py documents the layout of DATA.
bundle: $(VENV)/.ready
	@test -d "$(DATA)" || (echo "say where the data are: make $@ DATA=folder" >&2; exit 2)
	$(BIN)/python reproduce/bundle.py runs/bundled --data $(DATA)

# DATA holds books/cbt_train* (raw books, a folder or an archive) and cbt/ with the official files, as far as one has them;
# docs/results/cbt-ne.md says what comes out.
OFFICIAL = $(wildcard $(DATA)/cbt/cbtest_$(1)_$(2)*)
HELD_OUT = $(wildcard $(DATA)/cbt/cbt_valid.txt*)
reproduce-cbt-ne: KIND := NE
reproduce-cbt-cn: KIND := CN
reproduce-cbt-ne reproduce-cbt-cn: reproduce-cbt-%: $(VENV)/.ready
	@test -d "$(DATA)" || (echo "say where the data are: make $@ DATA=folder" >&2; exit 2)
	$(BIN)/python reproduce/cbt.py $* --out runs/cbt-$* \
	  $(if $(call OFFICIAL,$(KIND),train),--train $(call OFFICIAL,$(KIND),train),--books $(wildcard $(DATA)/books/cbt_train*)) \
	  $(if $(call OFFICIAL,$(KIND),valid),--valid $(call OFFICIAL,$(KIND),valid),--valid-books $(HELD_OUT)) \
	  $(if $(HELD_OUT),--exclude $(HELD_OUT)) $(if $(call OFFICIAL,$(KIND),test),--test $(call OFFICIAL,$(KIND),test))
