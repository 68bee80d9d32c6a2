// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/dsl/checktest"
)

// TestGenerate runs each script in a Go module of its own, controller-kit-demo, with the document
// cronjob.ctrlkit in the directory manager.
func TestGenerate(t *testing.T) {
	goEnv, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(goEnv), "\n")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "generate"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", lines[0])
			env.Setenv("GOMODCACHE", lines[1])
			env.Setenv("GOFLAGS", strings.TrimSpace(lines[2]+" -mod=mod"))
			env.Setenv("GOPROXY", "off")
			env.Setenv("GOWORK", "off")
			env.Setenv("CTRLKIT", filepath.Dir(lines[3]))
			if err := checktest.WriteModule(env.WorkDir); err != nil {
				return err
			}
			dir := filepath.Join(env.WorkDir, "manager")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "cronjob.ctrlkit"), checktest.CronJob, 0o644)
		},
	})
}
