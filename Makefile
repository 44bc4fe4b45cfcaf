# make demo: see it work.  make test: lint, types, tests.  make docs: the site, into docs/_build.
# Each sets up everything it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow results docs linkcheck clean

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

docs: .venv/ready-docs  # a warning is an error: a link that leads nowhere, a name that does not exist
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build

linkcheck: .venv/ready-docs  # links that leave the site; needs the network
	$(BIN)/sphinx-build -q -b linkcheck docs docs/_build/linkcheck

.venv/ready-docs: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build
