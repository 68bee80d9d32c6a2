// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
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
)

// CacheVariable names the environment variable with a directory for what
// [Build] makes, instead of ctrlkit/controlplane in the user's cache directory.
const CacheVariable = "CTRLKIT_CACHE"

// BuildOptions are the options of [Build]. The zero value is usable.
type BuildOptions struct {
	// Progress, if not nil, is told how the build gets on: in a terminal by one
	// line that is redrawn, otherwise by a line every ten seconds. Nothing is
	// written when there is nothing to build.
	Progress io.Writer
}

// Build compiles the programs of the control plane, unless that was done
// before, and returns the directory that holds them. It takes minutes and some
// 2 GB of Go's build cache the first time, and milliseconds from then on. The
// result, 190 MB, is kept in the user's cache directory under a name made of the
// programs' source, the version of Go and the platform: a change of any of them
// builds anew, and what was not used for thirty days is removed by a later build.
//
// Any number of processes may call Build at the same time: one of them
// builds, the others wait for it. When ctx ends, the compiler is stopped and
// nothing half-finished remains, although what was compiled is not lost.
//
// Build needs the go command, and the source of the programs, which is found
// beside the root module or downloaded. Environment variables by which a user's
// own module is built in some way (GOWORK, GOFLAGS, GOOS) do not matter here.
func Build(ctx context.Context, options BuildOptions) (Assets, error) {
	assets, err := build(ctx, options)
	if err != nil {
		return Assets{}, fmt.Errorf("building the control plane: %w", err)
	}
	return assets, nil
}

func build(ctx context.Context, options BuildOptions) (Assets, error) {
	recipe, err := newRecipe(ctx)
	if err != nil {
		return Assets{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Assets{}, err
	}
	assets := Assets{Dir: filepath.Join(cache, recipe.key())}
	if assets.check(AllParts) == nil {
		markUsed(assets.Dir)
		return assets, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Assets{}, fmt.Errorf("creating the cache: %w", err)
	}
	progress := newProgress(options.Progress)
	unlock, err := lock(ctx, assets.Dir+".lock", progress)
	if err != nil {
		return Assets{}, err
	}
	defer unlock()
	if assets.check(AllParts) == nil { // somebody else has built it meanwhile
		return assets, nil
	}
	if err := recipe.buildInto(ctx, assets.Dir, progress); err != nil {
		return Assets{}, err
	}
	forgetUnused(cache, time.Now().Add(-forgetAfter))
	return assets, assets.check(AllParts)
}

// forgetAfter is how long a build is kept that nobody uses.
const forgetAfter = 30 * 24 * time.Hour

// markUsed notes the time of use on a build's directory, if it may: in a cache
// that can only be read nothing is forgotten either.
func markUsed(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// buildName matches the directories of builds, finished and unfinished: nothing
// else is touched in a directory that the user has named.
var buildName = regexp.MustCompile(`^[0-9a-f]{16}(\.tmp-.*)?$`)

// forgetUnused removes builds that were last used before a time: each new version
// of Go or of the programs leaves one behind. What cannot be removed stays, since
// the build that is wanted does not suffer from it.
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

// cacheDir is where finished builds are kept.
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

// lock waits until this process is the only one that builds into a directory.
// The returned function lets others go on. The lock's file stays: removing it
// would let two processes hold locks on different files of one name.
func lock(ctx context.Context, name string, progress *progress) (unlock func(), err error) {
	file := flock.New(name)
	locked, err := file.TryLock()
	if err == nil && !locked {
		stop := progress.show(func() string { return "waiting for another process that builds the control plane" })
		locked, err = file.TryLockContext(ctx, 200*time.Millisecond)
		stop()
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if !locked {
		return nil, fmt.Errorf("locking %s: the lock was not given", name)
	}
	return func() { _ = file.Unlock() }, nil // the process's end unlocks it in any case
}

// A recipe is all that determines the result of a build.
type recipe struct {
	goCommand string // path of the go command
	source    string // directory of the programs' module
	digest    string // of the source
	goVersion string
}

// settings of the go command, also part of the key of a build.
var (
	// Without cgo no C compiler is needed, and the programs run on any machine
	// of the platform. Whatever the user's own module is built for, these
	// programs run here.
	buildEnvironment = []string{"CGO_ENABLED=0", "GO111MODULE=on", "GOWORK=off", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}

	// grpcnotrace keeps a tracing page out of the programs that would make the
	// linker keep every method of every type.
	buildFlags = []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace"}

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
	output, err := r.command(ctx, "env", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command for its version: %w", err)
	}
	r.goVersion = strings.TrimSpace(string(output))
	return r, nil
}

func (r *recipe) key() string {
	inputs, _ := json.Marshal([]any{r.digest, r.goVersion, buildEnvironment, buildFlags, linkerFlags}) // strings always marshal
	sum := sha256.Sum256(inputs)
	return hex.EncodeToString(sum[:8])
}

// command prepares a go command in the directory of the source.
func (r *recipe) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, r.goCommand, args...)
	command.Dir = r.source
	command.Env = append(os.Environ(), buildEnvironment...)
	command.Env = append(command.Env, "PWD="+r.source, "GOFLAGS="+harmlessFlags(os.Getenv("GOFLAGS")))
	// Interrupted, the go command stops its compilers and removes its work directory.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	return command
}

// harmlessFlags keeps of the user's GOFLAGS those that do not change what is
// built: how many compilers run at once, and how modules are downloaded.
func harmlessFlags(flags string) string {
	kept := slices.DeleteFunc(strings.Fields(flags), func(flag string) bool {
		return !strings.HasPrefix(flag, "-p=") && flag != "-modcacherw"
	})
	return strings.Join(kept, " ")
}

// buildInto compiles into a temporary directory beside dir and then gives it its
// name: dir is complete whenever it exists.
func (r *recipe) buildInto(ctx context.Context, dir string, progress *progress) (err error) {
	if err := removeMatching(dir + ".tmp-*"); err != nil { // of builders that were killed
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return fmt.Errorf("creating a directory for the build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := r.compile(ctx, work, progress); err != nil {
		return err
	}
	if err := linkPrograms(work); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil { // an incomplete one, damaged from outside
		return fmt.Errorf("replacing an incomplete build: %w", err)
	}
	if err := os.Rename(work, dir); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	return nil
}

func removeMatching(pattern string) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("looking for remains of earlier builds: %w", err)
	}
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("removing remains of earlier builds: %w", err)
		}
	}
	return nil
}

