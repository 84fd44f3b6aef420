# Two commands for a person: `make demo` and `make test`. Both set everything up first.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OWN_SERVER := tests/dag/test_outlasting.py

.PHONY: demo test format bench bench-profile lock

demo: $(READY)
	@$(BIN)/reward-profiling demo

test: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@# Tests on a Prefect server wait most of their time: the others run beside them, and
	@# then those that have a server of their own.
	@$(BIN)/pytest tests/dag --ignore=$(OWN_SERVER) >.dag-tests.log 2>&1 & dag=$$!; \
	  $(BIN)/pytest --ignore=tests/dag; others=$$?; \
	  $(BIN)/pytest $(OWN_SERVER); own=$$?; \
	  wait $$dag; code=$$?; cat .dag-tests.log; exit $$((others || own || code))

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
