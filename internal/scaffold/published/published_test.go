// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A user installs the released command, and scaffolds an operator: it builds, passes its tests, and
// needs nothing of this checkout. A second kind has a document, whose Go the command generates.
func TestScaffoldedOperator(t *testing.T) {
	rings.Explore(t, "compiles the command and an operator, which takes minutes")
	u := newUser(t)
	u.run(".", "go", "install", "github.com/ctrlkit/ctrlkit/cmd/ctrlkit@"+u.version)

	u.run(".", "ctrlkit", "init", "guestbook")
	mod := u.read("guestbook/go.mod")
	if !strings.Contains(mod, "\tgithub.com/ctrlkit/ctrlkit "+u.version+"\n") || strings.Contains(mod, "replace") {
		t.Errorf("go.mod requires something else than the released version:\n%s", mod)
	}
	u.run("guestbook", "ctrlkit", "create", "api", "--kind", "Entry", "--document")
	u.check("guestbook")
	if out := u.run("guestbook", "ctrlkit", "create", "api", "--kind", "Entry", "--document"); !strings.Contains(out, "Nothing to do") {
		t.Errorf("create api again: %s", out)
	}
	if out := u.run(".", "ctrlkit", "init", "guestbook"); !strings.Contains(out, "Nothing to do") {
		t.Errorf("init again: %s", out)
	}
}

// What is released has all that the command and an operator import, with the files that they embed.
func TestPublishedModulesAreComplete(t *testing.T) {
	rings.Test(t, "asks the go command")
	u := newUser(t)
	u.run(".", "go", "mod", "init", "example.com/user")
	for path := range modules {
		u.run(".", "go", "get", path+"@"+u.version)
	}
	u.run(".", "go", "get", "github.com/ctrlkit/ctrlkit/cmd/ctrlkit@"+u.version)
	u.run(".", "go", "list", "-mod=mod", "-deps", "github.com/ctrlkit/ctrlkit/cmd/ctrlkit", "github.com/ctrlkit/ctrlkit/step", "github.com/ctrlkit/ctrlkit/sim")
}

// check compiles an operator with all of its tests, and runs them: those of its steps, and a part of
// its simulations, since all of their plans take a minute for each kind.
func (u *user) check(dir string) {
	u.t.Helper()
	u.run(dir, "go", "vet", "-tags", "controlplane", "./...")
	out := u.run(dir, "go", "test", "-v", "./internal/controller", "-sim.shard=1/20")
	for _, test := range []string{"TestGuestbookChildren", "TestGuestbookSurvives", "TestEntryChildren", "TestEntrySurvives"} {
		if !strings.Contains(out, "--- PASS: "+test+" ") {
			u.t.Errorf("%s has not passed:\n%s", test, out)
		}
	}
	u.run(dir, "go", "mod", "tidy", "-diff")
}

// A user has a home and programs of their own. The caches are those of this machine, so that only
// ctrlkit is compiled again. What is put into the module cache is removed from it.
type user struct {
	t       *testing.T
	home    string
	version string // of ctrlkit
	env     []string
}

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir()}
	proxy := filepath.Join(u.home, "proxy")
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if u.version, err = Version(checkout); err != nil {
		t.Fatal(err)
	}
	if err := Proxy(proxy, checkout, u.version); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("go", "env", "GOPROXY", "GONOSUMDB", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Split(string(output), "\n")
	t.Cleanup(func() { removeVersion(t, settings[2], u.version) })
	bin := filepath.Join(u.home, "bin")
	u.env = append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+settings[0],
		"GONOSUMDB=github.com/ctrlkit/ctrlkit,"+settings[1],
		"GOFLAGS=-modcacherw", "GOWORK=off", "GOBIN="+bin,
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG=",
	)
	return u
}

// removeVersion removes a version of ctrlkit from a module cache.
func removeVersion(t *testing.T, cache, version string) {
	for path := range modules {
		for _, pattern := range []string{path + "@" + version, "cache/download/" + path + "/@v/" + version + ".*"} {
			found, err := filepath.Glob(filepath.Join(cache, filepath.FromSlash(pattern)))
			if err != nil {
				t.Error(err)
			}
			for _, name := range found {
				if err := os.RemoveAll(name); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func (u *user) run(dir, name string, args ...string) string {
	u.t.Helper()
	path := name
	if name == "ctrlkit" {
		path = filepath.Join(u.home, "bin", "ctrlkit")
	}
	command := exec.Command(path, args...)
	command.Dir = filepath.Join(u.home, dir)
	command.Env = append(u.env[:len(u.env):len(u.env)], "PWD="+command.Dir)
	output, err := command.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

func (u *user) read(name string) string {
	u.t.Helper()
	content, err := os.ReadFile(filepath.Join(u.home, filepath.FromSlash(name)))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(content)
}
