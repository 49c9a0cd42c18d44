# Every target does its own set-up. `make help` lists them.

PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
DEMO = build/demo
WORKERS ?= 2

# Debian's packages that tests use as oracles and to build programs with; CI installs them.
LLVM_PACKAGES = clang-22 llvm-22 lld-22 bolt-22 libclang-rt-22-dev
CROSS_PACKAGES = gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstdc++-12-dev-arm64-cross \
                 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross libstdc++-12-dev-riscv64-cross
PACKAGES = $(LLVM_PACKAGES) $(CROSS_PACKAGES) gcc g++ libc6-dev binutils dwz elfutils make \
           cmake ninja-build qemu-user patchelf linux-perf valgrind chromium zstd bazel-bootstrap autofdo golang-go debhelper nix-bin ccache
APT = DEBIAN_FRONTEND=noninteractive apt-get
# Whether an extension can be built.
HAS_COMPILER = (command -v cc || command -v gcc || command -v clang) >/dev/null && \
    $(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'

SECONDS_EACH ?= 60
SECONDS ?= 3600
SANITIZED = build/sanitized
SANITIZERS = -fsanitize=address,undefined
SEED ?= 1
MINUTES ?= 20

.PHONY: help demo test test-all test-pythons lint man docs tables toolchain compiler install setup bench bench-fleet dist fuzz sanitize mutants clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

demo: install ## convert a shipped recording; print what was lost and the hottest branches
	@mkdir -p $(DEMO)
	$(BIN)/lbr2pgo convert testbins/recordings/x86-64-interp.pie.perf.data --binary testbins/x86-64/interp.pie \
	    --llvm $(DEMO)/interp.prof --fdata $(DEMO)/interp.fdata
	@echo; echo "the sample profile, $(DEMO)/interp.prof, begins with:"; head -n 6 $(DEMO)/interp.prof
	@echo; echo "the fdata, $(DEMO)/interp.fdata, begins with:"; head -n 4 $(DEMO)/interp.fdata
	@echo
	$(BIN)/lbr2pgo report testbins/recordings/x86-64-interp.pie.perf.data --binary testbins/x86-64/interp.pie \
	    --only hot-branches --top 10

PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -q

test: setup toolchain lint ## lint, type-check and run all tests but the slow ones (installs the toolchain if root)
	$(PYTEST) -m "not slow and not long"

test-all: setup toolchain lint ## the same with the slow ones: whole builds, searches, damaged files
	$(PYTEST)

test-pythons: setup ## the suite's fast part on the other Pythons, 3.11 to 3.14
	$(BIN)/python tests/pythons.py

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

man: setup ## the manual page, in build/man
	@mkdir -p build/man
	$(BIN)/argparse-manpage --module lbr2pgo.cli --function _parser --project-name lbr2pgo --prog lbr2pgo \
	    --description "turn branch-stack samples into profiles and reports" --author "The lbr2pgo developers" \
	    --output build/man/lbr2pgo.1

tables: setup ## write the tables of the docs that come from registries
	$(BIN)/python docs/make_tables.py

docs: setup ## the documentation as a site, in build/site
	$(BIN)/mkdocs build --strict --quiet

compiler: ## a C compiler and Python's headers, which the extension is built with (Debian, root)
	@if $(HAS_COMPILER); then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    $(APT) update -qq && $(APT) install -y -qq --no-install-recommends gcc libc6-dev python3-dev >/dev/null; \
	else \
	    echo "a C compiler and Python's headers are needed; on Debian: apt-get install gcc libc6-dev python3-dev" >&2; exit 1; \
	fi

install: $(VENV)/.installed ## virtual environment with the package and what it needs

setup: $(VENV)/.developed ## the same, with the tools for development

# One pip for all environments saves the time of installing it in this one, which Debian's python3
# can't do without another package; root can add that. pip knows --python since 22.3.
HAS_PIP = $(PYTHON) -c 'import sys, pip; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))' 2>/dev/null
PIP = $(if $(shell test -x $(BIN)/pip && echo yes),$(BIN)/pip,$(PYTHON) -m pip --python $(BIN)/python)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; set PYTHON=…" >&2; exit 1; }
	@if $(HAS_PIP); then without=--without-pip; fi; $(PYTHON) -m venv $$without $(VENV) || \
	    { [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install -y python3-venv && $(PYTHON) -m venv $(VENV); }

LOOPS = $(foreach depth,* */* */*/*,$(wildcard lbr2pgo/$(depth)/*.p[yx][xd]))

DEPENDENCIES = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")

# What the package needs is fetched while it is compiled.
$(VENV)/.installed: pyproject.toml setup.py $(LOOPS) | compiler $(BIN)/python
	@echo "compiling the loops, and fetching what the package needs: half a minute on two processors"
	@$(PYTHON) -c '$(DEPENDENCIES)' >$(VENV)/dependencies.txt
	@$(PIP) install --quiet --editable . --no-deps & built=$$!; \
	$(PIP) install --quiet --requirement $(VENV)/dependencies.txt; fetched=$$?; \
	wait $$built && exit $$fetched
	@touch $@

$(VENV)/.developed: pyproject.toml setup.py $(LOOPS) | compiler $(BIN)/python
	$(PIP) install --quiet pip --editable '.[dev]'
	@touch $(VENV)/.installed $@

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

bench-fleet: setup ## measure what a fleet costs, on an otherwise idle machine: 15 minutes, 6 GB
	$(BIN)/python benchmarks/fleet.py

dist: setup ## source archive and wheel in dist/, checked, and each tried in an empty environment
	rm -rf dist
	$(BIN)/pip install --quiet build twine
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/twine check --strict dist/*
	@for package in dist/*; do \
	    rm -rf build/try && $(PYTHON) -m venv build/try && build/try/bin/pip install --quiet "$$package" && \
	    build/try/bin/lbr2pgo convert testbins/recordings/x86-64-interp.pie.perf.data \
	        --binary testbins/x86-64/interp.pie --llvm - >/dev/null 2>&1 && echo "$$package converts" || exit 1; \
	done
	@echo "next: git tag v$$($(BIN)/python -c 'import lbr2pgo; print(lbr2pgo.__version__)')"

fuzz: setup ## fuzz every reader for SECONDS_EACH seconds
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS_EACH)

sanitize: setup ## run damaged inputs for SECONDS seconds on extensions with sanitizers (nightly: an hour)
	@mkdir -p $(SANITIZED)
	tar --exclude='*.so' --exclude=__pycache__ -cf - lbr2pgo setup.py pyproject.toml README.md LICENSE | tar -xf - -C $(SANITIZED)
	cd $(SANITIZED) && CC=gcc CFLAGS="$(SANITIZERS) -fno-omit-frame-pointer" LDFLAGS="$(SANITIZERS)" \
	    $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16:hard_rss_limit_mb=3000 \
	    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONPATH=$(CURDIR)/$(SANITIZED) \
	    $(BIN)/python tests/fuzz/mutated.py --seconds $(SECONDS)

mutants: setup ## change code in small ways for MINUTES minutes, by a SEED, and see which the tests notice
	$(BIN)/python tests/mutants.py --seed $(SEED) --minutes $(MINUTES)

clean: ## remove what the other targets made
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
	find lbr2pgo -name "*.so" -delete
