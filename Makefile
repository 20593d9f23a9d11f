# Every target does its own set-up. What is set up is remembered by stamps in .venv, so a second
# call is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
KERNEL := $(VENV)/.kernel
SPARK := $(VENV)/.spark
WARM := $(VENV)/.warm
CODE := src tests bench demo setup.py
SPARK_TESTS := tests/spark tests/unit/spark tests/unit/pipelines
OTHER_HALF := $(SPARK_TESTS) tests/simulation tests/raft tests/dialogues tests/chaos tests/fuzz tests/console \
  $(addprefix tests/cluster/test_,modes.py six_accidents.py slaves.py \
    raft_cut.py raft_damage.py raft_group.py raft_kinds.py access.py tls.py)

.PHONY: setup run test browser spark-long check sim mutants fuzz soak raft-check chaos bench bench-guard interop demo clean tools lock audit lower-bounds

setup: $(CORE) $(KERNEL)

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; $(PYTHON) is older" >&2; exit 2; }
	@echo "set-up: virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade pip setuptools wheel
	@touch $@

$(CORE): $(VENV)/.made pyproject.toml
	@echo "set-up: gantrymq and what it needs"
	@$(BIN)/python -m pip install -q "Cython>=3.1"
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[secure,console]"
	@touch $@

