# Every target does its own set-up. `make help` lists them.

PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
DEMO = build/demo
WORKERS ?= 2

# Debian's packages that tests use as oracles and to build programs with; CI installs them.
LLVM_PACKAGES = clang-22 llvm-22 lld-22 bolt-22 libclang-rt-22-dev
CROSS_PACKAGES = gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstdc++-12-dev-arm64-cross
PACKAGES = $(LLVM_PACKAGES) $(CROSS_PACKAGES) gcc g++ libc6-dev binutils make \
           cmake ninja-build qemu-user linux-perf valgrind chromium
APT = DEBIAN_FRONTEND=noninteractive apt-get

SECONDS_EACH ?= 60

.PHONY: help demo test lint docs toolchain setup bench fuzz clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 14

demo: setup ## convert a shipped recording; print what was lost and the hottest branches
	@mkdir -p $(DEMO)
	$(BIN)/lbr2pgo convert testbins/recordings/x86-64-interp.pie.perf.data --binary testbins/x86-64/interp.pie \
	    --llvm $(DEMO)/interp.prof --fdata $(DEMO)/interp.fdata
	@echo; echo "the sample profile, $(DEMO)/interp.prof, begins with:"; head -n 6 $(DEMO)/interp.prof
	@echo; echo "the fdata, $(DEMO)/interp.fdata, begins with:"; head -n 4 $(DEMO)/interp.fdata
	@echo
	$(BIN)/lbr2pgo report testbins/recordings/x86-64-interp.pie.perf.data --binary testbins/x86-64/interp.pie \
	    --only hot-branches --top 10

test: setup toolchain lint ## lint, type-check and run every test (installs the toolchain if root)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -q

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup ## the documentation as a site, in build/site
	$(BIN)/mkdocs build --strict --quiet

setup: $(VENV)/.done ## virtual environment with the package and its development tools

# Debian's python3 comes without the module that makes environments; root can add it.
$(VENV)/.done: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; set PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	    { [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install -y python3-venv && $(PYTHON) -m venv $(VENV); }
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

toolchain: ## install the tools that tests compare with (Debian, root); without root, say what lacks
	@missing=; for package in $(PACKAGES); do \
	    [ "$$(dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null)" = installed ] || missing="$$missing $$package"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing$$missing"; \
	    $(APT) update -qq && $(APT) install -y -qq --no-install-recommends $$missing >/dev/null; \
	else \
	    for package in $$missing; do echo "not installed, its tests are skipped: $$package"; done; \
	fi

bench: setup ## measure against the tools that are installed, side by side
	$(BIN)/python benchmarks/run.py

fuzz: setup ## fuzz every reader for SECONDS_EACH seconds, loops with bounds checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tests/fuzz/run.py --seconds $(SECONDS_EACH)

clean: ## remove what the other targets made
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
