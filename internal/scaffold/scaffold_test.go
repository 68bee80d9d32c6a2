// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var update = flag.Bool("update", false, "rewrite the golden files, then fail")

// requirements are those of the tests: this checkout.
var requirements = Requirements{Ctrlkit: "v0.0.0", Replace: checkoutDir()}

func checkoutDir() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}

func guestbook(dir string) (*Project, API) {
	return &Project{Dir: dir, Name: "guestbook", Domain: "example.com", Repo: "example.com/guestbook"},
		API{Group: "guestbook", Version: "v1", Kind: "Guestbook", Children: ChildrenDeployment}
}

// write writes a plan that must have no conflicts.
func write(t *testing.T, plan *Plan, err error) *Plan {
	t.Helper()
	must(t, err)
	if conflicts := plan.Conflicts(); len(conflicts) > 0 || len(plan.Notes) > 0 {
		t.Fatalf("conflicts %q, notes %q", conflicts, plan.Notes)
	}
	must(t, plan.Write())
	return plan
}

func open(t *testing.T, dir string) *Project {
	t.Helper()
	p, err := Open(dir)
	must(t, err)
	return p
}

// unpack writes the files of an archive of testdata into a new directory.
func unpack(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	must(t, err)
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, f.Data, 0o644))
	}
	return dir
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if err == nil && bytes.Equal(want, got) {
		return
	}
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
}

// Once written, a plan has no changes; also when kinds were added in between.
func TestAgainChangesNothing(t *testing.T) {
	dir := t.TempDir()
	project, first := guestbook(dir)
	plan, err := Init(project, first, requirements)
	golden(t, "init.txt", []byte(write(t, plan, err).Summary()))

	second := API{Group: "guestbook", Version: "v1", Kind: "Page", Children: ChildrenConfigMap}
	for range 2 {
		plan, err := Init(open(t, dir), first, requirements)
		if err != nil || len(plan.Changes) > 0 {
			t.Errorf("init again: %v, %s", err, plan.Summary())
		}
		plan, err = CreateAPI(open(t, dir), second, requirements)
		write(t, plan, err)
		plan, err = CreateAPI(open(t, dir), second, requirements)
		if err != nil || len(plan.Changes) > 0 {
			t.Errorf("create api again: %v, %s", err, plan.Summary())
		}
	}
}

// A new project requires what this module does.
func TestVersions(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	must(t, err)
	for _, line := range []string{"\ngo " + goVersion + "\n", "\tk8s.io/client-go " + kubernetesVersion + "\n", "\tsigs.k8s.io/controller-runtime " + controllerRuntimeVersion + "\n"} {
		if !strings.Contains(string(content), line) {
			t.Errorf("go.mod does not have %q: change the constants", line)
		}
	}
}

