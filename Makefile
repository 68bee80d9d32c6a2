# Everything a contributor needs. The two that a newcomer needs are `make demo` and `make test`. Tests
# run in three rings: make unit, make test, make explore.

GO         ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEMO        = ./examples/01_cronjob
BUDGET     ?= 30m
PLATFORMS  ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# The modules of the workspace.
PACKAGES    = ./... ./examples/... ./bench/... ./internal/pictures/...
# Modules that are not in the workspace are built with GOWORK=off.
KUBERNETES  = controlplane/kubernetes
WRANGLER    = bench/wrangler

.DEFAULT_GOAL := help
.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the CronJob operator on a real control plane until Ctrl-C
	@test -x bin/ctrlkit || echo "the first time, compiling takes some seven minutes on two cores until the operator runs on its API server, and some three more, beside it, for the controllers"
	@$(GO) run ./internal/tools/compile bin/ctrlkit ./cmd/ctrlkit
	@if [ -t 0 ]; then set -m; fi; bin/ctrlkit run $(DEMO); exit $$? # in a job of its own, so that Ctrl-C is not for make

.PHONY: unit
unit: ## Run what needs no process, no compiler, and no second of time: while you type
	@$(GO) run ./internal/tools/suite unit

.PHONY: test
test: controlplane ## Run all tests: each promise once for real, with samples of the simulations
	@$(GO) run ./internal/tools/suite test

.PHONY: explore
explore: ## Run everything else, for BUDGET (30m); SEED, SHARD and ONLY choose what, EXPLORE="-help" for more
	@$(GO) run ./internal/tools/suite explore -budget $(BUDGET) $(if $(SEED),-seed $(SEED)) $(if $(SHARD),-shard $(SHARD)) $(if $(ONLY),-only '$(ONLY)') $(EXPLORE)

.PHONY: check
check: format vet lint layers generated ## Formatting, vet, staticcheck, layers, regenerated files

.PHONY: controlplane
controlplane: ## Build the control plane's programs, once, into the user's cache
	@$(GO) run ./cmd/ctrlkit controlplane build

.PHONY: format
format: ## Fail if a file is not formatted
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@$(GO) run ./cmd/ctrlkit fmt -l ./examples/...

.PHONY: vet
vet: ## go vet and ctrlkit vet for every module, in one pass
	@$(GO) build -o bin/checks ./internal/tools/checks
	@echo "go vet"; $(GO) vet -vettool=$(CURDIR)/bin/checks $(PACKAGES)
	@echo "go vet ./$(KUBERNETES)"; cd $(KUBERNETES) && GOWORK=off $(GO) vet -tags=grpcnotrace ./... # as built: else all is compiled again
	@cd $(WRANGLER) && if why=$$(GOWORK=off GOPROXY=off $(GO) list -deps . 2>&1 > /dev/null); then echo "go vet ./$(WRANGLER)"; GOWORK=off $(GO) vet ./...; \
	else case "$$why" in *"go mod tidy"*) echo "go vet ./$(WRANGLER): $$why"; exit 1;; esac; \
	echo "go vet ./$(WRANGLER): skipped, because its modules are not in the module cache"; fi

.PHONY: lint
lint: ## staticcheck for every module of the workspace
	@echo "staticcheck"; $(GO) run $(STATICCHECK) $(PACKAGES)

.PHONY: generate
generate: ## Regenerate what is checked in: deep copies, CRDs, roles, and the code of the documents
	$(GO) generate ./...
	cd examples && $(GO) generate ./...

.PHONY: layers
layers: ## Fail if an import goes up, or the library depends on what it must not
	@$(GO) test -vet=off -run 'Layers|Banned|ModuleFile' ./internal/tools/house

.PHONY: peers
peers: ## Run the suites of controller-runtime against the API server in memory, some ten minutes; PEERS="-real" for the real one
	@$(GO) run ./internal/tools/peers $(PEERS)

.PHONY: soak
soak: controlplane ## Kill the examples' operators at random for 10 minutes, leave them alone for 10, check all; SOAK="-help" for more
	@$(GO) run ./examples/internal/soak $(SOAK)

.PHONY: pictures
pictures: ## Draw the pictures of the documentation again
	@$(GO) run ./internal/pictures workflows docs/images
	@if command -v chromium >/dev/null; then $(GO) run ./internal/pictures page docs/images && $(GO) run ./internal/pictures finding docs/images && $(GO) run ./internal/pictures playground docs/images; \
	else echo "without chromium, the pictures of the pages and of the report stay as they are"; fi
	@if [ -f docs/images/demo.cast ]; then $(GO) run ./internal/pictures terminal --title "make demo" docs/images/demo.cast docs/images/demo.svg; fi

.PHONY: playground
playground: ## Make the page where documents can be tried, in dist/playground, and print its sizes
	@$(GO) run ./internal/playground/build dist/playground

.PHONY: vscode
vscode: ## Build the extension for Visual Studio Code into dist/ctrlkit.vsix, and test its grammar; npm gets what it needs
	@mkdir -p dist bin/vscode && cp -R editors/vscode/. bin/vscode
	@cd bin/vscode && npm install --silent --no-audit --no-fund && npm test --silent && npx vsce package --skip-license --out ../../dist/ctrlkit.vsix

.PHONY: generated
generated: ## Fail if regenerating changes a file
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); $(MAKE) --no-print-directory generate; \
	after=$$(git status --porcelain; git diff | git hash-object --stdin); \
	if [ "$$before" != "$$after" ]; then echo "regenerating changed files; commit them:"; git status --short; exit 1; fi

.PHONY: platforms
platforms: ## Build and vet for every platform, several minutes each; PLATFORMS="windows/amd64" for one
	@for p in $(PLATFORMS); do echo "building for $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build ./... && \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; done

GORELEASER = $(GO) run github.com/goreleaser/goreleaser/v2@v2.13.0

.PHONY: release
release: ## Build the archives of a release into dist, and tag it: VERSION=v0.1.0
	@git tag --annotate --message "ctrlkit $(VERSION)" $(VERSION)
	@git tag --annotate --message "ctrlkit $(VERSION)" controlplane/kubernetes/$(VERSION)
	@GORELEASER_CURRENT_TAG=$(VERSION) $(GORELEASER) release --clean --skip=publish || { git tag --delete $(VERSION) controlplane/kubernetes/$(VERSION); exit 1; }
	@echo "To publish: git push origin $(VERSION) controlplane/kubernetes/$(VERSION)"
	@echo "            gh release create $(VERSION) dist/*.tar.gz dist/*.zip dist/*.cdx.json dist/checksums.txt dist/krew/ctrlkit.yaml"

.PHONY: bench
bench: ## Measure operators side by side on the real control plane, some fifteen minutes; BENCH="-help" for more
	@cd bench && $(GO) run ./measure $(BENCH)

.PHONY: bench-scale
bench-scale: ## Measure what grows with the number of objects, up to 100,000 and for hours; SCALE="-objects 200,1000" for less
	@cd bench && $(GO) run ./scale $(SCALE)

.PHONY: bench-shards
bench-shards: ## Kill replicas of a ring with the real sharder, and audit who wrote what; SHARDS="-sharder DIR" names its checkout
	@cd bench && $(GO) run ./shards $(SHARDS)

.PHONY: benchmarks
benchmarks: ## Run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . ./...
	cd bench && $(GO) test -run '^$$' -bench . ./...
