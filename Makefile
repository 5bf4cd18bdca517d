# `make demo` and `make test` work on a machine that has nothing but Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Tests start hundreds of programs; without bytecode on the disk, each of them would compile guieval again.
export PYTHONDONTWRITEBYTECODE =
DEMO ?=  # further options of the demo's run, e.g. DEMO='--limit 2'

# RapidOCR asks for an OpenCV that needs libGL; where a machine has none, the one without windows takes its place.
HEADLESS = $(BIN)/python -c "import cv2" 2>/dev/null || { \
	$(BIN)/python -m pip uninstall --quiet --yes opencv-python; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps opencv-python-headless; }

# The browser in which reports are tried; without it those tests are skipped and say so.
browser:
	@command -v chromium google-chrome chromium-browser > /dev/null \
		|| { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } > /dev/null 2>&1 \
		|| echo "no Chromium here, and none could be installed: the browser tests will be skipped"

# The applications of `--bench desktop`, its display and its sandbox.
DESKTOP = bubblewrap xvfb openbox xdotool xclip gedit pcmanfm xterm mate-calc \
	libreoffice-calc libreoffice-writer libreoffice-gtk3 fonts-dejavu-core fonts-noto-cjk \
	dbus at-spi2-core python3-gi gir1.2-atspi-2.0
desktop:
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DESKTOP)

