# make demo: see it work.  make test: lint, types, tests.  Both set up everything they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow clean

demo: .venv/ready
	$(BIN)/dos demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-slow: .venv/ready
	$(BIN)/pytest -q -m slow

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
