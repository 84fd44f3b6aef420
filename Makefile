# For a person: `make demo` and `make test`; for who changes the code also `make check`.
# Each sets everything up first.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests that start no server and no browser, and make no wheel.
PURE := tests/choosing tests/insights tests/numerics tests/planning tests/profiling \
  tests/texts tests/test_values.py tests/test_errors.py tests/test_architecture.py
# Tests that wait for minutes: of deployments and workers, of machines that are lost, of
# the wheel. `make test-long` runs them.
LONG := tests/dag/test_outlasting.py tests/dag/test_spreading.py \
  tests/dag/test_deployed.py tests/dag/test_foreign_names.py tests/test_wheel.py

.PHONY: demo check test test-long lint format bench bench-profile lock

demo: $(READY)
	@$(BIN)/reward-profiling demo

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: lint
	$(BIN)/pytest -q -n 2 $(PURE)

test: lint
	$(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(LONG:%=--ignore=%)

test-long: $(READY)
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder $(LONG)

# GYM=PATH of Gym's own command compares with it.
bench: $(READY)
	$(BIN)/python benchmarks/collect.py $(if $(GYM),--gym-command $(GYM))

# The same for profiling files that are there: CPU and memory, first and again.
bench-profile: $(READY)
	$(BIN)/python benchmarks/profiling.py $(if $(GYM),--gym-command $(GYM))

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

$(READY): requirements.lock pyproject.toml setup-venv.sh
	@./setup-venv.sh $(VENV)
	@touch $@

# `uv` is needed for this one alone; the lock holds hashes and names no index.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements.lock
