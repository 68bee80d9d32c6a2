// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	main := func() { os.Exit(Main()) }
	testscript.Main(m, map[string]func(){
		"ctrlkit":                  main,
		"kubectl-ctrlkit":          main,
		"kubectl_complete-ctrlkit": main,
	})
}

// The scripts have one command more than testscript's own: "exits CODE PROGRAM ..." runs a program
// and wants this exit code of it.
func TestScripts(t *testing.T) {
	output, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(output))
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", caches[0])
			env.Setenv("GOMODCACHE", caches[1])
			env.Setenv("CHECKOUT", checkout)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("GOWORK", "off")
			env.Setenv("REPOSITORY", repository)
			env.Setenv("MODULES", strings.TrimSpace(string(modules)))
			env.Setenv("KUBECONFIG", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
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
