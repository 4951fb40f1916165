# `make` alone lists the targets. Packages are installed into .venv. Outside the repository, only the
# download caches of pip and cargo change, and with `make kernels` (which CI runs before the tests) the
# machine's packages and the user's cache of kernels.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
BIN    := .venv/bin
STAMPS := .venv/.stamps

# The interpreter that the engine is built for. Without it PyO3 would be configured and compiled again
# for each of pip, clippy and the shell.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Packages are installed in the versions that were tested, and only if their files have the recorded
# hashes. jostle itself has no hash: its dependencies are installed first.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_REQUIRE_HASHES := 1
WITHOUT_HASHES := PIP_CONSTRAINT= PIP_REQUIRE_HASHES=

DEPENDENCIES = $$($(BIN)/python -c 'import tomllib; it = tomllib.load(open("pyproject.toml", "rb")); \
               print(*it["project"]["dependencies"])')
# Packages of all extras of jostle; the tests use them.
EXTRAS = $$($(BIN)/python -c 'import itertools, tomllib; it = tomllib.load(open("pyproject.toml", "rb")); \
         print(*itertools.chain(*it["project"]["optional-dependencies"].values()))')

ENGINE := Cargo.toml Cargo.lock rust-toolchain.toml crates/python-bindings/build.rs \
          $(wildcard crates/*/Cargo.toml) $(shell find crates/*/src -name '*.rs')

# In CI the tests of the kernel backend use real kernels, and fail if a kernel is missing.
KERNELS := $(STAMPS)/kernels
ON_KERNELS = $(if $(CI),JOSTLE_TEST_KERNELS="$$(cat $(KERNELS))")

# jostle-python-bindings is an extension module: its tests are in Python. A Rust test program would be
# linked against libpython, which some Pythons lack. Benches need criterion, which tests do not.
CRATES := --workspace --exclude jostle-benches
RUST_TESTS := $(CRATES) --exclude jostle-python-bindings

# Tests use the same random cases each time; `make fuzz` tries others.
export PROPTEST_RNG_SEED ?= 1

# Compiling modules in each of the processes that tests start would take as long as many of the tests.
unexport PYTHONDONTWRITEBYTECODE

say = @if [ -t 1 ]; then printf '\033[1m==> %s\033[0m\n' "$(1)"; else echo "==> $(1)"; fi

.PHONY: bridge browser wheel help demo check test nightly lint test-rust engine fuzz fuzz-once bench-check soak audit mutants \
        licences lock kernels test-python docs docs-all reference results release-check bench format clean

help:
	@echo 'make demo     install into .venv, run the satellite competition, leave its pictures in demo/'
	@echo 'make check    format, lint, types and fast tests of what changed since the branch left main'
	@echo 'make test     all required checks: lint, test-rust, test-python, docs'
	@echo 'make nightly  the slow tests, benches, random cases, killed commands and audits as well'
	@echo 'make wheel    build a wheel for this machine into dist/, and run the demo from it in an empty environment'
	@echo 'make bridge   link the controllers into an object for a kernel module, target/bridge.o'
	@echo 'make kernels  install and build the kernels of the kernel backend tests (some minutes)'
	@echo 'make fuzz     damage files for every reader, then test the engine with new random cases until one fails'
	@echo 'make soak     kill and interrupt commands at random instants for MINUTES (10)'
	@echo 'make mutants  change the code in one place at a time and list the changes that no test detects'
	@echo 'make audit    check dependencies for known vulnerabilities and forbidden licences'
	@echo 'make licences list the licences of all distributed files'
	@echo 'make lock     renew constraints.txt, the versions and hashes of all Python packages'
	@echo 'make docs     check generated text, build the documentation into docs/_build/html'
	@echo 'make reference  update generated text of the documentation, without slow commands'
	@echo 'make results  update all of it, and recorded results that take minutes; list the slow ones'
	@echo 'make release-check  check all generated text, and that this engine made all recorded results'
	@echo 'make bench    measure how fast the engine is'
	@echo 'make format   format Rust and Python'
	@echo 'make clean    remove what was built; finished runs in .jostle stay'

demo: $(STAMPS)/package
	$(call say,Two flows share a satellite link: five pairs of controllers)
	@$(BIN)/jostle run scenarios/geo-shared.toml -o demo/

