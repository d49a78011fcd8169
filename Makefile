# The commands of the house. `make serve` and `make test` do all their own set-up and need Python 3.11+ and make.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that really runs and is new enough; `make PYTHON=/path/to/python serve` overrides it.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ROOMS := protocol store gateway sdk pipeline cli console tests bench compat-tests docs
ARGS ?=

.PHONY: help serve console test test-long check format lock compat compat-spark-next bench bench-against docs fuzz jepsen rows-mutate chaos-gateway compat-gateway cluster-gateway-demo clean
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

serve: $(VENV)/.server ## Set up and start the server on its default ports (ARGS="--data-dir …" adds flags)
	@exec $(BIN)/rockgate serve $(ARGS)

console: $(VENV)/.console ## Set up and start the web console beside it, on http://127.0.0.1:8090 (ARGS adds flags)
	@exec $(BIN)/rockgate console $(ARGS)

test: $(VENV)/.dev ## Set up and run every test, on all cores (ARGS="-n 0 -k produce" adds pytest flags)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not spark" $(ARGS)
	@echo "and with Spark, in one process: a session is dear, and uses all cores by itself"
	$(BIN)/python -m pytest -m spark $(ARGS) || [ $$? -eq 5 ]

test-long: $(VENV)/.dev ## The same tests and the long ones, with the counts of tests/budget.toml's [long]
	ROCKGATE_BUDGET=long $(BIN)/python -m pytest -m "long or not long" $(ARGS)

check: $(VENV)/.dev ## Formatter, linter, types, import contracts, house rules
	$(BIN)/ruff format --check $(ROOMS)
	$(BIN)/ruff check $(ROOMS)
	$(BIN)/mypy
	PYTHONPATH=protocol:store:gateway:sdk:pipeline:cli:console $(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n auto --dist worksteal tests/house

format: $(VENV)/.dev ## Write the formatter's and the linter's safe fixes
	$(BIN)/ruff format $(ROOMS)
	$(BIN)/ruff check --fix $(ROOMS)

docs: $(VENV)/.dev ## Write the generated pages again (the house tests fail while they are stale)
	$(BIN)/python -m docs.generate

compat: $(VENV)/.dev ## Every real client against the server; writes docs/reference/compatibility.md (ARGS="compat-tests/kafkajs": one)
	status=0; export ROCKGATE_BUDGET=long; results=$(CURDIR)/compat-tests/results.json; \
	if [ -n "$(ARGS)" ]; then ROCKGATE_COMPAT_RESULTS=$$results $(BIN)/python -m pytest -m "long or not long" $(ARGS) || status=$$?; \
	else $(MAKE) $(VENV)/spark-next/.installed || status=$$?; $(BIN)/python compat-tests/suites.py $$results || status=$$?; fi; \
	$(BIN)/python -m docs.generate; exit $$status

compat-spark-next: $(VENV)/spark-next/.installed ## Spark's tests again with a newer Spark and its connector
	ROCKGATE_BUDGET=long ROCKGATE_COMPAT_RESULTS=$(CURDIR)/compat-tests/results.json ROCKGATE_COMPAT_BESIDE=1 \
	  PYTHONPATH=$(CURDIR)/$(VENV)/spark-next $(BIN)/python -m pytest -m "long or not long" compat-tests/spark

fuzz: $(VENV)/.dev ## Bad input on every listener, with the counts of tests/budget.toml's [long]
	ROCKGATE_BUDGET=long $(BIN)/python -m pytest tests/hostile $(ARGS)

jepsen: $(VENV)/.dev ## Transactions under kills, pauses and restarts, with the counts of [long]
	ROCKGATE_BUDGET=long $(BIN)/python -m pytest tests/jepsen $(ARGS)

chaos-gateway: $(VENV)/.dev ## Kill and stop gateways and brokers of a real RocketMQ cluster, a hundred times
	ROCKGATE_BUDGET=long $(BIN)/python -m pytest -n 0 -s -m "long or not long" tests/chaos $(ARGS)

compat-gateway: $(VENV)/.dev ## The Kafka clients and Spark against a gateway over a real RocketMQ cluster
	ROCKGATE_COMPAT_PEER=gateway ROCKGATE_BUDGET=long $(BIN)/python -m pytest -rs -m "long or not long" \
	  $(or $(ARGS),compat-tests/kafka-python compat-tests/aiokafka compat-tests/confluent-kafka compat-tests/kafka-clients compat-tests/spark)

cluster-gateway-demo: $(VENV)/.dev ## A real RocketMQ, two gateways, Java, Kafka and Spark on one topic; Ctrl-C ends it
	@$(BIN)/python -m bench.demo.cluster_gateway $(ARGS)

rows-mutate: $(VENV)/.dev ## Break the code behind a sample of requirement rows and expect red (ROW="LP-3": one)
	$(BIN)/python -m tests.mutation $(ROW)

bench: $(VENV)/.dev ## The benchmarks; results are written to bench/results/
	$(BIN)/python -m bench $(ARGS)

bench-against: $(VENV)/.dev ## This tree beside another commit, turn by turn (REV=<commit>)
	$(BIN)/python -m bench.against $(REV)

lock: $(VENV)/.dev ## Renew the lock files from pyproject.toml
	$(BIN)/python requirements/lock.py

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "rockgate needs Python 3.11 or newer on PATH (or make PYTHON=/path/to/python)" >&2; exit 2; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing; on Debian: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 2; }

$(VENV)/.server: requirements/server.lock pyproject.toml | $(BIN)/python
	@echo "installing the server"
	@$(PIP) install --require-hashes -r requirements/server.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Beside the server, so that `make serve` does not install for minutes what it never imports.
$(VENV)/.console: requirements/console.lock pyproject.toml | $(VENV)/.server
	@echo "installing the web console"
	@$(PIP) install --require-hashes -r requirements/console.lock
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(BIN)/python
	@echo "installing the server and everything the tests need (pyspark takes a minute)"
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(VENV)/.server $(VENV)/.console $@

# A Spark beside the one of the environment, which PYTHONPATH puts in front of it.
$(VENV)/spark-next/.installed: requirements/spark-next.lock $(VENV)/.dev
	@echo "installing a second Spark (it takes a minute)"
	@rm -rf $(VENV)/spark-next
	@$(PIP) install --require-hashes --target $(VENV)/spark-next -r requirements/spark-next.lock
	@touch $@
