// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
)

// loads records the calls of a loader: the base name of the directory, and the paths.
type loads []string

func (l *loads) Load(ctx context.Context, dir string, paths []string) (map[string]*check.Package, error) {
	*l = append(*l, filepath.Base(dir)+": "+strings.Join(paths, " "))
	return checktest.Loader{}.Load(ctx, dir, paths)
}

// The go command takes as long for the packages of one directory as for those of all.
func TestCheckLoadsPackagesOncePerModule(t *testing.T) {
	root := t.TempDir()
	write := func(text []byte, path ...string) string {
		name := filepath.Join(append([]string{root}, path...)...)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var files []string
	for _, module := range []string{"one", "two"} {
		write([]byte("module "+module+"\n"), module, "go.mod")
		for i := range 20 {
			files = append(files, write(checktest.CronJob, module, fmt.Sprintf("controllers%02d", i), "cronjob.ctrlkit"))
		}
	}
	wrong := write([]byte("bind batch/v1 k8s.io/api/batch/v1\nbind none/v1 example.com/none\n\nmanager Wrong(job batch/v1.Jobb) {\n}\n"), "two", "wrong", "wrong.ctrlkit")
	var loaded loads
	inputs, err := inputsOf(append(files, wrong), nil)
	if err != nil {
		t.Fatal(err)
	}
	list, sources, err := checkInputs(t.Context(), inputs, &loaded)
	if err != nil {
		t.Fatal(err)
	}
	packages := "controller-kit-demo/api/v1 k8s.io/api/batch/v1 k8s.io/api/core/v1"
	if diff := cmp.Diff(loads{"one: " + packages, "two: controller-kit-demo/api/v1 example.com/none k8s.io/api/batch/v1 k8s.io/api/core/v1"}, loaded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(sources) != len(files)+1 {
		t.Errorf("%d documents, want %d", len(sources), len(files)+1)
	}
	for _, d := range list.Problems() {
		if d.Start.Filename != wrong {
			t.Errorf("%v", d)
		}
	}
	if !list.HasErrors() {
		t.Error("the mistake in the last directory is not found")
	}
}
