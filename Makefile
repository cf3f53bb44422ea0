# Every target makes and fills its own .venv; nothing need be active, nothing is installed twice.
PYTHON ?= python3
BIN := .venv/bin
NODE := .venv/node
.PHONY: help demo test browser debian check slow torture lock site release-check clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    train and show the main job on generated data (under 5 minutes after the install)"
	@echo "make test    the default test suite"
	@echo "make browser what the tests of the page need: Debian's chromium and node, where this may install them"
	@echo "make check   ruff and mypy"
	@echo "make slow    the learning tests and the long ones"
	@echo "make torture kills, full disks, damaged files, … (half an hour; ARGUMENTS='files --seed 7 --share 0.1')"
	@echo "make site    the documentation as web pages, in site/ (its own environment: .venv-docs)"
	@echo "make release-check   builds the release, installs it in an empty environment, runs it (TORCH=torch==2.13.0)"
	@echo "make lock    resolve requirements.lock anew from pyproject.toml"

# The stamp is written last: an install that was cut off is started again.
.venv/installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "pointing needs Python 3.10 or later: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: .venv/installed
	$(BIN)/pointing demo --out runs/demo

test: .venv/installed browser
	$(BIN)/python -m pytest -n auto --dist loadfile

# Tests of the page run in a real browser, and one of the API with a client for node. On Debian root gets both here;
# elsewhere those tests are skipped with a reason, except with CI=true, where they fail.
browser: .venv/installed
	@command -v chromium chromium-browser google-chrome >/dev/null || $(MAKE) --no-print-directory PACKAGES=chromium debian
	@command -v npm >/dev/null || $(MAKE) --no-print-directory PACKAGES="nodejs npm" debian
	@test -d $(NODE)/node_modules/libretranslate || ! command -v npm >/dev/null \
		|| npm install --silent --no-audit --no-fund --prefix $(NODE) libretranslate@1.0.1 \
		|| echo "NOT TESTED: the client for node, which npm cannot install"

debian:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get install -qq -y --no-install-recommends $(PACKAGES) >/dev/null \
		|| { apt-get update -qq && apt-get install -qq -y --no-install-recommends $(PACKAGES) >/dev/null; } \
		|| echo "NOT TESTED: apt-get cannot install $(PACKAGES)"; \
	else echo "NOT TESTED: install $(PACKAGES) for all tests"; fi

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

slow: .venv/installed
	$(BIN)/python -m pytest -m slow

torture: .venv/installed
	$(BIN)/python -m torture $(ARGUMENTS)

# torch brings what its own build needs (a CUDA build its libraries, a CPU build none), so those are not pinned.
lock: .venv/installed
	$(BIN)/python -m pip install --quiet uv
	echo torch==2.13.0 | $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-annotate \
		--no-header --upgrade --extra dev --constraint - pyproject.toml \
		| grep -vE '^(nvidia|cuda|triton)' | sed -E 's/^(torch==[0-9.]+).*/\1/' > requirements.lock.new
	mv requirements.lock.new requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-annotate --no-header --upgrade --group docs \
		--output-file requirements-docs.lock

# The links are checked as strictly as mkdocs can. Nothing in the pages asks another host.
.venv-docs/installed: requirements-docs.lock
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	touch $@

site: .venv-docs/installed
	.venv-docs/bin/python docs/build_site.py

release-check:
	$(PYTHON) -m release $(if $(TORCH),--torch $(TORCH)) $(ARGUMENTS)

clean:
	rm -rf .venv .venv-docs site .mypy_cache .ruff_cache .pytest_cache
