// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const module = "github.com/ctrlkit/ctrlkit"

// layers says on which layer each package of the module stands. A package imports only packages of
// lower layers. A directory that ends in "/..." stands for everything below it that is not listed.
//
// The table is docs/architecture.md as a test: change both, and say why.
var layers = map[string]int{
	// What every floor may use.
	"internal/show/drawing":                0,
	"internal/show/drawing/layered":        1,
	"internal/show/drawing/manager":        2,
	"internal/show/drawing/flow":           1,
	"internal/language/dsl/model":          0,
	"internal/engine/outcome":              0,
	"internal/engine/health":               0,
	"internal/engine/outline":              -1, // data, which the journal has, too
	"state":                                0,
	"install":                              0,
	"internal/cluster/definitions":         0,
	"internal/cluster/live":                0,
	"internal/tools/rings":                 0,
	"internal/sim/recording":               2,
	"internal/cluster/secrets":             0,
	"internal/show/localhost":              -1, // before whatever an operator serves
	"internal/cluster/secrets/secretstest": 0,
	"internal/cluster/printable":           -1, // text of others, for whatever prints it
	"internal/gobuild":                     -1, // of the standard library alone
	"internal/cluster/private":             -1, // files for their owner alone
	"internal/cluster/testkind":            0,
	"internal/cluster/tenure":              0,
	"internal/engine/text":                 -1, // of conditions and events
	"internal/engine/shard":                1,  // what the engines ask of the shard that operator makes
	"internal/engine/managers":             2,
	"internal/tools/house":                 0,
	"internal/tools/suite":                 3,
	"internal/tools/suite/merge":           1,
	"internal/tools/suite/merge/registry":  0,

	// The tower.
	"":                            2, // workflows
	"apply":                       5, // its Children is a step
	"internal/cluster/witness":    0,
	"condition":                   0,
	"failure":                     3,
	"journal":                     0,
	"internal/engine/metrics":     1,
	"operator/tracing":            1,
	"step":                        4,
	"internal/engine/cause":       2,
	"step/internal/hotloop":       2,
	"internal/engine/track":       1,
	"internal/cluster/references": 0,
	"internal/engine/wiring":      1,
	"internal/cluster/refusal":    0,
	"internal/engine/answer":      0,
	"internal/engine/orphans":     1,
	"internal/cluster/restmapper": 0,
	"internal/show/explanation":   4, // what an operator says of itself, independent of the engine
	"internal/show/view":          5,
	"operator":                    6, // imports no engine: see independent
	"internal/cluster/permission": 0,
	"policy":                      1,
	"handlers":                    6,
	"reference":                   5, // its protection is a step
	"external":                    7,

	// The language, which knows nothing of the tower: it is a compiler, and ends in the model.
	"internal/language/dsl/diag":      0,
	"internal/language/dsl/ast":       1,
	"internal/language/dsl/parser":    2,
	"internal/language/dsl/format":    3,
	"internal/language/dsl/check":     3,
	"internal/language/dsl/checktest": 4,
	"internal/language/gen":           1,
	"internal/language/dsl/catalog":   4,
	"internal/language/fix":           4, // reads documents
	"internal/language/lsp":           5, // what editors ask of documents

	// What looks at workflows and runs operators.
	"ctrlkittest":                             8,
	"internal/sim/planetest":                  2,
	"controlplane":                            1,
	"diagram":                                 3,
	"internal/vet":                            0,
	"sim":                                     7,
	"internal/sim/fault":                      0,
	"internal/sim/oracle":                     0,
	"internal/sim/report":                     1,
	"internal/sim/explore":                    2,
	"internal/sim/judge/trace":                0,
	"internal/tools/golden":                   0,
	"internal/sim/schedule":                   0,
	"internal/sim/judge/external":             0,
	"internal/sim/judge/minted":               0,
	"internal/sim/judge/cluster":              3,
	"internal/sim/writes":                     5,
	"internal/sim/needs":                      6,
	"internal/sim/judge/snapshot":             4,
	"internal/sim/actor":                      4,
	"internal/sim/players":                    5,
	"internal/sim/fakes":                      1,
	"sim/player":                              4,
	"internal/sim/judge":                      5,
	"internal/sim/inject":                     5,
	"internal/sim/memory":                     6,
	"internal/sim/apiserver":                  2,
	"internal/cluster/rbac":                   1,
	"internal/sim/apiserver/internal/crd":     0,
	"internal/sim/apiserver/internal/builtin": 1,
	"internal/sim/apiserver/conformance":      3,
	"sim/internal/mutants":                    8,
	"sim/testdata/guide":                      8,
	"internal/cluster/markers":                2,
	"internal/sim/run":                        7,
	"internal/sim/run/supervisor":             1,
	"internal/show/difference":                1,
	"internal/sim/transition":                 2,
	"internal/sim/trial":                      8,
	"internal/sim/plan":                       9,
	"internal/sim/program":                    10,
	"internal/sim/plan/plantest":              10,
	"internal/scaffold":                       0,
	"internal/scaffold/published":             0,
	"internal/command/commandtest":            1,
	"internal/command":                        11,
	"internal/command/live":                   12,
	"cmd/ctrlkit":                             12,
	"internal/playground":                     5,
	"internal/playground/build":               5,
	"cmd/ctrlkit-vet":                         12,
	"internal/tools/checks":                   11,
	"internal/tools/peers":                    7,
	"internal/tools/compile":                  0,

	// Generated packages that are compiled and run as tests.
	"internal/language/gen/golden/...":          4,
	"internal/language/gen/golden/seed/...":     5,
	"internal/language/gen/golden/seed/manager": 4,
	"internal/language/gen/golden/seed/api/...": 0,
}

