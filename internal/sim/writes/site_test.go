// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// The operator's code is that of its module; libraries say nothing, and engines only when there is
// no code of the operator.
func TestKindOfFrames(t *testing.T) {
	m := module{"example.com/op", "/home/u/op"}
	tests := map[string]struct {
		function, file string
		want           int
	}{
		"the operator":            {"example.com/op/controllers.(*R).Reconcile", "/home/u/op/controllers/r.go", ownCode},
		"its root":                {"example.com/op.F", "/home/u/op/f.go", ownCode},
		"its main":                {"main.newManager", "/home/u/op/cmd/main.go", ownCode},
		"its external test":       {"example.com/op/controllers_test.TestX.func1", "/home/u/op/controllers/r_test.go", ownCode},
		"the main of go test":     {"main.main", "_testmain.go", libraryCode},
		"another module":          {"example.com/operator.F", "/root/go/pkg/mod/example.com/operator@v1/f.go", otherCode},
		"the standard library":    {"net/http.(*Client).Do", "/usr/local/go/src/net/http/client.go", libraryCode},
		"client-go":               {"k8s.io/client-go/rest.(*Request).Do", "/root/go/pkg/mod/k8s.io/client-go@v0.37.2/rest/request.go", libraryCode},
		"controller-runtime":      {"sigs.k8s.io/controller-runtime/pkg/client.(*client).Create", "client.go", libraryCode},
		"the simulator":           {ctrlkit + "/sim.transport.RoundTrip", "transport.go", libraryCode},
		"the server in memory":    {ctrlkit + "/internal/sim/apiserver.(*Server).RoundTrip", "transport.go", libraryCode},
		"an engine":               {ctrlkit + "/step.(*Request[...]).Save", "request.go", otherCode},
		"a step of a mutant":      {ctrlkit + "/sim/internal/mutants.bucketStep.Do", "external.go", ownCode},
		"a reconciler of a test":  {ctrlkit + "/sim.copier.Reconcile", "/x/sim/run_test.go", ownCode},
		"an example with modules": {ctrlkit + "/examples/04_website.site", "/x/examples/04_website/main.go", ownCode},
	}
	for name, tt := range tests {
		if got := m.kindOf(tt.function, tt.file); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
	if got := (module{}).kindOf("example.com/op.F", "f.go"); got != otherCode {
		t.Errorf("without a module: got %d", got)
	}
}

func TestFilesAreRelativeToTheModule(t *testing.T) {
	m := module{"example.com/op", "/home/u/op"}
	for file, want := range map[string]string{
		"/home/u/op/controllers/r.go":                  "controllers/r.go",
		"example.com/op/controllers/r.go":              "controllers/r.go", // -trimpath
		"/root/go/pkg/mod/example.com/lib@v1.2.3/f.go": "example.com/lib@v1.2.3/f.go",
		"/elsewhere/f.go":                              "/elsewhere/f.go",
	} {
		if got := m.relative(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
	if got := (module{}).relative("/a/f.go"); got != "/a/f.go" {
		t.Errorf("without a module: got %s", got)
	}
}

func TestFunctionsAreShort(t *testing.T) {
	for function, want := range map[string][2]string{
		"example.com/a/b.(*T).F":             {"example.com/a/b", "(*T).F"},
		"example.com/a/b.(*T).F.func1.2":     {"example.com/a/b", "(*T).F"},
		"example.com/a/b.F[...]":             {"example.com/a/b", "F"},
		"example.com/a/b_test.TestX.func1":   {"example.com/a/b", "TestX"},
		"main.main":                          {"main", "main"},
		"nothing":                            {"nothing", ""},
		"gopkg.in/x%2ey.F":                   {"gopkg.in/x%2ey", "F"},
		"example.com/a/b.glob..func1":        {"example.com/a/b", "glob."},
		"example.com/a/b.(*T[...]).F-fm":     {"example.com/a/b", "(*T).F-fm"},
		"example.com/a/b.(*T).F.gowrap1":     {"example.com/a/b", "(*T).F.gowrap1"},
		"example.com/a/b.(*T).F.func1.func2": {"example.com/a/b", "(*T).F"},
	} {
		if got := [2]string{packageOf(function), shortFunction(function)}; got != want {
			t.Errorf("%s: got %q, want %q", function, got, want)
		}
	}
}

func TestModuleOf(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("// a comment\nmodule \"example.com/op\"\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := moduleOf(below), (module{"example.com/op", dir}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := moduleOf(string(filepath.Separator)); got != (module{}) {
		t.Errorf("got %v", got)
	}
}

func inner() []uintptr { return Stack(0) }
func outer() []uintptr { return inner() }

// A stack has the lines of the operator's code, the innermost first, and not more than are useful.
func TestSites(t *testing.T) {
	var got []string
	for _, site := range Sites(outer()) {
		got = append(got, site.File+" "+site.Function)
	}
	file := "internal/sim/writes/site_test.go "
	if diff := cmp.Diff([]string{file + "inner", file + "outer", file + "TestSites"}, got); diff != "" {
		t.Error(diff)
	}
	if got := Sites(nil); got != nil {
		t.Errorf("no stack has the lines %v", got)
	}
	if got := (report.Site{File: "a.go", Line: 7}).String(); got != "a.go:7" {
		t.Errorf("got %s", got)
	}
}

// Recording a stack costs some microseconds; a plan has about a hundred writes.
func BenchmarkStack(b *testing.B) {
	for b.Loop() {
		Stack(0)
	}
}

// The line of the operator is found in the text of a stack, too, and none where it has none.
func TestSiteOfText(t *testing.T) {
	m := module{"example.com/op", "/src/op"}
	text := "goroutine 7 [select, synctest bubble 1]:\nnet.(*Resolver).lookupIPAddr(0xc0, {0x1, 0x2})\n\t/go/src/net/lookup.go:370 +0x1d\n" +
		"example.com/op/dns.(*Client).Find(...)\n\t/src/op/dns/client.go:12\nexample.com/op.Reconcile(0x0)\n\t/src/op/main.go:7 +0x1\n"
	if got, want := m.siteOfText(text), "dns/client.go:12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.siteOfText("goroutine 7 [select]:\nnet.Dial(0x1)\n\t/go/src/net/dial.go:1 +0x1\n"); got != "" {
		t.Errorf("got %q of a stack without the operator", got)
	}
}
