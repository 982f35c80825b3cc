# `make` sets up .venv; `make help` lists the targets.
PYTHON  ?= python3
PROFILE ?= default
JOBS    ?= 2
SEEDS   ?= 1 2 3
GPU_NB  ?= panoramia_images panoramia_text epsilon_star_landscape nid_mia_benchmark nid_dp_audit output_set_dpsgd
MINUTES ?= 9
PORT    ?= 8000
RELEASE_PYTHON ?= $(PYTHON)
BIN     := .venv/bin
READY   := .venv/.ready
HTML    := book/_build/html
# One room's tests: tests/ROOM and the examples of paperlib/ROOM; rooms of the reproduction too.
TESTED  = $(foreach room,$(ROOM),$(wildcard tests/$(room) paperlib/$(room) \
  tests/reproduction/$(room) paperlib/reproduction/$(room)))
LINT   := $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/pyright && $(BIN)/lint-imports --no-logo \
	&& $(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb && $(BIN)/python .ci/measure.py
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: setup help book seeds rehearsal gpu test lint format run serve check pdf bench lock changelog release clean
.DELETE_ON_ERROR:

setup: $(READY)  ## Create .venv with the locked versions and this package (done by every other target)

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'
	@echo "  PROFILE=smoke|default|full|rehearsal|paper (now $(PROFILE)), ROOM=bounds, SEEDS=\"1 2 3\","
	@echo "  PYTHON=python3.12, JOBS=2, MINUTES=9, PORT=8000"

$(READY): requirements.lock pyproject.toml .ci/setup.sh
	@sh .ci/setup.sh $(PYTHON)

book: $(READY)  ## Run every notebook that changed and build the book as HTML (PROFILE=)
	$(BIN)/paperlib run --all --profile $(PROFILE) --jobs $(JOBS)
	@# Sphinx reports a warning only once, so after a failed build the next one starts anew.
	@$(BIN)/jupyter-book build book -W --keep-going -q >/dev/null || { rm -rf book/_build/.doctrees; \
	  echo "The book was not built: correct what the warnings above name"; exit 1; }
	@echo "The book is ready: $(HTML)/index.html"

seeds: $(READY)  ## Run the judged notebooks once more with each of SEEDS, for the outcomes (PROFILE=)
	@for seed in $(SEEDS); do $(BIN)/paperlib run --all --profile $(PROFILE) --jobs $(JOBS) --seed $$seed || exit 1; done
	@echo "make book shows the outcomes of all seeds"

rehearsal: $(READY)  ## Run the paper profile on made-up data with small counts: does all of it work here?
	$(BIN)/paperlib run --all --profile rehearsal --jobs $(JOBS)
	$(BIN)/paperlib run panoramia_images --profile rehearsal_celeba
	@echo "Every notebook of the paper profile ran from its first to its last cell"

gpu: $(READY)  ## One target of each paper on one GPU, rehearsed first, each for MINUTES at most; again to go on
	@for nb in $(GPU_NB); do $(BIN)/paperlib run $$nb --profile rehearsal_gpu || exit 1; done
	@# 75: the time was over, and the next call goes on from there.
	@for nb in $(GPU_NB); do \
	  $(BIN)/paperlib run $$nb --profile gpu --minutes $(MINUTES) --measured || [ $$? = 75 ] || exit 1; done

test: $(READY)  ## Lint and the tests of the library; with ROOM=bounds those of one room, without lint
	@test -z "$(ROOM)" || test -n "$(TESTED)" \
	  || { echo 'there is no room "$(ROOM)": the rooms are the folders of paperlib/'; exit 2; }
	@# Beside the tests, as lint keeps one processor core busy for a minute.
	@$(if $(ROOM),true,{ $(LINT); }) & lint=$$!; \
	  $(BIN)/pytest -n $(JOBS) --dist worksteal --ignore=tests/benchmarks -m "not browser" $(TESTED); passed=$$?; \
	  wait $$lint || { echo "lint found faults: see above, between the dots, or type make lint"; exit 1; }; exit $$passed

lint: $(READY)  ## Format, style, types, import directions, complexity, notebooks stored without outputs
	@$(LINT)

format: $(READY)  ## Format the code and strip the notebooks
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/nbstripout --keep-id notebooks/*.ipynb

# P reaches the command as it was typed, whatever is in it; with make -C the folder of the call is $(PWD).
unexport P
run: export PAPERLIB_P = $(value P)
run: export PAPERLIB_FROM := $(if $(findstring w,$(firstword -$(MAKEFLAGS))),$(PWD),$(CURDIR))
run: $(READY)  ## Run one notebook: NB=output_set_gain P="trials=20 file='two words.csv' sizes=[1, 2]" PROFILE=smoke
	@test -n "$(NB)" || { echo 'name a notebook, such as: make run NB=output_set_gain P="trials=20"'; \
	  $(BIN)/paperlib list; exit 2; }
	@$(BIN)/paperlib run $(NB) --profile $(PROFILE)

serve: $(HTML)/index.html  ## Serve the built book on http://localhost:8000 (PORT=)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

check: $(HTML)/index.html  ## Check the built book: notebooks (PROFILE=smoke), offline, links, alt text, Chromium
	$(BIN)/python .ci/check_book.py $(HTML)
	$(BIN)/pytest -n $(JOBS) tests/browser tests/notebooks/test_smoke.py

pdf: $(HTML)/index.html  ## Print the book, without the reference, with Chromium; its first page then links the PDF
	$(BIN)/jupyter-book build book --builder singlehtml -q >/dev/null
	$(BIN)/python .ci/print_book.py book/_build/singlehtml/index.html $(HTML)

$(HTML)/index.html:
	@echo "there is no book yet: run make book first"; exit 1

bench: $(READY)  ## Time the bounds
	$(BIN)/pytest tests/benchmarks --benchmark-enable --benchmark-only

lock: $(READY)  ## Add what pyproject.toml newly asks for to requirements.lock and environment.yml
	@# Locked versions stay; to move one, delete its lines from requirements.lock first.
	$(BIN)/python .ci/lock.py

changelog: $(READY)  ## Move the lines of changes/ to a section of CHANGELOG.md, for the version and today
	$(BIN)/towncrier build --version "$$($(BIN)/python .ci/release.py --version)"

release: $(READY)  ## Build wheel and sdist, and test the wheel without the checkout; RELEASE_PYTHON=python3.14 TAG=1
	$(BIN)/python .ci/release.py $(foreach python,$(RELEASE_PYTHON),--python $(python)) $(if $(filter 1,$(TAG)),--tag)

clean:  ## Remove what was generated; committed results and .venv stay
	rm -rf book/_build book/_generated book/notebooks runs build dist
	rm -rf .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
