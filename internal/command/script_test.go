// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	"github.com/ctrlkit/ctrlkit/internal/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/rings"
)

// shared is for tests that can live with other objects.
var shared controlplanetest.Shared

// A testMain runs the tests beside the shared control plane.
type testMain struct{ *testing.M }

func (m testMain) Run() int { return shared.Main(m.M) }

func TestMain(m *testing.M) {
	main := func() { os.Exit(Main()) }
	testscript.Main(testMain{m}, map[string]func(){
		"ctrlkit":                  main,
		"kubectl-ctrlkit":          main,
		"kubectl_complete-ctrlkit": main,
		"vaults":                   runVaults,
	})
}

// runScripts runs the scripts in a directory of testdata, with the caches of this machine. Besides
// testscript's own commands they have
//
//	exits CODE PROGRAM ...      runs a program and wants this exit code of it
//	until PATTERN PROGRAM ...   repeats a program until its output has a match
//	obeys PATTERN               runs the first match in the last output, as if it were pasted
//
// the commands and conditions of p, and the condition [explore] for what make explore adds. The
// variable CHECKOUT is the root of this repository.
func runScripts(t *testing.T, dir string, p testscript.Params) {
	t.Helper()
	rings.Test(t, "runs the command")
	rings.Reads(t, "../..")
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS").Output()
	must(t, err)
	lines := strings.Split(string(output), "\n")
	checkout, err := filepath.Abs("../..")
	must(t, err)
	setup, condition, commands := p.Setup, p.Condition, map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until, "obeys": obeys}
	for name, f := range p.Cmds {
		commands[name] = f
	}
	p.Condition = func(name string) (bool, error) {
		if name == "explore" || condition == nil {
			return rings.Exploring(), nil
		}
		return condition(name)
	}
	if p.Cmds = commands; dir != "" {
		p.Dir = filepath.Join("testdata", dir)
	}
	flags := strings.TrimSpace(lines[2] + " -ldflags=-w -vet=off") // a third of linking is debug information; no script is about go vet
	p.Setup = func(env *testscript.Env) error {
		for name, value := range map[string]string{
			"GOCACHE": lines[0], "GOMODCACHE": lines[1], "GOFLAGS": flags, "GOGC": os.Getenv("GOGC"), "GOWORK": "off", "CHECKOUT": checkout, "KUBECONFIG": "",
			"XDG_CACHE_HOME": filepath.Join(env.WorkDir, ".cache"),
		} {
			env.Setenv(name, value)
		}
		if setup == nil {
			return nil
		}
		return setup(env)
	}
	testscript.Run(t, p)
}

func TestScripts(t *testing.T) { runScripts(t, "script", testscript.Params{}) }

// The stories of fmt and check, each in a directory with the Go module controller-kit-demo.
func TestDocuments(t *testing.T) {
	runScripts(t, "documents", testscript.Params{Setup: func(env *testscript.Env) error { return checktest.WriteModule(env.WorkDir) }})
}

// The stories of generate, each in a Go module of its own, controller-kit-demo, with the document
// cronjob.ctrlkit in the directory manager.
func TestGenerate(t *testing.T) {
	runScripts(t, "generate", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("GOFLAGS", strings.TrimSpace(env.Getenv("GOFLAGS")+" -mod=mod"))
		env.Setenv("GOPROXY", "off")
		dir := filepath.Join(env.WorkDir, "manager")
		return errors.Join(checktest.WriteModule(env.WorkDir), os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cronjob.ctrlkit"), checktest.CronJob, 0o644))
	}})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// until runs a program until its standard output matches. Operators work in processes of their own:
// nothing reports that one is done.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM ...")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; {
		_ = ts.Exec(args[1], args[2:]...) // an object that is not ready has an exit code
		if wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("nothing matched %s", wanted)
		}
	}
}

func obeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: obeys PATTERN")
	}
	command := regexp.MustCompile(args[0]).FindString(ts.ReadFile("stdout"))
	if command == "" {
		ts.Fatalf("nothing matches %s", args[0])
	}
	ts.Check(ts.Exec("sh", "-c", command))
}

// freePort returns an address at which nothing listens.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