# The engine is compiled with profile-guided optimization, and compared with that of the installation
# above. The environment is made with the versions that were tested.
wheel: $(STAMPS)/package
	$(call say,A wheel, and the demo from it in an empty environment)
	@rm -rf dist
	$(BIN)/python tools/build_wheel.py dist
	$(BIN)/python tools/try_wheel.py dist/*.whl

# Wheels have this object; a source checkout links it when it needs it.
bridge:
	sh crates/kernel-bridge/link.sh target/bridge.o

check: $(STAMPS)/dev
	@$(BIN)/python tools/check.py $(if $(BASE),--base $(BASE))

# Lint and documentation mostly use one core each. Lint ends first: the Rust tests then use its core.
test: $(STAMPS)/dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint docs test-rust
	@$(MAKE) --no-print-directory test-python
	$(call say,All tests passed)
	@$(if $(CI),cat $(KERNELS).missing >&2)

# You can run each part by itself. `make --keep-going nightly` continues after a failed part.
nightly: export CI ?= true
nightly: PYTEST_MARKS :=
nightly: test docs-all bench-check fuzz-once soak audit mutants
	$(call say,The nightly targets passed)

# Targets of cargo-fuzz are compiled but not linked, so no libFuzzer is built.
lint: $(STAMPS)/dev
	$(call say,Format and lint)
	cargo fmt --all --check
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	cargo clippy --quiet $(CRATES) --all-targets -- -D warnings
	@# The kernel has no standard library: this command fails if a crate below uses it.
	cargo clippy --quiet --package jostle-kernel-bridge --features kernel -- -D warnings
	cargo clippy --quiet --package jostle-kernel-bridge --features library,exported -- -D warnings
	CUSTOM_LIBFUZZER_PATH=/none/libfuzzer.a cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir target
	$(BIN)/mypy
	$(BIN)/python tools/prose_rates.py

test-rust:
	$(call say,Tests of the engine)
	cargo test --quiet $(RUST_TESTS)

# cargo-fuzz needs flags of a nightly compiler; RUSTC_BOOTSTRAP allows them in a stable compiler.
FUZZ_TARGETS := run_spec parameter_files ip_headers packet_ring captures toml_lines
FUZZ_SECONDS ?= 60
READER_MINUTES ?= 1
fuzz: export JOSTLE_MUTATED_SPECS ?= 100000
fuzz: fuzz-once
	$(call say,Random cases that no test has seen; Ctrl-C ends it)
	@while seed=$$RANDOM$$RANDOM; do \
	   echo "PROPTEST_RNG_SEED=$$seed"; \
	   PROPTEST_RNG_SEED=$$seed cargo test --quiet --release $(RUST_TESTS) || exit; \
	 done

fuzz-once: $(STAMPS)/dev
	$(call say,Damaged files for every reader)
	@$(BIN)/python tools/fuzz_readers.py --minutes $(READER_MINUTES)
	@if cargo fuzz --version >/dev/null 2>&1; then \
	   for target in $(FUZZ_TARGETS); do \
	     RUSTC_BOOTSTRAP=1 cargo fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) || exit; \
	   done; \
	 else echo 'cargo-fuzz is not installed (cargo install cargo-fuzz): its targets are left out'; fi

soak: $(STAMPS)/package
	$(call say,Commands that are killed and interrupted)
	@$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),10)

# A shard is a fraction of the changes of the Rust code and of the Python files, for example 3/40, and
# differs every night. cargo-mutants exits with 2 if changes survive and with 3 if tests did not end.
SHARD ?= $(shell expr $$(date +%j) % 40)/40
MUTATED := congestion tcp link
mutants: $(STAMPS)/dev
	$(call say,Changes that tests should notice)
	@command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants
	@$(BIN)/pip install --quiet --group mutants
	cargo mutants --no-shuffle --shard $(SHARD) --output target $(addprefix --package jostle-,$(MUTATED)) \
	  || case $$? in 2 | 3) ;; *) exit 1 ;; esac
	$(BIN)/python tools/mutants.py stats --shard $(SHARD)
	$(BIN)/python tools/mutants.py studies --shard $(SHARD)

# Both download lists of vulnerabilities.
audit: $(STAMPS)/venv
	$(call say,Known vulnerabilities and licences of dependencies)
	@command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny
	cargo deny --workspace check
	@$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

licences: $(STAMPS)/package
	@$(BIN)/python tools/licences.py

# For every platform and Python that jostle supports. No code of a package is run (`--no-build`).
lock: $(STAMPS)/venv
	$(call say,Newest versions of all Python packages)
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv --no-config --quiet pip compile pyproject.toml --upgrade --universal --python-version 3.11 \
	  --all-extras --group build --group dev --group docs --group mutants --group release --no-build --generate-hashes \
	  --no-annotate --custom-compile-command 'make lock' --output-file constraints.txt

kernels: $(STAMPS)/engine
	$(call say,Kernels for the tests)
	@.ci/kernels $(KERNELS)

browser:
	$(call say,A browser for the tests)
	@.ci/browser

# One test per core at the same time.
PYTEST_MARKS ?= -m 'not slow'
test-python: $(STAMPS)/dev $(if $(CI),kernels browser)
	$(call say,Tests of the package)
	$(ON_KERNELS) $(BIN)/pytest --numprocesses auto --dist worksteal $(PYTEST_MARKS)

docs: $(STAMPS)/dev
	$(call say,Documentation)
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/reference.py --results --check
	$(BIN)/sphinx-build --jobs auto --quiet --fail-on-warning --keep-going docs docs/_build/html
	$(BIN)/python tools/links.py docs/_build/html
	@echo 'docs/_build/html/index.html'

docs-all: $(STAMPS)/dev
	$(call say,Numbers and figures of the documentation)
	$(BIN)/python tools/reference.py --check --all

reference: $(STAMPS)/dev
	$(BIN)/python tools/reference.py

# `make results RESULTS="fits studies"` updates the named results, including slow ones.
RESULTS ?=
results: $(STAMPS)/dev
	$(BIN)/python tools/reference.py --all
	$(BIN)/python tools/reference.py --results $(RESULTS)

release-check: docs-all
	$(BIN)/python tools/reference.py --results --check --release

bench:
	cargo bench --package jostle-benches
	cargo bench --package jostle-testkit

bench-check:
	$(call say,Benches compile)
	cargo clippy --quiet --package jostle-benches --all-targets -- -D warnings

format: $(STAMPS)/dev
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix-only
	$(BIN)/ruff format --quiet

clean:
	rm -rf target .venv demo dist docs/_build python/jostle/*.so
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	$(call say,Making .venv)
	@command -v cargo >/dev/null || { echo 'Rust is missing: see https://rustup.rs'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo 'Python cannot make virtual environments. On Debian: apt-get install python3-venv'; exit 1; }
	$(PYTHON) -m venv .venv
	@# The pip of the system takes hashes from a list of requirements only.
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt | $(BIN)/pip install --quiet --requirement /dev/stdin
	@mkdir -p $(@D) && touch $@

$(STAMPS)/build: $(STAMPS)/venv pyproject.toml constraints.txt
	$(call say,Installing the packages that jostle needs)
	$(BIN)/pip install --quiet --group build $(DEPENDENCIES)
	@touch $@

# Without build isolation: cargo then finds the same interpreter each time and compiles only what
# has changed.
# pip compiles no bytecode of sources that are used in place; without it each command compiles them again
# where Python may not write it.
INSTALL = PATH="$(CURDIR)/$(BIN):$$PATH" $(WITHOUT_HASHES) $(BIN)/pip install --quiet --no-deps --no-build-isolation \
          --editable . && $(BIN)/python -m compileall -q -j 0 python/jostle

$(STAMPS)/package: $(STAMPS)/build $(ENGINE)
	$(call say,Installing jostle. The engine is compiled: some minutes at first)
	$(INSTALL)
	@touch $@ $(STAMPS)/engine

# For tests the engine is compiled with the profile of the Rust tests, whose artefacts it shares, and without
# optimisation at link time. One that `make demo` has compiled serves as well.
engine: $(STAMPS)/engine
$(STAMPS)/engine: $(STAMPS)/build $(ENGINE)
	$(call say,Installing jostle for tests. The engine is compiled: some minutes at first)
	MATURIN_PEP517_ARGS='--profile dev' $(INSTALL)
	@touch $@
	@rm -f $(STAMPS)/package

$(STAMPS)/dev: pyproject.toml constraints.txt | $(STAMPS)/engine
	$(call say,Installing what tests and documentation need)
	$(BIN)/pip install --quiet --group dev --group docs $(EXTRAS)
	@touch $@
