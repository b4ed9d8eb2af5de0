# What is short is in .ci/run; the targets here are for a developer's machine.
GO ?= go
# As releases are built, and without compiling the C of a compressor that Pebble has in Go, too. The race detector needs
# cgo: there the tag leaves that C out.
export CGO_ENABLED = 0
RACE = CGO_ENABLED=1 $(GO) test -race -tags pebblegozstd
FUZZTIME ?= 60s
FUZZJOBS ?= 2
SOAKTIME ?= 10m
KILLS ?= 500
# Where the randomness of tests begins in the long targets: new, or the number that a failure has
# named (internal/seed). The gate and make test keep the fixed ones.
SEED ?= new
VERSITYGW = github.com/versity/versitygw/cmd/versitygw@v1.8.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Modules of their own, besides that of the folder itself.
NESTED = examples/emoji experiments test db/beam examples/beam db/cluster \
	examples/cluster

.PHONY: all build test long race lint fuzz kill faults field soak metamorphic backups s3 bench figures cross arm64 vuln release integration ci

# Targets run the tests that take long, too, on a sample (internal/effort); go test ./... leaves them out.
export FDDHDB_LONG ?= sample

all: lint test

build:
	$(GO) build -ldflags="-s -w" -o bin/fddhdb ./cmd/fddhdb

test:
	$(GO) test ./...
	@set -e; for module in $(NESTED); do $(GO) -C $$module test ./...; done

# All tests in full: every failed operation, crash and damage, and all histories, items and queries that they have, of which
# go test takes a sample (internal/effort).
long:
	FDDHDB_LONG=all $(GO) test -timeout 0 ./...

race:
	$(RACE) ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	@set -e; for module in $(NESTED); do \
	  echo "== $$module"; $(GO) -C $$module vet ./...; (cd $$module && $(GO) run $(STATICCHECK) ./...); \
	done

# Every fuzz target of every package, FUZZTIME each, FUZZJOBS at a time; an hour each is the
# long run. What is found interesting is kept where `go test -fuzz` keeps it.
fuzz:
	bash .ci/fuzz $(FUZZTIME) $(FUZZJOBS) "$$($(GO) env GOCACHE)/fuzz"
	MODULE=db/beam bash .ci/fuzz $(FUZZTIME) $(FUZZJOBS) "$$($(GO) env GOCACHE)/fuzz"

# Kills KILLS processes that write, import, alter, back up, prune, restore and make
# checkpoints, one after another, and looks at what they leave.
kill:
	$(GO) -C test test -v -timeout 0 -run '^TestKill' ./killtest -args -kills $(KILLS) -seed $(SEED)

# Every file operation fails in turn, a machine stops at each, and every 40th byte of every
# file is damaged; give SWEEP=1 for every byte, a night. Of these go test takes a sample.
SWEEP ?= 40
faults:
	$(GO) test -v -timeout 0 -run '^(Test(EveryFailed|Failed|Crashes|Damage|Checks|Verify|FiltersOver)|FuzzVerify)' ./db -args -long -sweep $(SWEEP) -seed $(SEED)

# The built command under real conditions: full disks, flipped bits, odd files, signals, limits of
# the shell, full outputs, company, wrong clocks, a slow disk. All combinations take some hours; as
# root, or where user namespaces are allowed, nothing is skipped but what it names.
field:
	$(GO) -C test run ./field -long -seed $(SEED)

# For SOAKTIME each: everything at once, with what memory, goroutines, open files, the folder
# and the backups come to; crashes of that; and random histories of spaces, of which a failure names its seed,
# and random damage that is repaired.
soak:
	$(GO) test -v -timeout 0 -run '^TestSoak$$' ./db -args -soak $(SOAKTIME) -seed $(SEED)
	$(GO) test -v -timeout 0 -run '^TestCrashesUnderLoad$$' ./db -args -soak $(SOAKTIME) -seed $(SEED)
	cd test && $(RACE) -v -timeout 0 -run '^TestRandomHistoriesOfSpaces$$' ./metamorphic -args -soak $(SOAKTIME) -seed $(SEED)
	$(RACE) -v -timeout 0 -run '^TestRepairOfRandomDamage$$' ./db -args -soak $(SOAKTIME) -seed $(SEED)

# What indexes of vectors find while clusters of items come, move and go: twenty histories of each kind and
# metric, of 20,000 vectors and of 200,000.
.PHONY: churn
churn:
	$(GO) test -v -timeout 0 -run '^TestRecallAfterChurn$$' ./db -args -long -churn.items 20000 -churn.seeds 20 -churn.queries 200 -seed $(SEED)
	$(GO) test -v -timeout 0 -run '^TestRecallAfterChurn$$' ./db -args -long -churn.items 200000 -churn.seeds 20 -churn.queries 200 -seed $(SEED)

# Interleavings of backups and prunes, and processes that are killed while they do both.
backups:
	$(GO) test -v -timeout 0 -run '^TestInterleavings$$' ./db/backup -args -sim.runs 100000 -seed $(SEED)
	$(GO) test -v -timeout 0 -run '^TestKilledBackupsAndPrunes$$' ./db -args -backup.kills 100 -seed $(SEED)

# Backups to a real S3 server, the Versity gateway, which is built in a folder of its own:
# it is no module of ours.
s3:
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	GOBIN=$$dir $(GO) install $(VERSITYGW); \
	export VERSITYGW=$$dir/versitygw; \
	$(GO) -C test test -count=1 ./s3; \
	$(GO) -C db/beam test -count=1 -run 'S3$$' .

# Workers of pipelines that are killed, in ten runs, and the race detector over them.
.PHONY: beam
beam:
	$(GO) -C db/beam test -count=1 -v -timeout 0 -run '^TestKilledWorkers$$' . -args -kills 10 -seed $(SEED)
	cd db/beam && $(RACE) -count=1 -timeout 60m .

# A cluster under faults, in ten runs of five minutes with others each, and the race detector over it. Clocks
# jump as well, for which package time is another one (db/cluster/internal/skew).
.PHONY: cluster
cluster:
	dir=$$(mktemp -d) && trap 'rm -rf $$dir' EXIT && \
	$(GO) -C db/cluster test -count=1 -v -timeout 0 -tags skew -overlay $$($(GO) -C db/cluster run ./internal/skew/overlay $$dir) \
		-run '^(TestClocksJump|TestFaults)$$' . -args -faults-for 5m -faults-runs 10 -seed $(SEED)
	cd db/cluster && $(RACE) -count=1 -timeout 60m ./...

# Figures of docs/BENCHMARKS.md; compare runs with benchstat.
bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Writes what the commands in README.md and docs print now into them.
.PHONY: docs
docs:
	$(GO) -C test test ./doctest -args -update

# Figures and tables of docs/EVALUATION.md, of the sets in ../shared/data: half an hour.
figures: build
	sh docs/eval/figures.sh bin/fddhdb ../shared/data bin/eval

# The page of explore in a real Chromium, which has to be installed, or named in CHROMIUM, and by
# axe-core, which is fetched into a folder of its own. Its figures need a machine that does nothing else.
.PHONY: page
page: export CHROMIUM ?= $(firstword $(foreach b,chromium chromium-browser google-chrome,$(shell command -v $b)))
page:
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	npm install --silent --no-save --prefix $$dir axe-core@4.14.1; \
	$(GO) -C test test -count=1 -v ./browser -args -axe $$dir/node_modules/axe-core/axe.min.js -budget

# What takes too long for .ci/run: every test in full with the race detector, long
# fuzzing, kills, faults, real conditions and histories, backups to a real S3 server,
# the page in a browser, and the other platforms. Seeds are new ones.
integration:
	$(GO) test -timeout 0 -run Quality ./model/fit -args -figures -seeds 12
	FDDHDB_SEED=$(SEED) $(RACE) -count=1 -timeout 60m ./...
	$(MAKE) long fuzz kill faults field soak metamorphic backups s3 beam cluster page cross arm64

# The platforms that are supported have to compile without cgo.
cross:
	@for os in linux darwin windows; do for arch in amd64 arm64; do \
	  echo "== $$os/$$arch"; GOOS=$$os GOARCH=$$arch $(GO) build ./... || exit 1; \
	done; done

# Codes have the same bits on arm64, which qemu-user emulates. Its tests there are also the only ones of the kernels
# for NEON where no such machine is at hand.
QEMU = qemu-aarch64-static
arm64:
	GOARCH=arm64 $(GO) test -count=1 -exec $(QEMU) ./model/internal/dense
	GOARCH=arm64 $(GO) test -count=1 -exec $(QEMU) -run 'SameBits|TestLog' ./model

# Archives of the shell and wheels for Python for every platform, and checksums, into dist: the same bytes wherever the
# same commit is built by the same version of Go.
release:
	$(GO) -C test run ./release -out ../dist

# The image of the Dockerfile, by the first of these tools that is installed.
.PHONY: image
image: BUILDER ?= $(firstword $(foreach b,docker podman buildah img,$(shell command -v $b)))
image:
	@test -n "$(BUILDER)" || { echo "make image needs docker, podman, buildah or img"; exit 1; }
	$(BUILDER) build -t fddhdb .

# Needs the vulnerability database on the network.
vuln:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

ci:
	bash .ci/run

# OPS random operations against a model in memory, and with the race detector a tenth of
# them in several goroutines. A failure prints a short program and its file.
OPS ?= 1000000
metamorphic:
	$(GO) -C test test -v -timeout 0 -run '^TestHistories$$' ./metamorphic -args -operations $(OPS) -seed $(SEED)
	cd test && $(RACE) -v -timeout 0 -run '^TestConcurrentHistories$$' ./metamorphic -args -operations $$(($(OPS) / 10)) -seed $(SEED)
