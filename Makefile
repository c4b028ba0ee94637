# Every target with a description is listed by `make`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
NODE := bin/node
TEMPER := bin/temper
# Unit tests share processes in groups; every other test file has a process of its own.
UNIT_TESTS := $(patsubst %,--group '%/**/*.test.ts',src bench test/support test/cluster test/runner)
SYSTEM_TESTS := 'test/system/**/*.test.ts'
INTEGRATION_TESTS := 'test/integration/**/*.test.ts'
E2E_TESTS := 'test/e2e/*.test.ts'
# Test servers written in Go collect garbage less often: an API server then takes a fifth less processor time, and more memory.
RUN_TESTS := env GOGC=400 $(NODE) test/runner/main.ts
CLUSTER := .temper-cluster
# Where each sample has its state and its configuration.
SAMPLES := .temper-samples

# Processes of tests and benches load compiled code without types, instead of stripping and compiling the sources again.
export NODE_COMPILE_CACHE ?= $(CURDIR)/node_modules/.cache/node

BASE ?=
CC ?= cc
TAG ?= dev
# Options of bench-cluster: the duration of the idle measurement and of the faults, agents, and for many agents their namespaces, the
# gateways and the messages per second. SECONDS is set here because bash sets it too.
SECONDS := 600
AGENTS ?= 1000
NAMESPACES ?= 100
GATEWAYS ?= 4
RATE ?= 50

# Where the Python packages of AgentDojo are.
AGENTDOJO := $(HOME)/.cache/temper/agentdojo
# Where those of the sentence embedder are.
EMBEDDER := $(HOME)/.cache/temper/embedder

.PHONY: agentdojo cli help setup demo sample-web sample-git sample-sql sample-mcp sample-skills test test-unit test-system test-integration test-e2e chaos soak cluster-up cluster-image cluster-down stage images sbom generate format lint typecheck structure unused verify bench bench-embedder bench-cluster soak-faults clean launcher toolchain-image

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Not `npm ci`: it fetches the packages of every platform in the lock file, and a registry mirror may lack some of them.
# Versions and digests still come from the lock file.
node_modules/.installed: package.json package-lock.json .npmrc
	npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

setup: node_modules/.installed ## Install the dependencies, including the project's Node

demo: setup ## Run the quick start: an agent forges its tools and answers a question over real files
	@$(NODE) manifests/quickstart/demo.ts

sample-web: setup ## Run a sample without a key: an agent searches and reads the web (Linux)
	@$(NODE) manifests/local/researcher/demo.ts --samples $(SAMPLES)

sample-git: setup launcher ## Run a sample without a key: an agent clones a repository and commits (Linux; needs Git and a C compiler)
	@$(NODE) manifests/local/repository-helper/demo.ts --samples $(SAMPLES)

sample-sql: setup ## Run a sample without a key: an agent answers from a database
	@$(NODE) manifests/local/sql-analyst/demo.ts --samples $(SAMPLES)

sample-mcp: setup ## Run a sample without a key: an agent calls the tool of an MCP server
	@$(NODE) manifests/local/mcp-user/demo.ts --samples $(SAMPLES)

sample-skills: setup ## Run a sample without a key: an agent follows a skill from a repository (Linux; needs Git)
	@$(NODE) manifests/local/skill-user/demo.ts --samples $(SAMPLES)

cli: setup ## Bundle the command line of this checkout, which then starts in a quarter of the time
	@$(NODE) sandbox-image/bundle-cli.ts dist/cli

# One run for all tiers that this machine can run: the tests on pods mostly wait, and leave the processors to the others.
test: setup ## Run every tier of tests
	@$(MAKE) --no-print-directory verify cli
	@set -f; integration=$$(test/tier.sh integration echo $(INTEGRATION_TESTS)) && e2e=$$(test/tier.sh e2e echo $(E2E_TESTS)) && \
	  $(RUN_TESTS) 3 $(UNIT_TESTS) $(SYSTEM_TESTS) $$integration $$e2e

test-unit: setup ## Run the unit tests
	@$(RUN_TESTS) 2 $(UNIT_TESTS)

test-system: cli ## Run the tests of whole commands as processes
	@$(RUN_TESTS) 2 $(SYSTEM_TESTS)

