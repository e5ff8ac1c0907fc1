# Everything runs in a virtual environment of its own: `make demo` and `make test` need only Python 3.11+.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Real datasets for tests, benchmarks and experiments, where there are any beside the project.
ifneq ($(wildcard ../shared/data),)
export DICHOTOMIES_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-quick lint doctest docs dist reproduce study benchmarks test-pythons clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("dichotomies needs Python 3.11 or newer; set PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/dichotomies demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto tests experiments/tests

# The core without the tests marked slow: no command line, report, plots, experiments or fresh compilation.
test-quick: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto -m 'not slow' --ignore=tests/_kernels --ignore=tests/experiments \
	  --ignore=tests/report --ignore=tests/cli --ignore=tests/plots --ignore=tests/test_new_parts.py

doctest: $(VENV)/.installed
	MPLBACKEND=Agg $(BIN)/python -m pytest -n auto --ignore=src/dichotomies/learners/gpu/newton.py --ignore=experiments/tests --doctest-modules src experiments --doctest-glob='*.md' README.md docs

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, offline, into docs/_build/html: warnings are errors, and so are links inside it that lead nowhere.
$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs/_build/extra/reports/digits.html: docs/site/reports.py src/dichotomies/report/* $(VENV)/.docs-installed
	$(BIN)/python -m docs.site.reports docs/_build/extra/reports

docs: $(VENV)/.docs-installed docs/_build/extra/reports/digits.html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python -m docs.site.links docs/_build/html

dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# Both go on where they were stopped: the results are kept in results.sqlite and study/.
reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments.reproduce

study: $(VENV)/.installed
	$(BIN)/python -m experiments.study

benchmarks: $(VENV)/.installed
	$(BIN)/python -m benchmarks.overhead --save
	$(BIN)/python -m benchmarks.node_calibration --save
	$(BIN)/python -m benchmarks.vector_scaling --save
	$(BIN)/python -m benchmarks.naive_bayes --save
	$(BIN)/python -m benchmarks.logistic --save
	$(BIN)/python -m benchmarks.tuned --save
	$(BIN)/python -m benchmarks.boosting --save
	$(BIN)/python -m benchmarks.odp_shape --save
	$(BIN)/python -m benchmarks.limits --save
	$(BIN)/python -m benchmarks.flat --save
	$(BIN)/python -m benchmarks.external_reading --save
	$(BIN)/python -m benchmarks.large_table --save
	$(BIN)/python -m benchmarks.how_long --save
	$(BIN)/python -m pip install --quiet --disable-pip-version-check napkinxc lightgbm hiclass
	$(BIN)/python -m benchmarks.first_minute --save
	$(BIN)/python -m benchmarks.napkinxc_hsm --save

# The versions that pyproject.toml declares, as far as they are on this machine.
test-pythons:
	for version in 3.11 3.12 3.13 3.14; do \
	  python$$version --version || continue; \
	  $(MAKE) test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	done

clean:
	rm -rf .venv .venv-* build dist docs/_build docs/examples docs/reference .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
