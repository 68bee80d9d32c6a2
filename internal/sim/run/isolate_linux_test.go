// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

func init() { reveal = func(dir string) error { return unix.Unmount(dir, 0) } }

// An isolated program reaches no file and no socket of the user, and has no credentials, but what
// it was given; without isolation it reaches all of that.
func TestIsolatedPrograms(t *testing.T) {
	rings.Test(t, "starts processes")
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	must(t, err)
	home, elsewhere, work := t.TempDir(), t.TempDir(), t.TempDir()
	file := func(dir, name string) string {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("of the user"), 0o600))
		return path
	}
	t.Setenv("HOME", home)
	for _, name := range []string{"SSH_AUTH_SOCK", "DOCKER_HOST", "AWS_SECRET_ACCESS_KEY", "CTRLKIT_TOKEN"} {
		t.Setenv(name, "of the user")
	}
	given, config := file(home, "src/given.yaml"), file(home, "config/of-variable")
	t.Chdir(work)
	hidden := []string{
		"connect:" + socket(t, home), "connect:" + socket(t, elsewhere), "read:" + file(home, ".kube/config"), "read:" + file(elsewhere, "token"),
		"read:" + file(home, "src/not-given.yaml"), "getenv:SSH_AUTH_SOCK", "getenv:DOCKER_HOST", "getenv:AWS_SECRET_ACCESS_KEY", "getenv:CTRLKIT_TOKEN",
	}
	visible := []string{
		"read:" + given, "read:" + config, "read:" + self, "read:" + file(work, "of-project"), "read:of-project", "write:" + filepath.Join(work, "log"),
		"write:" + filepath.Join(home, "state"), "write:" + filepath.Join(os.TempDir(), "scratch"), "getenv:PATH", "getenv:HOME", "getenv:GIVEN",
	}
	reached := func(isolation *supervisor.Isolation, reveals ...string) []string {
		argv := slices.Concat([]string{self, probeArgument}, hidden, visible, reveals, []string{given})
		environment := []string{"GIVEN=" + config, "HOME=" + home, registry.Variable + "=" + os.Getenv(registry.Variable)}
		var lines []string
		p, err := StartProcess([]string{self, supervisor.Name}, argv, environment, isolation, func(line string) { lines = append(lines, line) })
		must(t, err)
		t.Cleanup(p.Stop)
		<-p.Ended()
		return lines
	}
	var unhidden []string
	isolation := &supervisor.Isolation{Socket: filepath.Join(t.TempDir(), "api.sock"), Address: "127.0.0.1:6443", Visible: func(dir string) { unhidden = append(unhidden, dir) }}
	got := reached(isolation, "reveal:/tmp", "reveal:"+home)
	if len(unhidden) > 0 {
		t.Skip("this machine does not let us hide ", unhidden)
	}
	if !slices.Equal(got, visible) {
		t.Errorf("isolated, it reaches\n%q, want\n%q", got, visible)
	}
	if content, err := os.ReadFile(filepath.Join(home, "state")); err == nil {
		t.Errorf("it has written %q to the home of the user", content)
	}
	if got := reached(nil); len(got) != len(hidden)+len(visible) {
		t.Errorf("without isolation, it reaches only\n%q", got)
	}
	_ = os.Remove(filepath.Join(os.TempDir(), "scratch"))
}

func socket(t *testing.T, dir string) string {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}