test-integration: setup ## Run the tests against a real API server and NATS (builds them once; needs Go and openssl; KUBERNETES_VERSION=1.33.13 for the oldest)
	@test/tier.sh integration $(RUN_TESTS) 3 $(INTEGRATION_TESTS)

test-e2e: cli ## Run the tests on real pods (Linux and root, or TEMPER_E2E_KUBECONFIG)
	@test/tier.sh e2e $(RUN_TESTS) 2 $(E2E_TESTS)

# The agents of killed promotions stay, and each start of an operator reads all: so `chaos` has an API server for each round of them.
chaos: setup ## Kill every component of an installation, each of three NATS servers, and every step of promotions and parked calls, 20 times (or TIMES=…), a local run 50 times and a team in one process 100 times; a leader hangs, and is isolated, for 3 minutes; run the timed scenarios of MCP conformance; compare 100,000 decisions with Cedar and 100,000 children with their parents
	@TIMES=$(or $(TIMES),20) test/tier.sh e2e $(NODE) --test test/e2e/kills.test.ts
	@KILLS=$(or $(TIMES),20) test/tier.sh integration $(NODE) --test --test-name-pattern='killed|ends before' \
	  test/integration/gateway/drain.test.ts test/integration/gateway/delivery.test.ts
	@for time in $$(seq $(or $(TIMES),20)); do KILLS=1 test/tier.sh integration $(NODE) --test \
	  --test-name-pattern='killed|ends before' test/integration/operator/promotion.test.ts || exit 1; done
	@KILLS=$(or $(TIMES),20) HANG_SECONDS=180 test/tier.sh integration $(NODE) --test \
	  test/integration/nats/three-servers.test.ts test/integration/nats/partition.test.ts test/integration/nats/crash.test.ts
	@KILLS=$(or $(TIMES),50) $(NODE) --test test/system/run/crash.test.ts
	@KILLS=$(or $(TIMES),100) $(NODE) --test test/system/run/killed-team.test.ts
	@for file in test/system/mcp-conformance.test.ts test/integration/mcp/gateway-client-conformance.test.ts; do \
	  TIMED_SCENARIOS=1 $(NODE) --test --test-name-pattern='timed scenario' $$file || exit 1; done
	@CEDAR_REQUESTS=100000 $(NODE) --test src/policy/cedar/cedar.test.ts
	@CHILD_PAIRS=100000 $(NODE) --test src/policy/children/properties.test.ts

soak: setup ## Repeat the tiers beside busy processes (TIMES=4 LOAD=2 TIERS="test-unit test-system test-integration")
	@TIMES=$(or $(TIMES),4) LOAD=$(or $(LOAD),2) test/soak.sh $(or $(TIERS),test-unit test-system test-integration)

cluster-up: setup ## Start a cluster of one node on this machine and print the path of its kubeconfig (Linux and root)
	@$(NODE) test/cluster/node/main.ts up $(CLUSTER)

cluster-image: setup ## Build FILE (a Containerfile) as IMAGE and import it into the cluster's node
	@$(NODE) test/cluster/node/main.ts image $(CLUSTER) $(FILE) $(IMAGE)

cluster-down: setup ## Stop the cluster and remove everything it created
	@$(NODE) test/cluster/node/main.ts down $(CLUSTER)

generate: setup ## Generate the CRDs and the reference pages from their sources
	@$(NODE) src/api/generate/main.ts
	@$(NODE) src/gateway/generate.ts

format: setup ## Format the code
	@node_modules/.bin/biome format --write .

lint: setup ## Typed lint
	@node_modules/.bin/oxlint --type-aware

typecheck: setup ## Check the types
	@node_modules/.bin/tsc

structure: setup ## Check words, imports, folders, documentation and the lock file
	@$(NODE) --test --test-reporter=dot 'test/structure/*.test.ts'

unused: setup ## Find unused code, files and packages
	@$(NODE) node_modules/knip/bin/knip.js
	@$(NODE) node_modules/knip/bin/knip.js --production --config knip.production.json --include files,exports

verify: setup ## generate, format, lint, typecheck, unused code, structure, clean tree
	@set -e; before=$$(git status --porcelain 2>/dev/null | cksum); \
	$(MAKE) --no-print-directory generate format; \
	$(MAKE) --no-print-directory -j2 --output-sync=target lint typecheck unused structure; \
	after=$$(git status --porcelain 2>/dev/null | cksum); \
	if [ "$$before" != "$$after" ]; then echo "verify: generate or format changed files; commit them:"; git status --short; exit 1; fi

