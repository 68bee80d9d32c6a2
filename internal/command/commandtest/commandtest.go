// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package commandtest runs scripts with the command in the tests of several packages, which run side
// by side: together they would be what all others wait for.
package commandtest

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

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

// Run runs scripts of the second ring, with the caches of this machine. Besides testscript's own
// commands they have
//
//	exits CODE PROGRAM ...      runs a program and wants this exit code of it
//	until PATTERN PROGRAM ...   repeats a program until its output has a match
//	obeys PATTERN               runs the first match in the last output, as if it were pasted
//
// the commands and conditions of p, and the condition [explore] for what make explore adds. The
// variable CHECKOUT is the root of this repository.
func Run(t *testing.T, p testscript.Params) {
	t.Helper()
	rings.Test(t, "runs the command")
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(output), "\n")
	checkout := filepath.Dir(lines[3])
	rings.Reads(t, checkout)
	setup, condition, commands := p.Setup, p.Condition, map[string]func(*testscript.TestScript, bool, []string){"exits": Exits, "until": until, "obeys": obeys}
	for name, f := range p.Cmds {
		commands[name] = f
	}
	p.Condition = func(name string) (bool, error) {
		if name == "explore" || condition == nil {
			return rings.Exploring(), nil
		}
		return condition(name)
	}
	p.Cmds = commands
	flags := strings.TrimSpace(lines[2] + " -ldflags=-w -vet=off") // a third of linking is debug information; no script is about go vet
	p.Setup = func(env *testscript.Env) error {
		for name, value := range map[string]string{
			"GOCACHE": lines[0], "GOMODCACHE": lines[1], "GOFLAGS": flags, "GOGC": os.Getenv("GOGC"), "GOWORK": "off", "CHECKOUT": checkout, "KUBECONFIG": "",
			registry.Variable: os.Getenv(registry.Variable), // the program is this test binary
			"XDG_CACHE_HOME":  filepath.Join(env.WorkDir, ".cache"),
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

// Exits is the command exits.
func Exits(ts *testscript.TestScript, neg bool, args []string) {
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

// FreePort returns an address at which nothing listens.
func FreePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
