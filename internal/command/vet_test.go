// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleAt writes a module that uses the library of this checkout, in the versions that this module
// has chosen, and makes it the working directory.
func moduleAt(t *testing.T, files map[string]string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	required, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/ctrlkit/ctrlkit"
	files["go.mod"] = strings.Replace(string(required), "module "+path, "module example.com/operator", 1) +
		fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", path, root)
	files["go.sum"] = string(sums)
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
}

const controller = `package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

func update() ctrlkit.Action { return ctrlkit.Nop() }

func reconcile(ctx context.Context) (ctrl.Result, error) {
	%s
	return ctrlkit.IgnoreExit(update().Run(ctx))
}
`

func TestVetFindsTheDiscardedAction(t *testing.T) {
	moduleAt(t, map[string]string{
		"controller.go":      fmt.Sprintf(controller, "defer update()"),
		"controller_test.go": "package controller\n\nfunc forTests() { update() }\n",
	})
	stdout, stderr, err := execute(t, "", "vet", "./...")
	want := `controller.go:14:8: defer update(...) makes an action and never runs it: run it after the others with ctrlkit.Finally(workflow, update(...))
controller_test.go:3:19: update(...) makes an action that is never run: make it part of the workflow, or run it with .Run(ctx)
`
	if diff := cmp.Diff(want, stdout); diff != "" || exitCode(err) != exitFound {
		t.Errorf("exit code %d, %v %s (-want +got):\n%s", exitCode(err), err, stderr, diff)
	}
}

func TestVetIsSilentWhenNothingIsWrong(t *testing.T) {
	moduleAt(t, map[string]string{"controller.go": fmt.Sprintf(controller, "")})
	if stdout, _, err := execute(t, "", "vet"); err != nil || stdout != "" {
		t.Errorf("printed %q and returned %v, want nothing", stdout, err)
	}
}

func TestVetSaysWhatCannotBeLoaded(t *testing.T) {
	moduleAt(t, map[string]string{"controller.go": "package controller\n\nvar x = y\n"})
	if _, _, err := execute(t, "", "vet"); exitCode(err) != exitFound || errorText(err) == "" {
		t.Errorf("returned %v, want an error about what is undefined", err)
	}
}
