# make demo: see it work.  make test: lint, types, tests.  make docs: the site, into docs/_build.
# Each sets up everything it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow fuzz golden mutants audit results docs linkcheck clean
N ?= 100000

demo: .venv/ready
	$(BIN)/dos demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-slow: .venv/ready
	$(BIN)/pytest -q -m slow

fuzz: .venv/ready  # N damaged files for the readers
	cd tests && ../$(BIN)/python -m fuzzing $(N)

golden: .venv/ready  # the numbers that tests/test_golden.py holds on to, anew
	$(BIN)/python tests/golden.py

mutants: .venv/ready  # of the core files, against their tests; takes half an hour
	$(BIN)/python tests/mutating.py

audit: .venv/ready  # known vulnerabilities of what the tests run with; needs the network
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --strict --no-deps --disable-pip -r constraints.txt

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
