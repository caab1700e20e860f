# Every target makes `.venv` when it is missing and installs what it needs, once: the stamps
# depend on pyproject.toml alone, so that a second run calls neither pip nor the network.
# Paths are relative throughout, because make cannot quote a space in a prerequisite.

PYTHON ?= python3
BIN := .venv/bin

# Two test workers on two cores: BLAS and OpenMP get one thread each, or they would fight.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-all test-pythons test-lowest soak lint format docs docs-check bench bench-large \
	release-check clean

demo: .venv/.installed-plots
	$(BIN)/python -m otgraph.experiments.demo

test: .venv/.installed-test
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-all: .venv/.installed-test
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m "" $(ARGS)

# Each in an environment of its own; a Python that this machine does not have is skipped, loudly.
PYTHONS ?= 3.11 3.12 3.13
test-pythons:
	$(ONE_THREAD) $(PYTHON) tools/suites.py $(PYTHONS) -- -n $(WORKERS) $(ARGS)

# Every dependency at its lower bound, on the oldest Python.
test-lowest:
	$(ONE_THREAD) $(PYTHON) tools/suites.py lowest -- -n $(WORKERS) $(ARGS)

# Everything that must hold before a release, an hour or two. A part:
# make release-check ARGS="build wheel"
release-check:
	$(ONE_THREAD) $(PYTHON) tools/release_check.py $(ARGS)

# Random problems against oracles, ten minutes at most; prints counts and fails on a fault.
# make soak ARGS="problems --count 100000 --minutes 60"
# Two threads of OpenMP, so that a process which waits for threads it does not have shows.
soak: .venv/.installed-test
	cd tests && $(ONE_THREAD) OMP_NUM_THREADS=2 ../$(BIN)/python -m soak $(ARGS)

lint: .venv/.installed-lint
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/markdown_width.py
	$(BIN)/python tools/links.py

format: .venv/.installed-lint
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .
	$(BIN)/python tools/markdown_width.py --fix

# Makes the pictures and runs the tutorials; a warning fails the build, and so does a page that
# loads anything from the network or a link that leads nowhere. The pages are in
# out/docs/index.html.
SPHINX := $(ONE_THREAD) $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs
docs: .venv/.installed-docs
	$(ONE_THREAD) $(BIN)/python docs/make_plots.py
	$(SPHINX) out/docs $(ARGS)
	$(BIN)/python tools/pages.py out/docs

# The same in half a minute: the pictures are those of the repository, and nothing runs, because
# the suite runs every example.
docs-check: .venv/.installed-docs
	$(SPHINX) out/docs-check -D nb_execution_mode=off $(ARGS)
	$(BIN)/python tools/pages.py out/docs-check

# Peers may ask for old versions of what we use; they get their own environment.
bench: .venv-bench/.installed .venv-magic/.installed
	.venv-bench/bin/python -m benchmarks.run $(ARGS)

bench-large: .venv-bench/.installed .venv-magic/.installed
	.venv-bench/bin/python -m benchmarks.run --large $(ARGS)

.venv-bench/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable . \
		--requirement benchmarks/requirements.txt
	touch $@

# MAGIC needs pandas 2.0, which was built for numpy 1.
.venv-magic/.installed: benchmarks/requirements-magic.txt
	$(PYTHON) -m venv .venv-magic
	.venv-magic/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement benchmarks/requirements-magic.txt
	touch $@

clean:
	rm -rf .venv .venv-* build dist out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.created:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.installed-%: pyproject.toml .venv/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@
