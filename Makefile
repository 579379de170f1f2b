# Everything works from a clean clone with Python 3.10+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-all test-frameworks check format bench pages docs clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)  ## set up, then watch a stuck training being explained
	$(BIN)/unstuck demo

test: $(STAMP)  ## unit tests, and a sample of the real scripts (some minutes)
	$(BIN)/python -m pytest -n 6 --dist worksteal -q  # they wait more than they compute

test-all: $(STAMP)  ## the whole corpus and the real waiting times too (an hour)
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not frameworks"

test-frameworks: $(STAMP)  ## trainings under Lightning, Accelerate, Ray … (an hour; installs them first)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,frameworks]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps fastai fastcore fasttransform fastdownload
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m frameworks tests/integration/test_frameworks.py

check: $(STAMP)  ## ruff and mypy, strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## what unstuck costs, with intervals (keep the machine quiet)
	$(BIN)/python -m bench

pages: $(STAMP)  ## write docs/rules/, docs/messages/ and the picture: from the texts of explain and the saved Cases
	$(BIN)/python docs/write_pages.py
	$(BIN)/python docs/take_terminal_picture.py

docs: pages  ## the documentation as a site, in site/ (installs mkdocs first)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache
