// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

// CacheVariable is the environment variable with the directory for the results of [Build]. The
// default is ctrlkit/controlplane in the user's cache directory.
const CacheVariable = "CTRLKIT_CACHE"

// BuildOptions are the options of [Build]. The zero value is usable.
type BuildOptions struct {
	// Progress, if not nil, receives the progress of a build: in a terminal one line that is
	// redrawn, otherwise a line every ten seconds. Nothing is written if the programs are up to
	// date.
	Progress io.Writer
}

// Build compiles the programs of the control plane, unless they are up to date, and returns their
// directory. The first build takes minutes and about 2 GB of Go's build cache; later calls take
// milliseconds.
//
//   - The result, 370 MB, stays in the user's cache directory, under a key made from the programs'
//     source, the version of Go and the platform. If one of them changes, Build builds again. It
//     also removes results that were not used for thirty days.
//   - etcd and kube-apiserver are built before the others; see [StartEarly]. They stay if the build
//     of the others fails, and the next call builds what is missing.
//   - Any number of processes may call Build at the same time: one builds, the others wait.
//   - When ctx ends, Build stops the compiler and removes incomplete results. Go's build cache
//     keeps the compiled packages.
//   - Build needs the go command, and the source of the programs, which it finds beside the root
//     module or downloads. It ignores variables that affect the build of the user's own module
//     (GOWORK, GOFLAGS, GOOS).
//   - On Windows it returns an error that says what works instead.
func Build(ctx context.Context, options BuildOptions) (Assets, error) {
	b, err := newBuilder(ctx, options.Progress)
	if err == nil {
		err = b.build(ctx, servers, clients)
	}
	if err != nil {
		return Assets{}, err
	}
	return b.assets, nil
}

// A batch is the programs that are built by one call of the go command.
type batch struct {
	name     string   // for people
	packages []string // in the programs' module
	binary   string   // of one package, which acts as the program whose name it is called by
	links    []string // these names
	others   []string // programs with a binary of their own
}

// The batches, in the order in which they are built: an API server serves while its clients are
// still compiled. Common packages are compiled once, in the first batch.
var (
	servers = batch{
		name:     "API server",
		packages: []string{"./cmd/servers"},
		binary:   "servers",
		links:    []string{etcdProgram, apiServerProgram},
	}
	clients = batch{
		name:     "controllers",
		packages: []string{"./cmd/clients", "./cmd/kwok"},
		binary:   "clients",
		links:    []string{controllerManagerProgram, schedulerProgram, kubectlProgram},
		others:   []string{kwokProgram},
	}
)

// programs returns the names of the programs.
func (b batch) programs() []string { return slices.Concat(b.links, b.others) }

// A builder builds what is missing in the directory of the programs.
type builder struct {
	recipe   *recipe
	assets   Assets
	progress io.Writer
}

func newBuilder(ctx context.Context, progress io.Writer) (*builder, error) {
	if err := platformError(); err != nil {
		return nil, err
	}
	recipe, err := newRecipe(ctx)
	if err != nil {
		return nil, fmt.Errorf("building the control plane: %w", err)
	}
	cache, err := cacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("building the control plane: creating the cache: %w", err)
	}
	if progress == nil {
		progress = io.Discard
	}
	b := &builder{recipe: recipe, assets: Assets{Dir: filepath.Join(cache, recipe.key())}, progress: progress}
	markUsed(b.assets.Dir)
	return b, nil
}

// build builds batches, one after the other. Another process may build some of them, also between
// two of this one.
func (b *builder) build(ctx context.Context, batches ...batch) error {
	for _, batch := range batches {
		if err := b.buildBatch(ctx, batch); err != nil {
			return fmt.Errorf("building the control plane: %s: %w", batch.name, err)
		}
	}
	return nil
}

func (b *builder) buildBatch(ctx context.Context, batch batch) error {
	if b.assets.lack(batch.programs()) == nil {
		return nil
	}
	unlock, err := lock(ctx, b.assets.Dir+".lock", b.progress)
	if err != nil {
		return err
	}
	defer unlock()
	if b.assets.lack(batch.programs()) == nil { // another process has built it in the meantime
		return nil
	}
	if err := b.recipe.buildInto(ctx, b.assets.Dir, batch, b.progress); err != nil {
		return err
	}
	forgetUnused(filepath.Dir(b.assets.Dir), time.Now().Add(-forgetAfter))
	return b.assets.lack(batch.programs())
}

// forgetAfter is how long an unused build is kept.
const forgetAfter = 30 * 24 * time.Hour

// markUsed sets the modification time of a build's directory to the time of its use. It ignores
// errors: in a read-only cache, builds are not removed either.
func markUsed(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// buildName matches the directories of builds, complete or not. Nothing else is removed from the
// cache, which may be a directory that the user has chosen.
var buildName = regexp.MustCompile(`^[0-9a-f]{16}(\.tmp-.*)?$`)

// forgetUnused removes builds that were last used before the given time: each new version of Go or
// of the programs makes the previous build obsolete. It ignores errors, which do not affect the new
// build.
func forgetUnused(cache string, before time.Time) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && entry.IsDir() && buildName.MatchString(entry.Name()) && info.ModTime().Before(before) {
			_ = os.RemoveAll(filepath.Join(cache, entry.Name()))
		}
	}
}

// cacheDir returns the directory of complete builds.
func cacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w; set %s to a directory to use instead", err, CacheVariable)
	}
	return filepath.Join(dir, "ctrlkit", "controlplane"), nil
}

// lock waits until no other process builds into a directory. The returned function unlocks. The
// file of the lock stays: if it were removed, two processes could hold locks on different files of
// one name.
func lock(ctx context.Context, name string, progress io.Writer) (unlock func(), err error) {
	file := flock.New(name)
	locked, err := file.TryLock()
	if err == nil && !locked {
		stop := gobuild.Show(progress, 0, "waiting for another process that builds the control plane", nil)
		locked, err = file.TryLockContext(ctx, 200*time.Millisecond)
		stop()
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if !locked {
		return nil, fmt.Errorf("locking %s: the lock is held by another process", name)
	}
	return func() { _ = file.Unlock() }, nil // the process's end unlocks it in any case
}

// A recipe holds what determines the result of a build.
type recipe struct {
	goCommand string // path of the go command
	source    string // directory of the programs' module
	digest    string // of the source
	toolchain string // the version of Go, and whether it calls C
}

// Settings of the go command, which are part of the key of a build.
var (
	// GOOS and GOARCH are those of this machine, whatever the user's own module is built for.
	buildEnvironment = []string{"GO111MODULE=on", "GOWORK=off", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}

	// Nothing here has a package compiled otherwise than for an operator, not even CGO_ENABLED or
	// -trimpath: so a third of the packages is compiled once for both. grpcnotrace omits a tracing
	// page, for which the linker would keep all methods of all types.
	buildFlags = []string{"-mod=readonly", "-buildvcs=false", "-tags=grpcnotrace"}

	linkerFlags = "-s -w"
)

func newRecipe(ctx context.Context) (*recipe, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("looking for the Go compiler: %w; install Go from https://go.dev/dl, or set %s to a directory with the programs", err, AssetsVariable)
	}
	source, err := findSource(ctx, goCommand, sourceFinders)
	if err != nil {
		return nil, err
	}
	digest, err := hashSource(source)
	if err != nil {
		return nil, err
	}
	r := &recipe{goCommand: goCommand, source: source, digest: digest}
	output, err := r.command(ctx, "env", "GOVERSION", "CGO_ENABLED").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command for its version: %w", err)
	}
	r.toolchain = strings.TrimSpace(string(output))
	return r, nil
}

func (r *recipe) key() string {
	inputs, _ := json.Marshal([]any{r.digest, r.toolchain, buildEnvironment, buildFlags, linkerFlags}) // strings always marshal
	sum := sha256.Sum256(inputs)
	return hex.EncodeToString(sum[:8])
}

// command prepares a go command in the directory of the source.
func (r *recipe) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, r.goCommand, args...)
	command.Dir = r.source
	command.Env = append(os.Environ(), buildEnvironment...)
	command.Env = append(command.Env, "PWD="+r.source, "GOFLAGS="+harmlessFlags(os.Getenv("GOFLAGS")))
	// When it is interrupted, the go command stops its compilers and removes its work directory.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	return command
}

// harmlessFlags returns those of the user's GOFLAGS that do not change the result: how many
// compilers run at the same time, and how modules are downloaded.
func harmlessFlags(flags string) string {
	kept := slices.DeleteFunc(strings.Fields(flags), func(flag string) bool {
		return !strings.HasPrefix(flag, "-p=") && flag != "-modcacherw"
	})
	return strings.Join(kept, " ")
}

// buildInto compiles a batch into a temporary directory, and then moves the programs to dir, one by
// one: each is complete whenever it exists.
func (r *recipe) buildInto(ctx context.Context, dir string, batch batch, progress io.Writer) (err error) {
	if err := removeMatching(dir + ".tmp-*"); err != nil { // of builders that were killed
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return fmt.Errorf("creating a directory for the build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := r.compile(ctx, work, batch, progress); err != nil {
		return err
	}
	for _, name := range batch.links {
		if err := os.Link(filepath.Join(work, batch.binary), filepath.Join(work, name)); err != nil {
			return fmt.Errorf("naming the programs: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	for _, name := range batch.programs() {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("finishing the build: %w", err)
		}
	}
	return nil
}

func removeMatching(pattern string) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("looking for incomplete builds: %w", err)
	}
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("removing incomplete builds: %w", err)
		}
	}
	return nil
}

// compile builds the binaries of a batch into dir.
func (r *recipe) compile(ctx context.Context, dir string, batch batch, progress io.Writer) error {
	started := time.Now()
	words := newTail(errorLines)
	build := &gobuild.Build{Command: r.command, Flags: buildFlags, Packages: batch.packages, Words: words}
	stop := gobuild.Show(progress, 0, "control plane", func() string {
		return batch.name + ": " + cmp.Or(build.String(), "looking for packages to compile")
	})
	defer stop()
	kubernetes, err := r.kubernetesVersion(ctx)
	if err != nil {
		return err
	}
	if err := build.Run(ctx, "-ldflags="+linkerFlags+versionFlags(kubernetes), "-o", dir+string(filepath.Separator)); err != nil {
		return buildError(ctx, "compiling", err, words)
	}
	stop()
	fmt.Fprintf(progress, "built the %s of Kubernetes %s in %s\n", batch.name, kubernetes, time.Since(started).Round(time.Second))
	return nil
}

// kubernetesVersion returns the version of Kubernetes, which is empty if the source does not need
// it.
func (r *recipe) kubernetesVersion(ctx context.Context) (string, error) {
	words := newTail(errorLines)
	command := r.command(ctx, "list", "-mod=readonly", "-m", "-e", "-f", "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", "k8s.io/kubernetes")
	command.Stderr = words
	output, err := command.Output()
	if err != nil {
		return "", buildError(ctx, "looking for the version of Kubernetes", err, words)
	}
	return strings.TrimSpace(string(output)), nil
}

// versionFlags returns linker flags that set the version of Kubernetes in the programs, as
// Kubernetes' own build does.
func versionFlags(version string) string {
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags, " -X %s.gitVersion=%s", pkg, version)
	}
	return flags.String()
}

// buildError returns the error of a go command, unless ctx has ended.
func buildError(ctx context.Context, doing string, err error, words *tail) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explainBuildError(commandError(doing, err, words))
}

// explainBuildError adds the remedy to errors that have a known one.
func explainBuildError(err error) error {
	if strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("%w\nthe disk is full: the build needs about 3 GB in GOCACHE and GOTMPDIR (see `go env`) and 400 MB in the user's cache directory", err)
	}
	return err
}
