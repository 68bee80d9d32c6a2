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

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
)

// The stories of fix, each in a Go module of its own, controller-kit-demo, with the document
// cronjob.cm in the directory manager. The original library is not there.
func TestFix(t *testing.T) {
	runScripts(t, "fix", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("GOFLAGS", strings.TrimSpace(env.Getenv("GOFLAGS")+" -mod=mod"))
		env.Setenv("GOPROXY", "off")
		dir := filepath.Join(env.WorkDir, "manager")
		return errors.Join(checktest.WriteModule(env.WorkDir), os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cronjob.cm"), checktest.CronJob, 0o644))
	}})
}
