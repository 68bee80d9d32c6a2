// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/command/commandtest"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
)

// shared is for tests that can live with other objects.
var shared planetest.Shared

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

// runScripts runs the scripts in a directory of testdata; see package commandtest.
func runScripts(t *testing.T, dir string, p testscript.Params) {
	t.Helper()
	p.Dir = filepath.Join("testdata", dir)
	commandtest.Run(t, p)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
