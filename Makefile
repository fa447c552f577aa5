# The commands of the project. `make help` lists them; each sets up .venv first where it needs to.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed into .venv: to run streamproof; an extra on top of that, each under its own name; all of them.
STAMP := $(VENV)/.streamproof
TESTS := $(VENV)/.tests
LINT := $(VENV)/.lint
DOCS := $(VENV)/.docs
DEV := $(VENV)/.dev
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# What a check imports, and then compiles: all modules of all packages would take 15 s and 60 MB.
IMPORTED := duckdb, hypothesis, msgspec, pandas, pydantic.main, pyspark.daemon, pyspark.sql.classic.dataframe, \
	pyspark.sql.streaming.stateful_processor_api_client, pyspark.worker, streamproof.properties.cli.app
CLASSES := $(VENV)/.classes
# Samples in pages fit on a screen; that of own_operator.md is a file of the tests.
IN_PAGES := --line-length 80 --config 'format.exclude = ["*.py", "own_operator.md"]'
PACKAGES := reference spark_impl properties specs
# A copy of the package as it is installed, for tools that follow no mapping of folders to packages.
TREE := .mypy_cache/tree

# Even where Python is told to write nothing compiled: else each process of Spark and of the tests compiles it anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL: # two installations into one .venv would disturb each other
.PHONY: help setup dev check specs test test-exhaustive test-weekly examples versions versions-quick test-quick wheel-check release-check lint format docs tree bench lock clean

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name does; do printf '  make %-16s %s\n' "$$name" "$$does"; done

setup: $(STAMP) ## Make .venv with what running streamproof takes, Java included where there is none

dev: $(DEV) ## Install at once what tests, linters and the site take; else each command installs its own

check: setup ## The gate: every law, then real flight data on two witnesses
	$(BIN)/streamproof check $(if $(HISTORIES),--histories $(HISTORIES))
	$(BIN)/streamproof compare session_windows --data flights

specs: setup ## The TLA+ models that CI checks, in under two minutes
	$(BIN)/streamproof spec check

# In a zone of half an hour, so that a time without a zone is nowhere taken for one in UTC unseen.
IN_MEMORY := TZ=America/St_Johns $(BIN)/python -m pytest tests/fast --numprocesses 2

# A query waits more than it computes: two Spark sessions side by side are done sooner than one after the other.
test: $(TESTS) $(CLASSES) ## The tests: tests/fast, then tests/spark, whose tests share two Spark sessions
	$(IN_MEMORY) --dist loadfile --durations 20
	$(BIN)/python -m pytest tests/spark -m "not weekly" --numprocesses 2 --dist loadfile --durations 20

# A process that is done takes the next test, or the next module whose fixture its tests share (tests/conftest.py).
test-exhaustive: $(TESTS) $(CLASSES) ## The tests that take longer, of tests/exhaustive: mutants, jobs of many shapes, proofs, whole commands
	$(BIN)/python -m pytest tests/exhaustive -m "not weekly" --numprocesses 2 --dist loadgroup --durations 20

test-weekly: $(TESTS) $(CLASSES) ## Tests of what our commits hardly change: whole tables of jobs, Kafka's older releases, a broker, a cluster; no part of CI
	$(BIN)/python -m pytest tests/weekly tests/spark tests/exhaustive -m weekly --numprocesses 2 --dist loadgroup --durations 20
	$(BIN)/python -m pytest examples --numprocesses 2 --durations 20

# Each job once: as the function that the README shows, or as the script that people have.
AS_SCRIPTS := hourly_revenue or unpaid_orders or order_regions or payment_ledger or resent_events
examples: $(TESTS) $(CLASSES) ## The ten jobs of examples/, right and wrong, under test: five as functions, five as scripts
	$(BIN)/python -m pytest examples -k "(test_examples and not many and not ($(AS_SCRIPTS))) or (test_scripts and ($(AS_SCRIPTS)))" --numprocesses 2 --durations 20

versions: $(TESTS) ## Jobs under test on PySpark 3.5 to 4.3, and on the Pythons of this machine, in .nox
	$(BIN)/nox

versions-quick: $(TESTS) ## A few of them on the oldest PySpark, 3.5
	$(BIN)/nox --tags oldest -- tests/versions/test_first_job.py