// A file that the user has changed is a conflict, one that is shared is extended.
func TestConflicts(t *testing.T) {
	dir := t.TempDir()
	project, first := guestbook(dir)
	for name, content := range map[string]string{"README.md": "Mine.\n", "go.mod": "module example.com/guestbook\n\ngo 1.26.1\n"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	plan, err := Init(project, first, requirements)
	must(t, err)
	if diff := cmp.Diff([]string{"README.md"}, plan.Conflicts()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(plan.Summary(), "  extended  go.mod\n") || !strings.Contains(plan.Summary(), "  replaced  README.md\n") {
		t.Error(plan.Summary())
	}
	i := slices.IndexFunc(plan.Changes, func(c Change) bool { return c.Path == "go.mod" })
	if content := string(plan.Changes[i].New); !strings.Contains(content, "go 1.26.1") {
		t.Errorf("the version of Go is changed:\n%s", content)
	}
}

// In a project of kubebuilder's, only the announced files change, and only by additions.
func TestCreateAPIInKubebuilderProjects(t *testing.T) {
	for _, tt := range []struct {
		name string
		api  API
	}{
		{"single", API{Group: "sea", Version: "v1", Kind: "Harbor", Children: ChildrenDeployment}},
		{"multi", API{Group: "land", Version: "v1beta1", Kind: "Boat", Children: ChildrenConfigMap}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := unpack(t, tt.name+".txtar")
			r := requirements
			r.Replace = "" // its path is not the same everywhere
			plan, err := CreateAPI(open(t, dir), tt.api, r)
			must(t, err)
			var text bytes.Buffer
			text.WriteString(plan.Summary())
			extended := &Plan{Changes: slices.DeleteFunc(slices.Clone(plan.Changes), func(c Change) bool { return !c.Extends })}
			must(t, extended.Diff(&text, false))
			golden(t, tt.name+".diff", text.Bytes())
			write(t, plan, err)

			plan, err = CreateAPI(open(t, dir), tt.api, r)
			if err != nil || len(plan.Changes) > 0 {
				t.Errorf("again: %v, %s", err, plan.Summary())
			}
		})
	}
}

func TestWhatAProjectHasNoRoomFor(t *testing.T) {
	dir := unpack(t, "single.txtar")
	for _, tt := range []struct {
		api  API
		want string
	}{
		{API{Group: "land", Version: "v1", Kind: "Car", Children: ChildrenNone}, "--group land: the kinds of the project are in group sea, and it has room for one. Use --group sea, or make room with kubebuilder edit --multigroup"},
		{API{Group: "sea", Version: "v2", Kind: "Boat", Children: ChildrenNone}, "--version v2: the project has Boat in version v1."},
	} {
		if _, err := CreateAPI(open(t, dir), tt.api, requirements); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestMarkersThatAreMissing(t *testing.T) {
	dir := unpack(t, "single.txtar")
	for _, name := range []string{"cmd/main.go", "config/samples/kustomization.yaml"} {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(path)
		must(t, err)
		content = bytes.ReplaceAll(content, []byte("+kubebuilder:scaffold:builder"), nil)
		content = bytes.ReplaceAll(content, []byte("# +kubebuilder:scaffold:manifestskustomizesamples"), nil)
		must(t, os.WriteFile(path, content, 0o644))
	}
	plan, err := CreateAPI(open(t, dir), API{Group: "sea", Version: "v1", Kind: "Harbor", Children: ChildrenNone}, requirements)
	must(t, err)
	golden(t, "missing.txt", []byte(strings.Join(plan.Notes, "\n")+"\n"))
}

func TestOtherLayouts(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), "there is no PROJECT file in ") {
		t.Errorf("got %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "PROJECT"), []byte("version: \"3\"\nlayout:\n- go.kubebuilder.io/v3\n"), 0o644))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), `layout "go.kubebuilder.io/v3": want version "3" and layout go.kubebuilder.io/v4`) {
		t.Errorf("got %v", err)
	}
}

// git applies the diff of a plan to what is there.
func TestDiffApplies(t *testing.T) {
	rings.Test(t, "runs git")
	dir := unpack(t, "single.txtar")
	plan, err := CreateAPI(open(t, dir), API{Group: "sea", Version: "v1", Kind: "Harbor", Children: ChildrenDeployment}, requirements)
	must(t, err)
	var text bytes.Buffer
	must(t, plan.Diff(&text, false))
	apply := exec.Command("git", "apply", "--unsafe-paths", "-")
	apply.Dir, apply.Stdin = dir, &text
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	plan, err = CreateAPI(open(t, dir), API{Group: "sea", Version: "v1", Kind: "Harbor", Children: ChildrenDeployment}, requirements)
	if err != nil || len(plan.Changes) > 0 {
		t.Errorf("after git apply: %v, %s", err, plan.Summary())
	}
}

// Imports stand in groups: those of Go's own library, those of others, those of ctrlkit, and those of
// the project.
func TestImportsStandInGroups(t *testing.T) {
	group := regexp.MustCompile(`^\t(?:\w+ )?"(github.com/ctrlkit|example.com|[^/".]+\.[a-z]+|)`)
	for _, a := range slices.Concat(kindsOf(false), kindsOf(true)) {
		project, api := guestbook(t.TempDir())
		api.Children, api.Document = a.Children, a.Document
		plan, err := Init(project, api, requirements)
		must(t, err)
		for _, c := range plan.Changes {
			if !strings.HasSuffix(c.Path, ".go") {
				continue
			}
			last := ""
			for line := range strings.SplitSeq(string(c.New), "\n") {
				now := ""
				if found := group.FindStringSubmatch(line); found != nil {
					if now = found[1]; now != "" && !strings.HasPrefix(now, "github.com/ctrlkit") && now != "example.com" {
						now = "others"
					}
					now = "in " + now
				}
				if last != "" && now != "" && now != last {
					t.Errorf("%+v: %s: no blank line before %s", a, c.Path, line)
				}
				last = now
			}
		}
	}
}

