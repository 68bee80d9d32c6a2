// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command peers runs the integration suites of controller-runtime against the API server in memory,
// or against the real control plane, and prints how many of their specs and tests pass. It is what
// make peers calls, in the root of the repository. The suites are those of the version in go.mod, and
// run with the Kubernetes libraries of go.mod.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

const packages = "sigs.k8s.io/controller-runtime/pkg/"

// suites are the packages whose tests start an API server, or belong to one whose tests do.
var suites = []string{
	"client", "client/apiutil", "cache", "builder", "controller", "controller/controllerutil", "internal/controller",
	"handler", "source", "reconcile", "manager", "manager/internal/integration", "internal/recorder", "cluster", "metrics/filters",
	"webhook", "envtest",
}

const (
	// unsimulated are the specs that need what docs/simulator-reference.md lists as not simulated: a server that
	// calls webhooks, or enforces the RBAC of its objects.
	unsimulated = "webhook that rejects all requests|should start all components without deadlock|authn/authz should serve extra endpoints"

	// older are the tests that need a server with an older discovery, which they start themselves
	// unless they are given one.
	older = "^TestLazyRestMapperProvider$/^aggregatedDiscovery=false$"
)

// errFailed is returned when tests have failed, which has been printed.
var errFailed = errors.New("tests failed")

// cluster is what a suite runs against.
type cluster interface {
	Kubeconfig() string
	Stop() error
}

// runner runs suites.
type runner struct {
	dir   string // of binaries, output and reports
	only  *regexp.Regexp
	focus string // a pattern of specs to run
	skip  string // and one of those not to run
	start func(context.Context) (cluster, error)
	out   io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	r := runner{out: out, start: startMemory, skip: unsimulated}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	only := flags.String("only", "", "run only the suites that match this `pattern`, such as ^cache$")
	flags.StringVar(&r.focus, "focus", "", "run only the specs that match this `pattern`")
	flags.StringVar(&r.dir, "dir", "", "keep test binaries, output and reports in this `directory`")
	flags.BoolFunc("real", "run against etcd and kube-apiserver, which are built if they are not in the user's cache", func(string) error {
		r.start, r.skip = startReal, ""
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "ctrlkit-peers-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	}
	return r.run(ctx)
}

func startMemory(context.Context) (cluster, error) {
	return memory.Start(memory.Options{Players: player.None()})
}

func startReal(ctx context.Context) (cluster, error) {
	return controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
}

// run runs the suites one after the other, each against a new cluster.
func (r *runner) run(ctx context.Context) error {
	if err := r.copyModuleFiles(); err != nil {
		return err
	}
	var failures []string
	fmt.Fprintf(r.out, "| suite | passed | failed | skipped |\n|---|--:|--:|--:|\n")
	for _, suite := range suites {
		if !r.only.MatchString(suite) {
			continue
		}
		counts, err := r.runSuite(ctx, suite)
		if err != nil {
			return fmt.Errorf("suite %s: %w", suite, err)
		}
		fmt.Fprintf(r.out, "| %s | %d | %d | %d |\n", suite, counts.passed, len(counts.failures), counts.skipped)
		for _, failure := range counts.failures {
			failures = append(failures, suite+": "+failure)
		}
	}
	if len(failures) > 0 {
		fmt.Fprintf(r.out, "\nfailed:\n%s\n", strings.Join(failures, "\n"))
		return errFailed
	}
	return nil
}

// copyModuleFiles copies go.mod and go.sum, to which the build of the suites adds what only tests of
// other modules require.
func (r *runner) copyModuleFiles() error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runSuite builds and runs a suite. Tests that fail are not an error.
func (r *runner) runSuite(ctx context.Context, suite string) (_ counts, err error) {
	base := filepath.Join(r.dir, strings.ReplaceAll(suite, "/", "-"))
	if base, err = filepath.Abs(base); err != nil {
		return counts{}, err
	}
	if _, err := r.goTool(ctx, "test", "-c", "-vet=off", "-ldflags=-w", "-o", base+".test", packages+suite); err != nil {
		return counts{}, err
	}
	dir, err := r.goTool(ctx, "list", "-find", "-f", "{{.Dir}}", packages+suite)
	if err != nil {
		return counts{}, err
	}
	c, err := r.start(ctx)
	if err != nil {
		return counts{}, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	cmd := exec.CommandContext(ctx, base+".test", "-test.v", "-test.timeout=20m", "-ginkgo.timeout=20m", "-ginkgo.seed=1", "-ginkgo.no-color",
		"-test.skip="+older, "-ginkgo.focus="+r.focus, "-ginkgo.skip="+r.skip, "-ginkgo.json-report="+base+".json")
	cmd.Dir = strings.TrimSpace(dir) // where its testdata is
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+c.Kubeconfig())
	output, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return counts{}, err
	}
	if err := os.WriteFile(base+".txt", output, 0o644); err != nil {
		return counts{}, err
	}
	report, err := os.ReadFile(base + ".json")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return counts{}, err
	}
	return count(report, output)
}

// goTool runs the go command with the copied module files, and returns what it prints.
func (r *runner) goTool(ctx context.Context, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{command, "-mod=mod", "-modfile=" + filepath.Join(r.dir, "go.mod")}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, problems.String())
	}
	return string(output), nil
}