// compile builds the two binaries into dir.
func (r *recipe) compile(ctx context.Context, dir string, progress *progress) error {
	started := time.Now()
	kubernetes, total, err := r.survey(ctx, progress)
	if err != nil {
		return err
	}
	compiled := &compilation{total: total, started: started, words: newTail(errorLines)}
	stop := progress.show(compiled.String)
	defer stop()
	args := append([]string{"build", "-v"}, buildFlags...)
	args = append(args, "-ldflags="+linkerFlags+versionFlags(kubernetes), "-o", dir+string(filepath.Separator), "./cmd/...")
	command := r.command(ctx, args...)
	command.Stderr = compiled
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explainBuildError(commandError("compiling", err, compiled.words))
	}
	stop()
	progress.line(fmt.Sprintf("built the control plane of Kubernetes %s in %s", kubernetes, time.Since(started).Round(time.Second)))
	return nil
}

// survey downloads what is missing, and tells the version of Kubernetes and how
// many packages must be compiled, the programs' own, which come last, not counted.
func (r *recipe) survey(ctx context.Context, progress *progress) (kubernetes string, stale int, err error) {
	stop := progress.show(func() string { return "building the control plane: downloading modules" })
	defer stop()
	words := newTail(errorLines)
	args := append([]string{"list", "-deps", "-f", `{{if and .Stale (ne .Name "main")}}stale{{end}} {{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}`}, buildFlags...)
	command := r.command(ctx, append(args, "./cmd/...")...)
	command.Stderr = words
	output, err := command.Output()
	if err != nil {
		if ctx.Err() != nil {
			return "", 0, ctx.Err()
		}
		return "", 0, explainBuildError(commandError("listing the packages", err, words))
	}
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "stale ") {
			stale++
		}
		if version, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line, "stale")), "k8s.io/kubernetes "); ok {
			kubernetes = version
		}
	}
	return kubernetes, stale, nil
}

// versionFlags are linker flags that make the programs tell the version of
// Kubernetes, which they otherwise learn only from Kubernetes' own build.
func versionFlags(version string) string {
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags, " -X %s.gitVersion=%s", pkg, version)
	}
	return flags.String()
}

// explainBuildError adds the way out to errors that have a well-known one.
func explainBuildError(err error) error {
	if strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("%w\nthe disk is full: the build needs about 3 GB in GOCACHE and GOTMPDIR (see `go env`) and 200 MB in the user's cache directory", err)
	}
	return err
}

// linkPrograms gives the binary its names: it acts as the program by which it is called.
func linkPrograms(dir string) error {
	for _, name := range []string{etcdProgram, apiServerProgram, controllerManagerProgram, schedulerProgram, kubectlProgram} {
		if err := os.Link(Assets{Dir: dir}.Program("kubernetes"), Assets{Dir: dir}.Program(name)); err != nil {
			return fmt.Errorf("naming the programs: %w", err)
		}
	}
	return nil
}