# A user's script in a folder of its own: from inside the checkout, type checkers find the checkout's guieval.
OUTSIDE = user=$$(mktemp -d) && cp tests/user_project/*.py $$user && cd $$user

.PHONY: browser desktop demo docs test test-ci test-alone test-all check check-ci check-full lint types types-all wheel pyright resolve lock lowest image
.PHONY: test-formats test-vllm test-train test-trainers test-learning test-plugins test-verl test-gpu gpu coverage kills fuzz clean

$(VENV)/.demo: pyproject.toml setup.py
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'guieval needs Python 3.11 or newer')"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[baseline,report]'
	$(HEADLESS)
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[baseline,report,dev]'
	$(HEADLESS)
	touch $@

$(VENV)/.dev-all: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[baseline,report,dev-all]'
	$(HEADLESS)
	touch $@

# The main job: a real agent on real (drawn) screens, offline, semi-online and online, and a report of every step.
demo: $(VENV)/.demo
	@run=runs/demo-$$(date +%Y%m%d-%H%M%S) \
		&& $(BIN)/guieval run --model ocr-baseline --bench demo --mode offline --mode soeval --mode sop --mode online --out $$run $(DEMO) \
		&& $(BIN)/guieval report $$run/soeval --against $$run/offline
	@echo "next:     source $(BIN)/activate    (puts guieval on the PATH of this shell)"

# Three tiers (CONTRIBUTING.md): each prints how long its parts took, and leaves their output in build/parts.
test: $(VENV)/.dev
	@$(PYTHON) tests/parts.py core

test-ci: browser $(VENV)/.dev-all
	@$(PYTHON) tests/parts.py ci

# Everything, some 80 minutes on two cores. Called again, it goes on with the parts that have not passed on these files;
# ALL='check-full kills' makes some parts only, ALL=--again all of them once more.
ALL ?=
test-all: browser $(VENV)/.dev-all
	@$(PYTHON) tests/parts.py all $(ALL)

# The core's tests in a copy from which every wing is deleted; those that need one are skipped with a sentence.
test-alone: $(VENV)/.dev-all
	$(BIN)/python -m tests.alone tests --tier core -rs

# The documentation site; its pages and their search need no network and no server. With VERSION=0.1.0 it is put next to those of other
# versions into build/docs, whose pages have a list of all.
VERSION ?=
docs: $(VENV)/.dev-all
	$(BIN)/python docs/site/build.py $(VERSION)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Packages of the larger tiers that are absent count as untyped here; types-all reads them.
types: $(VENV)/.dev
	$(BIN)/mypy --disable-error-code import-not-found --disable-error-code import-untyped --no-warn-unused-ignores --no-warn-return-any --allow-subclassing-any

types-all: $(VENV)/.dev-all
	$(BIN)/mypy --cache-dir .mypy_cache/all

# Tests wait for servers and programs now and then, so there is one more worker than processors.
WORKERS = $$($(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
check: $(VENV)/.dev
	$(PYTEST) --tier core

check-ci: browser $(VENV)/.dev-all
	$(PYTEST) --tier ci

check-full: browser $(VENV)/.dev-all
	$(PYTEST) --tier full

# The wheel, built from the source distribution, alone in a clean environment and used from an empty directory: nothing may lean on the
# checkout. Then a user's script against its types.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel/empty
	$(BIN)/python -m build --outdir build/wheel . > build/wheel/build.log 2>&1 || (cat build/wheel/build.log; exit 1)
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel/empty && PATH=../venv/bin:$$PATH sh -ec '\
		guieval benchmarks && guieval models && guieval protocols && guieval doctor' > ../used.log || (cat build/wheel/used.log; exit 1)
	build/wheel/venv/bin/python tests/check_light_install.py
	$(OUTSIDE) && $(abspath $(BIN))/python -m mypy --config-file= --strict --python-executable $(CURDIR)/build/wheel/venv/bin/python .

# The same with pyright, which fetches itself from npm.
pyright: wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pyright
	$(OUTSIDE) && $(abspath $(BIN))/python -m pyright --pythonpath $(CURDIR)/build/wheel/venv/bin/python .

# Whether all extras can be installed together, under every version of Python; nothing is installed but uv, which resolves.
resolve: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@for version in 3.11 3.12 3.13 3.14; do \
		$(BIN)/uv pip compile --quiet --no-header --python-version $$version --extra all pyproject.toml --output-file build/all-$$version.txt \
			&& echo "Python $$version: `grep -c == build/all-$$version.txt` packages" || exit 1; \
	done

# The versions of the demo's packages, with their hashes, for every Python and system: requirements/demo.txt, newest first.
lock: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --custom-compile-command 'make lock' \
		--python-version 3.11 --extra baseline --extra report pyproject.toml --output-file requirements/demo.txt

# The core and the light extras in the lowest versions that pyproject.toml allows, installed and used: 600 MB in build/lowest. Heavy
# extras are only resolved.
LIGHT = $(addprefix --extra ,anthropic gemini hub openai pandas report)
HEAVY = $(addprefix --extra ,baseline cluster train verl web)
LOWEST = $(BIN)/uv pip compile --quiet --no-header --python-version 3.11 --resolution lowest-direct pyproject.toml
USED = $(addprefix tests/,cli/test_help.py cli/test_cli.py cli/test_cli_patches.py cli/test_cli_score.py cli/test_cli_compare.py data/hub \
	data/test_screenshots.py engines/apis engines/http/test_chat_answers.py connectors/servers/test_openenv.py parsing exchange \
	reports/opened reports/server reports/test_whole_cost.py)
lowest: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	mkdir -p build
	$(LOWEST) $(LIGHT) --output-file build/lowest.txt
	$(LOWEST) $(HEAVY) --output-file build/lowest-heavy.txt
	test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python -r build/lowest.txt hypothesis httpx jsonschema pytest
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python --no-deps --editable .
	build/lowest/bin/python -m pytest -q -p no:cacheprovider --tier core $(USED)

# The image with vLLM, and what it finds in itself.
image:
	docker build --tag guieval .
	docker run --rm guieval doctor

# Exported results, read by the packages of Inspect, Harbor and Every Eval Ever: 330 MB in build/formats. Of the last two only their
# formats are needed, which run on earlier versions of Python and without the rest of what they depend on.
test-formats: $(VENV)/.dev-all
	test -x build/formats/bin/python || $(PYTHON) -m venv build/formats
	build/formats/bin/python -m pip install --quiet --disable-pip-version-check inspect_ai==0.3.285
	build/formats/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python harbor==0.26.0 every-eval-ever==0.3.0
	$(BIN)/python -m pytest -p no:cacheprovider tests/exchange/test_readers.py

# The engines against real vLLM (its CPU build) and a tiny model: Linux on x86-64, 3.6 GB in the user's cache folder.
test-vllm:
	python=$$($(PYTHON) tests/environment.py vllm) && $$python -m pytest -p no:cacheprovider tests/vllm

# Training with TRL on this machine's CPU, with the tiny policy: Linux on x86-64, 1.8 GB in the user's cache folder.
# TRAIN='tests/training/test_behaviour.py' runs a part of it.
TRAIN ?= tests/training
test-train:
	python=$$($(PYTHON) tests/environment.py training) && $$python -m pytest -p no:cacheprovider $(TRAIN)

# Of the tests with TRL and with verl, what the middle tier has time for.
TRAINERS = $(addprefix tests/training/test_,behaviour.py rows.py speed.py answers.py lora.py trainers.py transformers_engine.py)
LONG = resumed or processes_share or goes_on or evaluation_changes_nothing or loss_falls or micro_batches_and or fillers_change
test-trainers:
	python=$$($(PYTHON) tests/environment.py training) && $$python -m pytest -p no:cacheprovider $(TRAINERS) -k 'not ($(LONG))'
	$(MAKE) test-verl

# The shipped policy gets better by training: some minutes more, in the same environment.
test-learning:
	python=$$($(PYTHON) tests/environment.py training) && $$python -m pytest -p no:cacheprovider --tier full tests/training

# guieval's protocols inside Inspect, lmms-eval, evalscope and verifiers: Linux on x86-64, 2.4 GB in the user's cache folder.
test-plugins:
	python=$$($(PYTHON) tests/environment.py plugins) && $$python -m pytest -q -p no:cacheprovider tests/plugins

# The plug-in of verl as far as it goes without a GPU: Linux on x86-64, 2.2 GB in the user's cache folder.
test-verl:
	python=$$($(PYTHON) tests/environment.py training_verl) && $$python -m pytest -p no:cacheprovider tests/training_verl

# What guieval reaches on one card (docs/gpu.md), part by part, by a Python that has guieval[train-vllm]; needs no network:
# make gpu PART=vllm PYTHON=.gpu/bin/python MODEL=FOLDER
PART ?=
GPU ?=
gpu:
	@$(PYTHON) -c "import guieval.benchmarks" 2> /dev/null || { echo "gpu: PYTHON is '$(PYTHON)', which has no guieval: see docs/gpu.md" >&2; exit 2; }
	@$(PYTHON) -m perf.gpu $(if $(MODEL),--model $(MODEL)) $(GPU) "$(PART)"

# The same parts in small on this machine's CPU: Linux on x86-64, 3.9 GB in the user's cache folder.
test-gpu:
	python=$$($(PYTHON) tests/environment.py gpu) && $$python -m perf.gpu all --size tiny

# Runs killed at 100 moments in every mode, online runs, preparations, imports and trainings at 20, and power cut at 20 (as root):
# some 45 minutes.
kills: browser $(VENV)/.dev-all
	GUIEVAL_KILLS=100 $(BIN)/python -m pytest -q tests/running/resume/test_resume.py -k kills
	GUIEVAL_KILLS=20 $(BIN)/python -m pytest -q tests/online/test_runs.py tests/faults/test_environments.py -k kill
	GUIEVAL_KILLS=20 $(BIN)/python -m pytest -q tests/cli/test_cli_prepare.py -k 'again_makes or a_kill'
	GUIEVAL_POWER_LOSSES=20 $(BIN)/python -m pytest -q tests/faults/test_disks.py -k power
	python=$$($(PYTHON) tests/environment.py training) && GUIEVAL_KILLS=20 $$python -m pytest -q -p no:cacheprovider tests/training/test_kills.py

# How often intervals cover the truth and tests are wrong, by simulation, as docs/statistics.md says: some 9 minutes.
coverage: $(VENV)/.dev
	$(BIN)/python perf/coverage.py --check

# Hostile material at every boundary, from a seed that is printed: 2,000 cases each, or what FUZZ='replies --cases 100000 --seed 7'
# says; one case that failed is repeated by the command printed with it.
FUZZ ?= --cases 2000
fuzz: $(VENV)/.dev-all
	$(BIN)/python -m tests.fuzz $(FUZZ)

clean:
	rm -rf build dist $(VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