// allowed restricts what packages may import from outside the standard library and the module. A
// package that is not listed may import anything that is not banned.
var allowed = map[string][]string{
	"":                            {"github.com/go-logr/logr", "k8s.io/apimachinery/", "sigs.k8s.io/controller-runtime"},
	"state":                       {"k8s.io/apimachinery/", "sigs.k8s.io/controller-runtime"},
	"diagram":                     {"github.com/go-logr/logr", "sigs.k8s.io/controller-runtime"},
	"internal/vet":                {"golang.org/x/tools/go/"},
	"policy":                      {"k8s.io/apimachinery/"},
	"internal/gobuild":            {},
	"internal/language/dsl/model": {},
	"internal/language/dsl/ast":   {},
}

// independent says which packages must not import which others although these stand lower: they
// would build on one where any will do.
var independent = map[string]map[string]string{
	"operator": {"step": "it reads a journal, whichever engine keeps it"},
}

// banned must not be reached by any package of the module, not even through others.
var banned = map[string]string{
	"k8s.io/kubernetes":                       "it needs replace lines that users would have to copy; programs that need it live in controlplane/kubernetes",
	"go.etcd.io/etcd/":                        "it belongs to the programs in controlplane/kubernetes",
	"sigs.k8s.io/kwok":                        "it belongs to the programs in controlplane/kubernetes",
	"github.com/crossplane/":                  "rivals are compared with in bench, never built on",
	"github.com/rancher/":                     "rivals are compared with in bench, never built on",
	"github.com/Azure/azure-service-operator": "rivals are compared with in bench, never built on",
	"reconciler.io/":                          "rivals are compared with in bench, never built on",
	"github.com/operator-framework/":          "rivals are compared with in bench, never built on",
	"github.com/goccy/go-graphviz":            "it is compiled at the start of every process; pictures are laid out in internal/show/drawing/layered",
	"github.com/hinshun/vt10x":                "only pictures of terminals need it; it belongs to internal/pictures",
	"github.com/creack/pty":                   "only pictures of terminals need it; it belongs to internal/pictures",
	"github.com/tetratelabs/wazero":           "it compiles at run time, which crashes with processors that are newer than it",
}

func TestLayers(t *testing.T) {
	inRoot(t)
	for _, p := range ownPackages(t) {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		layer, ok := layerOf(from)
		if !ok {
			t.Errorf("package %q is not listed: give it a layer in layers_test.go and a line in docs/architecture.md", from)
			continue
		}
		for _, problem := range wrongImports(from, layer, p) {
			t.Error(problem)
		}
	}
}

