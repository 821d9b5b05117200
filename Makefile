# make figures: set up and regenerate every figure.  make report: the same, and build the report.  make test: set up and run the test suite.
# make bench: measure every speed.  Each command may be repeated: what is up to date is not made again.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= all
SCALE ?= small
TARGETS ?=
TESTS ?=
WORKERS ?= 2
PYTEST = python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
QUICK ?=
COUNT ?=
TAG ?=
SEED ?= 0
PROCESSES ?= 1
READER ?=
STAMP := $(VENV)/.installed-$(shell cat requirements.txt Makefile pyproject.toml | sha256sum | cut -c1-16)
DOCS_STAMP := $(VENV)/.docs-$(shell cat requirements.txt requirements-docs.txt | sha256sum | cut -c1-16)
export NO_MKDOCS_2_WARNING := 1
# Images of containers often set this, unlike a user's machine; every process then compiles each module that it imports.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := figures
.PHONY: setup setup-docs figures report test test-all lint check docs docs-version release-notes wheel fuzz faults mutants verify bench clean

setup: $(STAMP)

# torch first and by its exact version: a later resolution could choose another build. pybatsim last and without its own pins,
# which name a pyzmq that does not build on Python 3.11 (it works with the one in requirements.txt).
$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "schedlab needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	@echo "Installing the pinned versions into $(VENV): some minutes, 2 GB."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pybatsim==3.2.1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	rm -f $(VENV)/.installed-*
	touch $@

figures: setup
	@echo "Running $(or $(TARGETS),all studies) at scale $(SCALE); figures go to plots/$(SCALE)/, results to results/$(SCALE)/."
	@$(if $(TARGETS),:,awk -F, '$$8 == "$(SCALE)" { printf "This took %d minutes on %d idle cores. ", $$11 / 60 + 1, $$9 }' docs/results/workflow_cost.csv)
	@echo "If it is stopped, the same command continues it."
	source $(BIN)/activate && snakemake --cores $(CORES) $(or $(TARGETS),all) --config scale=$(SCALE)

# The report lists all studies, so everything is made first.
report: setup
	source $(BIN)/activate && snakemake --cores $(CORES) all write_report_pages --config scale=$(SCALE)
	source $(BIN)/activate && snakemake write_report_pages --report plots/$(SCALE)/report.html --report-stylesheet workflow/report/report.css --config scale=$(SCALE)
	@echo "The report: plots/$(SCALE)/report.html"

test: setup
	source $(BIN)/activate && $(PYTEST) -m "not slow" $(TESTS)

# All tests, also those that `make test` omits: fuzzing, faults, a real Slurm, a browser, programs on pages, comparisons of whole runs.
test-all: setup
	source $(BIN)/activate && $(PYTEST) $(TESTS)

lint: setup
	source $(BIN)/activate && ruff check . && ruff format --check . && snakefmt --check Snakefile workflow/rules && snakemake --lint && mypy
	source $(BIN)/activate && git ls-files ':!tests' | xargs codespell && git ls-files tests | xargs codespell -I tests/misspelt.txt

# The site of the documentation, in site/: open site/index.html. Needs no network once its packages are installed.
docs: setup-docs
	source $(BIN)/activate && mkdocs build --strict

# Add the site of this version to the branch gh-pages, as one commit; those of other versions stay.
docs-version: setup-docs
	source $(BIN)/activate && mike deploy --update-aliases "$$(python -c 'import schedlab; print(schedlab.__version__)')" latest && mike set-default latest

# Print the entry of this version in CHANGELOG.md. Fails if there is none, or if TAG is not the tag of this version.
release-notes: setup
	@source $(BIN)/activate && python .ci/release_notes.py $(TAG)

# The wheel and the source distribution, in dist/.
wheel: setup
	source $(BIN)/activate && python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	source $(BIN)/activate && python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' > /dev/null

setup-docs: $(DOCS_STAMP)

$(DOCS_STAMP): | setup
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.txt --requirement requirements-docs.txt
	rm -f $(VENV)/.docs-*
	touch $@

check: setup
	source $(BIN)/activate && schedlab check

# COUNT inputs for each reader of files, or for one: make fuzz COUNT=100000 READER=swf SEED=1
fuzz: setup
	source $(BIN)/activate && python tests/fuzz/fuzz.py --count $(or $(COUNT),10000) --seed $(SEED) $(if $(READER),--reader $(READER))

# Kill runs of the toy study at COUNT random moments, and start each again: make faults COUNT=50 SEED=1 PROCESSES=8
faults: setup
	source $(BIN)/activate && python tests/faults/faults.py --count $(or $(COUNT),500) --seed $(SEED) --processes $(PROCESSES)

# Put faults into the source, one at a time, and report which of them the quick tests detect: make mutants PROCESSES=2
mutants: setup
	source $(BIN)/activate && python tests/mutation/mutation.py run --processes $(PROCESSES)

# Run the scale SCALE (here by default smoke) in two fresh copies, on one core and on two, and compare every hash.
verify: setup
	source $(BIN)/activate && python tests/workflow/verify.py --scale $(if $(filter file default,$(origin SCALE)),smoke,$(SCALE))

# Measure every speed in the documentation, in ten minutes. With smaller sizes, in two minutes: make bench QUICK=1
bench: setup
	source $(BIN)/activate && python benchmarks/suite.py $(if $(QUICK),--quick)

clean:
	rm -rf site dist results/smoke results/small plots/smoke plots/small .schedlab .snakemake