test-quick: $(TESTS) ## The tests of tests/fast, which need no Spark, in under a minute
	$(IN_MEMORY)

# Needs the package index, as `make setup` does. 2 is inconclusive: 50 histories are few.
wheel-check: $(TESTS) ## Build sdist and wheel, and run the gate from the wheel in an empty environment
	rm -rf build/wheel-check dist && mkdir -p build/wheel-check
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/wheel-check/.venv
	build/wheel-check/.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --constraint constraints.txt "$$(ls dist/streamproof-*.whl)[spark]"
	cd build/wheel-check && env -u PYTHONPATH .venv/bin/streamproof check session_windows --histories 50; code=$$?; echo "exit $$code"; test $$code -eq 0 -o $$code -eq 2

# Needs the package index for what it installs, and nothing else of the network.
release-check: $(LINT) wheel-check docs ## Whether a release could be made: wheel-check, docs, versions, package page, types, the first verdict
	$(BIN)/python -m pytest --collect-only --quiet --within-limits >/dev/null
	$(BIN)/python tests/release/check.py build/wheel-check/.venv dist

lint: $(LINT) tree ## Style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check $(IN_PAGES) .
	MYPYPATH=$(TREE) $(BIN)/mypy -p streamproof
	cd $(TREE) && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml

tree:
	@rm -rf $(TREE) && mkdir -p $(TREE) && cp -Rp streamproof $(PACKAGES) $(TREE)/ && mv $(PACKAGES:%=$(TREE)/%) $(TREE)/streamproof/

docs: $(DOCS) tree ## The site of docs/ with the API reference, in site/
	$(BIN)/python -m benchmarks table
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(LINT) ## Fix what `make lint` finds and can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/ruff format $(IN_PAGES) .

bench: setup ## The figures in docs/benchmarks.md
	$(BIN)/python -m benchmarks

lock: $(DEV) ## Bring constraints.txt up to date with pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
		--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file constraints.txt

clean: ## Remove .venv and everything else that was made
	rm -rf $(VENV) .nox site .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info

# Made anew when the requirements change; otherwise a second `make setup` does nothing.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "streamproof needs Python 3.11 or newer, and $(PYTHON) isn't: make setup PYTHON=python3.11" >&2; exit 3; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || $(PYTHON) -m virtualenv --quiet --clear $(VENV) || { echo "$(PYTHON) can't make a virtual environment: install python3-venv (Debian, Ubuntu: apt-get install python3-venv) or $(PYTHON) -m pip install --user virtualenv" >&2; exit 3; }
# Python 3.11 puts it there, and nothing that runs needs it.
	@test -e $@ || $(BIN)/python -m pip uninstall --quiet --quiet --yes setuptools
	@echo "Installing PySpark into $(VENV): 460 MB are fetched"
# It comes as source: its wheel is made only to be unpacked, and compressing the jars in it would take 10 s.
	@$(INSTALL) --no-compile --config-settings=--build-option=--compression=stored pyspark
	@echo "Installing streamproof and what else it runs with: 130 MB are fetched"
	@$(INSTALL) --no-compile --editable '.[data,kafka,spark,specs]'
	@$(BIN)/python -c 'import $(IMPORTED)'
	@$(BIN)/python -c 'from streamproof.specs.java import find_java; find_java()' 2>/dev/null || { echo "No Java 17 or newer on this machine: installing one into $(VENV)"; $(INSTALL) --editable '.[java]'; }
	@touch $@

$(TESTS) $(LINT) $(DOCS): $(VENV)/.%: $(STAMP)
	@echo "Installing the extra $* into $(VENV)"
	@$(INSTALL) --editable '.[$*]'
	@touch $@

$(DEV): $(STAMP)
	@echo "Installing the extra dev into $(VENV)"
	@$(INSTALL) --editable '.[dev]'
	@touch $(TESTS) $(LINT) $(DOCS) $@

# The tests start Spark a hundred times: what this costs is won back by the tenth start.
$(CLASSES): $(STAMP)
	@echo "Keeping the classes that Spark loads, so that it starts sooner: 190 MB in $(VENV)"
	@$(BIN)/python -m streamproof.properties.witnesses.spark.make_class_archive || echo "Spark starts without them"
	@touch $@
