# Everything runs in virtual environments of its own: `make demo` and `make test` need only Python 3.11+.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Real datasets for tests, benchmarks and experiments, where there are any beside the project.
ifneq ($(wildcard ../shared/data),)
export DICHOTOMIES_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-quick test-kernels lint doctest docs dist reproduce study benchmarks test-pythons clean

# $(1): the environment; $(2): what is installed in it besides the package.
define install
	$(PYTHON) -c 'import sys; sys.exit("dichotomies needs Python 3.11 or newer; set PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable $(2)
	touch $@
endef

$(VENV)/.installed: pyproject.toml
	$(call install,$(VENV),'.[dev]')

# Only what the demo needs: what the package itself needs, and two libraries of its command line.
$(VENV)-demo/.installed: pyproject.toml
	$(call install,$(VENV)-demo,. 'typer>=0.15' 'rich>=13')

demo: $(VENV)-demo/.installed
	$(VENV)-demo/bin/dichotomies demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto tests experiments/tests

# What a change needs before it is committed: all but the tests marked slow, the kernels alone, browsers,
# experiments and what starts many processes; of the command line and the report the tests that need no long fits.
test-quick: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto -m 'not slow' $(foreach folder,_kernels experiments cli report plots test_new_parts.py,--ignore=tests/$(folder))
	$(BIN)/python -m pytest -n auto -m 'not slow' $(SMOKE)

SMOKE := tests/cli/test_failures.py tests/cli/test_predict.py tests/cli/test_app.py tests/report/test_content.py

test-kernels: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto -m 'not slow' tests/_kernels

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