// wrongImports says which imports of p, on the given layer, are not allowed.
func wrongImports(from string, layer int, p listedPackage) []string {
	var problems []string
	for _, imported := range p.Imports {
		to, inside := strings.CutPrefix(imported, module)
		to = strings.TrimPrefix(to, "/")
		switch {
		case inside:
			if below, ok := layerOf(to); ok && below >= layer {
				problems = append(problems, fmt.Sprintf(
					"%q (layer %d) imports %q (layer %d): imports go down only, or the lower one can't be used alone", from, layer, to, below))
			}
			if why := independent[from][to]; why != "" {
				problems = append(problems, fmt.Sprintf("%q imports %q, on which it must not depend: %s", from, to, why))
			}
		case strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
			prefixes, restricted := allowed[from]
			if restricted && !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(imported, prefix) }) {
				problems = append(problems, fmt.Sprintf("%q imports %s: it may import only %v from outside the module", from, imported, prefixes))
			}
		}
	}
	return problems
}

func layerOf(dir string) (int, bool) {
	if layer, ok := layers[dir]; ok {
		return layer, true
	}
	for up := dir; ; {
		if layer, ok := layers[up+"/..."]; ok {
			return layer, true
		}
		i := strings.LastIndexByte(up, '/')
		if i < 0 {
			return 0, false
		}
		up = up[:i]
	}
}

func TestBannedDependencies(t *testing.T) {
	rings.Test(t, "lists the dependencies of all packages")
	inRoot(t)
	packages, err := listPackages("-deps", "-test", "./...")
	must(t, err)
	for _, p := range packages {
		if why := isBanned(p.ImportPath); why != "" {
			t.Errorf("the library depends on %s: %s", p.ImportPath, why)
		}
	}
}

func isBanned(path string) string {
	for prefix, why := range banned {
		if path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/") {
			return why
		}
	}
	return ""
}

// Users of the library inherit its requirements, but not its replacements.
func TestModuleFile(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile("go.mod")
	must(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod has a replacement, which users do not inherit: %s", line)
		}
		for _, word := range strings.Fields(line) {
			if why := isBanned(word); why != "" {
				t.Errorf("go.mod names %s: %s", word, why)
			}
		}
	}
}

// The tests above have to be able to fail.
func TestLayersTestCanFail(t *testing.T) {
	inRoot(t)
	for _, tt := range []struct {
		from, imports string
		want          string
	}{
		{"", module + "/diagram", `"" \(layer 2\) imports "diagram" \(layer 3\)`},
		{"state", module, `"state" \(layer 0\) imports "" \(layer 2\)`},
		{"state", "github.com/spf13/cobra", `"state" imports github.com/spf13/cobra`},
		{"operator", module + "/step", `"operator" imports "step", on which it must not depend`},
		{"diagram", module, ""},
		{"state", "k8s.io/apimachinery/pkg/types", ""},
		{"internal/command", "github.com/spf13/cobra", ""},
	} {
		layer, _ := layerOf(tt.from)
		got := strings.Join(wrongImports(tt.from, layer, listedPackage{Imports: []string{"context", tt.imports}}), "\n")
		if matched, _ := regexp.MatchString(tt.want, got); !matched || (tt.want == "") != (got == "") {
			t.Errorf("%q importing %q: got %q, want %q", tt.from, tt.imports, got, tt.want)
		}
	}
	for path, want := range map[string]bool{
		"k8s.io/kubernetes/pkg/apis/core": true, "k8s.io/kubernetes": true, "go.etcd.io/etcd/server/v3/embed": true,
		"k8s.io/kubernetesque": false, "k8s.io/client-go/kubernetes": false, "go.etcd.io/etcd/client/v3": true,
	} {
		if got := isBanned(path) != ""; got != want {
			t.Errorf("%s banned: got %t, want %t", path, got, want)
		}
	}
}

// listedPackage is what the go command says of a package.
type listedPackage struct {
	ImportPath string
	Imports    []string
}

// ownPackages returns the packages of the module. The go command is asked once.
func ownPackages(t *testing.T) []listedPackage {
	t.Helper()
	packages, err := own()
	must(t, err)
	return packages
}

var own = sync.OnceValues(func() ([]listedPackage, error) { return listPackages("./...") })

func listPackages(args ...string) ([]listedPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, &stderr)
	}
	var packages []listedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}
