# One verb per need. VENV names the virtual environment that is made and used.
VENV ?= .venv
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
# The engine of `make run`: memory, or postgresql, of which DATABASE_URL may name the server.
ENGINE ?= memory
# Which example `make example` runs.
NAME ?= chat
# For how long `make simulate` plays; FIRST is its first seed, by chance without it.
SECONDS ?= 60
# Most of a test's time is waiting, so there are more workers than cores.
WORKERS ?= 6
BIN = $(VENV)/bin
RUN_WITH = $(if $(filter postgresql,$(ENGINE)),$(BIN)/python -m messaging_project.private_postgresql)
# The pinned versions without their hashes.
CONSTRAINTS = $(VENV)/constraints.txt

.PHONY: run example test test-fast test-redis check lint bench docs-tables faults simulate pictures translations schema \
	requirements docs dist sbom matrix clean

run: $(VENV)/.installed$(if $(filter postgresql,$(ENGINE)),-postgresql)  ## Install, migrate and serve on port 8000; ENGINE=postgresql.
	@# `serve` checks, too: hints are printed once
	@DJANGO_DEMO=$${DJANGO_DEMO-true} $(RUN_WITH) sh -c '$(BIN)/python manage.py migrate --verbosity 0 --skip-checks \
		&& exec $(BIN)/python manage.py serve --host $(HOST) --port $(PORT)'

example: $(VENV)/.installed  ## Run one of examples/, on port 8000: make example NAME=chat.
	@PYTHONPATH=$(CURDIR) $(BIN)/python examples/$(NAME)/manage.py migrate --verbosity 0
	@PYTHONPATH=$(CURDIR) $(BIN)/python examples/$(NAME)/manage.py runserver $(HOST):$(PORT)

test: $(VENV)/.installed-dev $(VENV)-docs/.installed $(VENV)/go-client tests/js/node_modules packages/javascript/node_modules  ## Run every test.
	@# with PYTHONDONTWRITEBYTECODE each of hundreds of processes would compile them again
	@$(BIN)/python -m compileall -q realtime api admin_panel messaging_project tests/site
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-fast: $(VENV)/.installed-dev  ## The tests without servers and browsers; under a minute.
	$(BIN)/python -m pytest -q -n auto --dist loadfile tests/test_*.py tests/unit tests/panel tests/docs

test-redis: $(VENV)/.installed-dev  ## The tests of the Redis rooms; REDIS_SERVER names the server.
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/redis tests/engine

check: $(VENV)/.installed-dev  ## Lint, format, types, Django's checks, tables of docs; changes nothing.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python -m docs.tables --check

lint: $(VENV)/.installed-dev  ## Format, and correct what can be corrected.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench  ## Compare with peers; about five minutes.
	$(BIN)/python -m benchmarks

docs-tables: $(VENV)/.installed-dev  ## Write the tables of the documentation that come from the code.
	$(BIN)/python -m docs.tables

faults: $(VENV)/.installed-dev  ## Play the faults of Redis and PostgreSQL, write their tables; 15 minutes.
	$(BIN)/python -m tests.chaos.fault_table redis
	$(BIN)/python -m tests.chaos.fault_table postgresql

simulate: $(VENV)/.installed-dev  ## Play faults in a simulated world: SECONDS, and FIRST for known seeds.
	$(BIN)/python -m tests.simulation --seconds $(SECONDS) $(if $(FIRST),--first $(FIRST))

pictures: $(VENV)/.installed-dev  ## Make the pictures of the documentation and of the examples anew.
	$(BIN)/python -m docs.pictures.make
	$(BIN)/python -m docs.pictures.film
	$(BIN)/python -m docs.pictures.front
	$(BIN)/python -m docs.pictures.examples

translations: $(VENV)/.installed-dev  ## Take up new texts of the panel, and compile the catalogs.
	cd admin_panel && for language in de es fr; do \
		../$(BIN)/python -m django makemessages --locale $$language --no-location --no-obsolete; \
	done
	cd admin_panel && ../$(BIN)/python -m django compilemessages

schema:  ## Generate the Protobuf modules; the generator's version bounds the runtime's.
	$(PYTHON) -m venv $(VENV)-schema
	$(VENV)-schema/bin/pip install --quiet grpcio-tools==1.75.1
	$(VENV)-schema/bin/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. \
		realtime/protocol/v1/client.proto realtime/protocol/v2/client.proto

requirements:  ## Pin what the server needs in its newest versions, with hashes, for every platform.
	$(PYTHON) -m venv --clear $(VENV)-requirements
	$(VENV)-requirements/bin/pip install --quiet uv==0.13.9
	UV_CUSTOM_COMPILE_COMMAND="make requirements" $(VENV)-requirements/bin/uv pip compile --quiet \
		--upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
		--extra regex --output-file requirements.txt pyproject.toml

dist: packages/javascript/node_modules  ## Make the packages for PyPI and npm, in dist/.
	rm -rf dist
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/pip install --quiet --disable-pip-version-check build==1.6.1 twine==7.0.0
	$(VENV)-dist/bin/python -m build
	$(VENV)-dist/bin/twine check --strict dist/*
	@if command -v npm >/dev/null; then npm pack --silent --prefix packages/javascript \
		--pack-destination $(CURDIR)/dist ./packages/javascript; fi

docs: $(VENV)-docs/.installed  ## Build the documentation site, in dist/docs; a broken link fails.
	$(VENV)-docs/bin/sphinx-build -q -W --keep-going -n -b html docs dist/docs
	@echo "Open dist/docs/index.html"

$(VENV)-docs/.installed:
	$(PYTHON) -m venv --clear $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check \
		furo==2025.12.19 myst-parser==5.2.0 sphinx==9.0.4
	@touch $@

sbom:  ## Write the bill of materials of what `make run` installs, to dist/.
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	mkdir -p dist
	$(VENV)-dist/bin/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml \
		--mc-type library --output-reproducible --of JSON -o dist/sbom.cdx.json

matrix: $(VENV)/.installed-dev  ## Unit tests with each Python of this machine and each Django for it.
	$(BIN)/python -m tests.matrix

clean:  ## Remove what the other targets made, the site's data excepted.
	rm -rf $(VENV) $(VENV)-schema $(VENV)-requirements $(VENV)-dist $(VENV)-docs $(VENV)-matrix tests/js/node_modules benchmarks/peers/node_modules \
		packages/javascript/node_modules packages/javascript/dist dist

$(VENV)/.installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12")'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@# pip takes no hashes together with the project itself
	@sed -n 's/^\([a-z].*[^ ]\) *\\$$/\1/p' requirements.txt > $(CONSTRAINTS)
	@touch $@

$(VENV)/.installed-postgresql: $(VENV)/.installed deploy/extras.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -r deploy/extras.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	@# a package of the same name as one of the others, for tests that run in a process of their own
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--target $(VENV)/cent5 cent==5.2.0
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[bench]'
	@touch $@

# The tests build it again, in a moment: the first build fetches and compiles for minutes on a busy machine.
$(VENV)/go-client: tests/go/main.go tests/go/go.sum | $(VENV)/.installed
	@if command -v go >/dev/null; then go build -C tests/go -buildvcs=false -o $(CURDIR)/$@ .; \
	else echo "No go: the tests with the Go client are skipped."; fi

%/node_modules: %/package-lock.json
	@if command -v npm >/dev/null; then \
		npm ci --prefix $* --no-audit --no-fund --ignore-scripts --loglevel error; \
		touch $@; \
	else \
		echo "No npm: the tests with JavaScript are skipped, and packages get the plain client."; \
	fi
