# make demo: see it work.  make test: lint, types, tests.  Both set up everything they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow results clean

demo: .venv/ready
	$(BIN)/dos demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-slow: .venv/ready
	$(BIN)/pytest -q -m slow

results: .venv/ready  # the page, from the trials that are stored
	$(BIN)/dos reproduce --render --out results --page docs/results.md

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