# The compiled kernel is optional: without a C compiler the pure-Python twin serves.
$(KERNEL): $(CORE) setup.py $(wildcard src/gantrymq/kernel/*.pyx src/gantrymq/kernel/*.pxi src/gantrymq/kernel/*.h)
	@echo "set-up: compiled kernel"
	@$(BIN)/python setup.py -q build_ext --inplace >$(VENV)/kernel.log 2>&1 || true
	@$(BIN)/python -c 'from gantrymq import kernel; print("set-up: kernel is", kernel.GRADE)'
	@touch $@

$(DEV): $(CORE) $(KERNEL)
	@echo "set-up: tools for tests and checks"
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[dev]"
	@touch $@

$(SPARK): $(DEV)
	@echo "set-up: Spark (about a minute the first time)"
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[spark,iceberg,connect,jdk]"
	@touch $@

# Spark then starts in half the time. It does without, so a machine that cannot make it goes on.
$(WARM): $(SPARK)
	@echo "set-up: Java's classes for Spark in one file (about a minute, once)"
	@$(BIN)/gantry pipeline warm || true
	@touch $@

run: setup
	@exec $(BIN)/gantry up --data ./data

# Spark uses both cores in turns with everything else, and waits for it: the first half is the
# longer one, and has tests with a clock in their hand. Stories in virtual time can wait, too.
test: $(SPARK)
	@echo "tests: two halves side by side; the other one's report comes at the end"
	@nice -n 5 $(BIN)/pytest $(OTHER_HALF) >$(VENV)/other-half.log 2>&1 & other=$$!; trap "kill $$other" INT TERM; \
	$(BIN)/pytest tests --ignore=tests/interop --ignore=tests/browser --ignore=tests/sparklong $(OTHER_HALF:%=--ignore=%); \
	one=$$?; wait $$other; other=$$?; cat $(VENV)/other-half.log; exit $$((one | other))

# What takes a Spark of its own: clusters, remote sessions, drivers that are killed.
spark-long: $(WARM)
	$(BIN)/pytest tests/sparklong

check: $(DEV)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	MYPYPATH=src:tests $(BIN)/mypy --explicit-package-bases -p chaos -p soak
	MYPYPATH=src:tests/kits:tests/interop:tests/dialogues $(BIN)/mypy -p bench
	$(BIN)/lint-imports
	$(BIN)/pytest tests/unit/test_tidy.py

# Random stories: a thousand about raft groups and some hundreds of the other kinds, in two halves side by side;
# other ones with SEEDS=1000:2000. SEED=17 prints one of each kind as a timeline. LONG=1 makes those
# about raft groups more than ten times as long.
STORIES = GANTRY_SEEDS=$(1) $(if $(LONG),GANTRY_EVENTS=50000) $(BIN)/pytest -q
GROUPS = tests/simulation/test_groups.py
OTHER_STORIES = tests/simulation --ignore=$(GROUPS)
sim: $(DEV)
ifdef SEED
	@$(if $(LONG),GANTRY_EVENTS=50000) $(BIN)/python tests/simulation/tell.py $(SEED)
else ifdef SEEDS
	@$(call STORIES,$(SEEDS)) tests/simulation
else
	@echo "stories: two halves side by side; the other one's report comes at the end"
	@$(call STORIES,0:500) $(GROUPS) >$(VENV)/other-stories.log 2>&1 & other=$$!; trap "kill $$other" INT TERM; \
	$(call STORIES,500:1000) $(GROUPS) && $(call STORIES,0:400) $(OTHER_STORIES); \
	one=$$?; wait $$other; other=$$?; cat $(VENV)/other-stories.log; exit $$((one | other))
endif

# Classic faults in copies of the product: which story finds each. One with MUTANT=votes_twice.
mutants: $(DEV)
	$(BIN)/python tests/mutants/try_mutants.py $(MUTANT)

# An hour of load with slow and dead clients, and a kill -9 every five minutes; MINUTES=5 for less.
soak: setup
	@PYTHONPATH=tests:$$PYTHONPATH $(BIN)/python -m soak \
	  --minutes $(or $(MINUTES),60) --kill-seconds $(or $(KILL_SECONDS),300)

# Damaged input by coverage, on every reader of bytes from outside; a minute each, or FUZZ_SECONDS.
FUZZ := $(VENV)/.fuzz
$(FUZZ): $(DEV)
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[fuzz]"
	@touch $@

fuzz: $(FUZZ)
	$(BIN)/python tests/fuzz/guided.py --seconds $(or $(FUZZ_SECONDS),60) $(TARGET)

# The console in a real Chromium, on real clusters; pictures of all pages are in .venv/screenshots.
BROWSER := $(VENV)/.browser
$(BROWSER): $(SPARK)
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[browser]"
	@touch $@

browser: TOOLS = chromium java mvn
browser: tools $(BROWSER)
	@$(BIN)/python tests/interop/toolchain.py java
	$(BIN)/pytest tests/browser

# Every interleaving of a small raft group, as far as three minutes go.
raft-check: $(CORE)
	$(BIN)/python tests/raft/explore.py --seconds 180

# Servers and clients as processes on hosts of their own, under faults of processes, networks and
# disks; LONG=1 for longer faults, three times, MODES="raft sync-master" for some modes only.
chaos: setup
	@PYTHONPATH=tests:$$PYTHONPATH $(BIN)/python -m chaos $(MODES:%=--mode %) $(if $(LONG),--seconds 10 --rounds 3,)

TOOLS = java mvn
interop: TOOLS += go node npm cargo
tools:
	@for tool in $(TOOLS); do \
	  command -v $$tool >/dev/null || { echo "this target needs $$tool, which is missing" >&2; exit 2; }; \
	done

# Both halves wait for others most of the time. The programs are built once, before either starts.
interop: tools $(SPARK)
	@$(BIN)/python tests/interop/toolchain.py
	@echo "interop: two halves side by side; the other one's report comes at the end"
	@$(BIN)/pytest tests/interop/test_across_*.py \
	  >$(VENV)/other-interop.log 2>&1 & other=$$!; trap "kill $$other" INT TERM; \
	$(BIN)/pytest tests/interop --ignore-glob='*/test_across_*.py'; \
	one=$$?; wait $$other; other=$$?; cat $(VENV)/other-interop.log; exit $$((one | other))

# The newest versions of what an installation needs, with hashes: requirements/core.txt.
lock: $(DEV)
	@$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --upgrade --extra secure --extra lz4 --extra zstd --extra console pyproject.toml -o requirements/core.txt

# Known vulnerabilities of these versions; needs a package index that tells of them.
audit: $(DEV)
	@$(BIN)/python -m pip install -q pip-audit
	$(BIN)/pip-audit --disable-pip --require-hashes --strict -r requirements/core.txt

# The oldest versions that pyproject.toml allows, in an environment of their own.
OLDEST := $(VENV)-oldest
LOWER_BOUND_TESTS := $(addprefix tests/unit/,access base broker client filter kernel nameserver protocol remoting store) \
  $(addprefix tests/cluster/test_,cli.py broker.py tls.py secure_up.py up_console.py) \
  $(addprefix tests/console/test_,login.py topics.py groups_api.py)
lower-bounds: setup
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -q --upgrade pip setuptools wheel "Cython>=3.1"
	@$(OLDEST)/bin/python -m pip install -q --no-build-isolation -c requirements/lower-bounds.txt \
	  -e ".[secure,lz4,zstd,console]" pytest pytest-timeout hypothesis pydantic fastapi
	$(OLDEST)/bin/pytest $(LOWER_BOUND_TESTS)

# Ours beside RocketMQ, and beside Kafka, NATS and Redis with the clients of Python; QUICK=1 does a tenth of the work.
BENCH := $(VENV)/.bench
$(BENCH): $(WARM)
	@$(BIN)/python -m pip install -q --no-build-isolation -e ".[bench]"
	@touch $@

bench: TOOLS += go cc redis-server
bench: tools $(BENCH)
	$(BIN)/python -m bench $(if $(QUICK),--quick)

# Nothing is slower than it was: the hot paths of this commit against those of an older one, in one run.
bench-guard: TOOLS = git cc
bench-guard: tools $(CORE) $(KERNEL)
	$(BIN)/python -m bench.guard $(BASE:%=--base %)

demo: $(SPARK)
	$(BIN)/python -m demo

clean:
	rm -rf $(VENV) build src/*.egg-info src/gantrymq/kernel/*.c src/gantrymq/kernel/*.so