bench: setup ## Measure the speed of the engine relative to baselines
	@$(NODE) bench/main.ts

$(AGENTDOJO)/.installed: bench/agentdojo/requirements.txt
	python3 -m venv $(AGENTDOJO)
	$(AGENTDOJO)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

agentdojo: setup $(AGENTDOJO)/.installed ## Run the pairs of AgentDojo with a model that obeys every injection (needs Python 3.11; EVERY=10 for a tenth of them)
	@$(NODE) bench/agentdojo/main.ts --python $(AGENTDOJO)/bin/python --every $(or $(EVERY),1)

$(EMBEDDER)/.installed: bench/discovery/embedder/requirements.txt
	python3 -m venv $(EMBEDDER)
	$(EMBEDDER)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

bench-embedder: setup $(EMBEDDER)/.installed ## Measure discovery with the vectors of a sentence embedder (needs Python 3.11; about a quarter of an hour)
	@EMBEDDER_PYTHON=$(EMBEDDER)/bin/python $(NODE) bench/main.ts discovery-meaning

bench-cluster: setup ## Measure the cost of the operator on a real control plane with fake nodes (Linux; AGENTS=1000 SECONDS=600 FIGURES=…)
	@$(NODE) --disable-warning=ExperimentalWarning bench/cluster/main.ts --agents $(AGENTS) --seconds $(SECONDS) \
	  --namespaces $(NAMESPACES) --gateways $(GATEWAYS) --rate $(RATE) $(FIGURES)

soak-faults: setup ## Send messages for SECONDS while every component fails in turn, every 30 s (Linux and root; SECONDS=3600 AGENTS=200 NAMESPACES=20 WITHOUT_KILLS=)
	@$(NODE) --disable-warning=ExperimentalWarning bench/cluster/main.ts --agents $(AGENTS) --seconds $(SECONDS) \
	  --namespaces $(NAMESPACES) --gateways $(GATEWAYS) --rate $(RATE) $(if $(WITHOUT_KILLS),--without-kills) soak-faults

# Moved into its place, so that a launcher in use stays whole.
dist/launcher/temper-launcher: sandbox-image/launcher/launcher.c sandbox-image/launcher/program.h
	@mkdir -p $(@D)
	$(CC) -Os -Wall -Wextra -Werror -o $@.$$$$ $< && mv $@.$$$$ $@

launcher: dist/launcher/temper-launcher ## Build the launcher, behind which `temper run` starts programs of agents (Linux; needs a C compiler)

stage: setup ## Stage the files of the images (on Linux; needs a C compiler with a static C library)
	@mkdir -p dist/images
	$(CC) -static -Os -Wall -Wextra -Werror -o dist/images/launcher sandbox-image/launcher/launcher.c
	@$(NODE) sandbox-image/stage.ts dist/images

images: stage ## Build the images temper and temper-sandbox (buildah or docker; BASE=… for another base, TAG=…)
	@set -e; if command -v buildah >/dev/null; then build="buildah build --format oci"; else build="docker build"; fi; \
	base="$(if $(BASE),--build-arg BASE=$(BASE))"; \
	$$build $$base --tag temper:$(TAG) --file Containerfile .; \
	$$build $$base --tag temper-sandbox:$(TAG) --file sandbox-image/Containerfile .

toolchain-image: stage ## Build the image temper-toolchain: the sandbox with programs for agents (PACKAGES="git ripgrep …", TAG=…)
	@set -e; if command -v buildah >/dev/null; then build="buildah build --format oci"; else build="docker build"; fi; \
	$$build $(if $(BASE),--build-arg BASE=$(BASE)) $(if $(PACKAGES),--build-arg "PACKAGES=$(PACKAGES)") \
	  --tag temper-toolchain:$(TAG) --file sandbox-image/toolchain.Containerfile .

sbom: setup ## Write the bill of materials of the shipped packages as CycloneDX JSON
	@mkdir -p dist
	@npm sbom --sbom-format cyclonedx --package-lock-only --omit dev > dist/sbom.cdx.json
	@echo dist/sbom.cdx.json

clean: ## Remove installed packages and build output
	rm -rf node_modules dist .temper-demo $(SAMPLES)