// kindsOf returns a kind with each sort of children.
func kindsOf(document bool) []API {
	var kinds []API
	for _, children := range AllChildren {
		kinds = append(kinds, API{Children: children, Document: document})
	}
	return kinds
}

// What is written compiles, and generators change none of it: the templates of generated files are
// what they write.
func TestWhatIsWrittenCompiles(t *testing.T) {
	rings.Test(t, "compiles a program")
	rings.Reads(t, "../..")
	for _, tt := range []struct {
		name   string
		change func(p *Project, a *API)
	}{
		{"names that collide and are long", func(p *Project, a *API) {
			p.Domain, a.Group, a.Kind, a.Plural = "k8s.example.com", "apps", "DeploymentWithAnExtraordinarilyLongNameOfItsOwn", "people"
		}},
		{"deployment", func(*Project, *API) {}},
		{"configmap", func(_ *Project, a *API) { a.Children = ChildrenConfigMap }},
		{"external", func(_ *Project, a *API) { a.Children = ChildrenExternal }},
		{"none", func(_ *Project, a *API) { a.Children = ChildrenNone }},
		{"deployment and document", func(_ *Project, a *API) { a.Document = true }},
		{"configmap and document", func(_ *Project, a *API) { a.Children, a.Document = ChildrenConfigMap, true }},
		{"external and document", func(_ *Project, a *API) { a.Children, a.Document = ChildrenExternal, true }},
		{"none and document", func(_ *Project, a *API) { a.Children, a.Document = ChildrenNone, true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "names that collide and are long" {
				rings.Explore(t, "compiles another variant; the tutorial has one, too")
			}
			dir := t.TempDir()
			project, a := guestbook(dir)
			tt.change(project, &a)
			plan, err := Init(project, a, requirements)
			write(t, plan, err)
			run(t, dir, "go", "mod", "tidy")
			if a.Document {
				run(t, dir, "go", "tool", "ctrlkit", "generate", "./...")
			}
			if rings.Exploring() {
				run(t, dir, "go", "vet", "-tags", "controlplane", "./...")
			}
			if out := run(t, dir, "gofmt", "-l", "."); out != "" {
				t.Errorf("gofmt would change %s", out)
			}
			run(t, dir, "go", "tool", "controller-gen", "object", "rbac:roleName=manager-role", "crd", "webhook", "paths=./...", "output:crd:artifacts:config=config/crd/bases")
			plan, err = Init(project, a, requirements)
			if err != nil || len(plan.Changes) > 0 {
				var text strings.Builder
				_ = plan.Diff(&text, false)
				t.Errorf("controller-gen writes something else than the templates: %v\n%s", err, text.String())
			}
			if a.Children == ChildrenExternal || a.Document {
				run(t, dir, "go", "tool", "ctrlkit", "check", "--strict", "./...")
				run(t, dir, "go", "tool", "ctrlkit", "vet", "./...")
				run(t, dir, "go", "test", "./...")
			}
			if !rings.Exploring() { // all is compiled once, with the client of an external kind beside it
				plan, err = CreateAPI(open(t, dir), API{Group: a.Group, Version: a.Version, Kind: "Bucket", Children: ChildrenExternal}, requirements)
				write(t, plan, err)
				run(t, dir, "go", "mod", "tidy")
				run(t, dir, "go", "tool", "controller-gen", "object", "paths=./api/...")
				run(t, dir, "go", "test", "-vet=off", "-tags", "controlplane", "-run", "TestBucketClient", "./...")
			}
		})
	}
}

// run runs a program in a project, with the module cache of this checkout.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-ldflags=-w", "PWD="+dir)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
