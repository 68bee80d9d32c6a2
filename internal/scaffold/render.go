// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// The delimiters are not Go's braces, which the templates are full of.
var templates = template.Must(template.New("").Delims("[[", "]]").Funcs(template.FuncMap{"yaml": yamlText}).
	ParseFS(templateFiles, "templates/project/*.tmpl", "templates/api/*.tmpl"))

// A file is a template and the path of what is made of it.
type file struct{ template, path string }

// projectFiles are those of a project that do not depend on its kinds. They are written once.
var projectFiles = []file{
	{"dockerignore", ".dockerignore"},
	{"workflow.yml", ".github/workflows/test.yml"},
	{"gitignore", ".gitignore"},
	{"Dockerfile", "Dockerfile"},
	{"Makefile", "Makefile"},
	{"README.md", "README.md"},
	{"default_kustomization.yaml", "config/default/kustomization.yaml"},
	{"manager_kustomization.yaml", "config/manager/kustomization.yaml"},
	{"manager.yaml", "config/manager/manager.yaml"},
	{"metrics_service.yaml", "config/manager/metrics_service.yaml"},
	{"network_policy_kustomization.yaml", "config/network-policy/kustomization.yaml"},
	{"network_policy_metrics.yaml", "config/network-policy/allow-metrics-traffic.yaml"},
	{"rbac_kustomization.yaml", "config/rbac/kustomization.yaml"},
	{"leader_election_role.yaml", "config/rbac/leader_election_role.yaml"},
	{"leader_election_role_binding.yaml", "config/rbac/leader_election_role_binding.yaml"},
	{"metrics_auth_role.yaml", "config/rbac/metrics_auth_role.yaml"},
	{"metrics_auth_role_binding.yaml", "config/rbac/metrics_auth_role_binding.yaml"},
	metricsReader,
	{"role_binding.yaml", "config/rbac/role_binding.yaml"},
	{"service_account.yaml", "config/rbac/service_account.yaml"},
}

// apiFiles returns the files of a kind that are the user's from the first moment.
func (v *values) apiFiles() []file {
	base := path.Join(v.controllerDir, strings.ToLower(v.Kind))
	files := []file{
		{"types.go", path.Join(v.apiDir, strings.ToLower(v.Kind)+"_types.go")},
		{"controller.go", base + "_controller.go"},
		{"controller_test.go", base + "_controller_test.go"},
		{"sim_test.go", base + "_sim_test.go"},
		{"controlplane_test.go", base + "_controlplane_test.go"},
		{"sample.yaml", "config/samples/" + v.SampleFile},
	}
	if v.External {
		for i, name := range []string{"controller.go", "controller_test.go", "sim_test.go"} {
			files[i+1].template = "external_" + name
		}
		files = append(files, file{"external_client.go", base + "_client.go"}, file{"external_system.go", base + "_system.go"})
	}
	if v.Document {
		files = append(files, file{"document.ctrlkit", base + ".ctrlkit"})
	}
	return files
}

// generatedFiles returns what controller-gen would write for the first kind of a project.
func (v *values) generatedFiles() []file {
	return []file{
		{"deepcopy.go", path.Join(v.apiDir, "zz_generated.deepcopy.go")},
		{"crd.yaml", "config/crd/bases/" + v.crdFile},
	}
}

// values is what the templates use.
type values struct {
	Name, Domain, Repo string

	Group, QualifiedGroup, Version string
	Kind, Lower, Var               string // Guestbook, guestbook, guestbook
	Kinds                          string // the plural in prose
	Plural                         string
	Alias, APIPath                 string // of the package of the types
	Package                        string // of the controller
	Controller                     string // the name of the controller
	Described                      string
	SampleName, SampleFile         string
	ToRoot                         string // from the controller to the root of the project
	OldBuilder                     bool   // whether the types are registered as older kubebuilders do

	Deployment, ConfigMap, External, NoChildren, Document bool

	Header                   string // the license header of the project, and an empty line
	ControllerGen, GoVersion string

	apiDir, controllerDir, crdFile string
}

// described says what an object of a new kind is.
var described = map[Children]string{
	ChildrenDeployment: "a workload with a Deployment and a Service",
	ChildrenConfigMap:  "a set of settings that is kept in a ConfigMap",
	ChildrenExternal:   "a resource in a system outside the cluster",
	ChildrenNone:       "a greeting",
}

func valuesOf(p *Project, a API) (*values, error) {
	lower, group := strings.ToLower(a.Kind), qualify(a.Group, p.Domain)
	v := &values{
		Name: p.Name, Domain: p.Domain, Repo: p.Repo,
		Group: a.Group, QualifiedGroup: group, Version: a.Version,
		Kind: a.Kind, Lower: lower, Var: strings.ToLower(a.Kind[:1]) + a.Kind[1:], Kinds: Plural(a.Kind), Plural: a.plural(),
		Alias: apiAlias(a), APIPath: path.Join(p.Repo, p.apiDir(a)),
		Package: "controller", Controller: lower,
		Described:  described[a.Children],
		SampleName: lower + "-sample", SampleFile: fmt.Sprintf("%s_%s_%s.yaml", a.Group, a.Version, lower),
		ToRoot:     "../..",
		Deployment: a.Children == ChildrenDeployment, ConfigMap: a.Children == ChildrenConfigMap, External: a.Children == ChildrenExternal, NoChildren: a.Children == ChildrenNone, Document: a.Document,
		ControllerGen: controllerGenVersion, GoVersion: strings.TrimSuffix(goVersion, ".0"),
		apiDir: p.apiDir(a), controllerDir: p.ControllerDir(a), crdFile: group + "_" + a.plural() + ".yaml",
	}
	if p.MultiGroup {
		// Names of controllers are unique in a process, and kinds are not.
		v.Package, v.ToRoot, v.Controller = packageName(a.Group), "../../..", strings.ReplaceAll(a.Group, ".", "-")+"-"+lower
	}
	if len(v.Controller) > 63 { // it is a DNS label
		return nil, nameError("kind", "%q: the name of its controller, %s, has more than 63 characters", a.Kind, v.Controller)
	}
	var err error
	v.Header, err = header(p.Dir)
	return v, err
}

// reserved are names of packages that generated code imports.
var reserved = []string{"appsv1", "corev1", "metav1", "rbacv1"}

// apiAlias returns the name by which the package of the types is imported, as kubebuilder has it.
func apiAlias(a API) string {
	alias := packageName(a.Group) + a.Version
	if slices.Contains(reserved, alias) {
		return packageName(a.Group) + "api" + a.Version
	}
	return alias
}

// packageName makes the name of a Go package of a group.
func packageName(group string) string {
	return strings.NewReplacer("-", "", ".", "").Replace(group)
}

// header returns the license header that a kubebuilder project has for its Go files.
func header(dir string) (string, error) {
	text, err := readIfThere(dir, "hack/boilerplate.go.txt")
	trimmed := strings.TrimSpace(string(text))
	if err != nil || trimmed == "" {
		return "", err
	}
	return strings.ReplaceAll(trimmed, " YEAR", " "+strconv.Itoa(time.Now().Year())) + "\n\n", nil
}

// render returns the text of a template. Go is formatted.
func (v *values) render(name string) ([]byte, error) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name+".tmpl", v); err != nil {
		return nil, fmt.Errorf("writing %s: %w", name, err)
	}
	if !strings.HasSuffix(name, ".go") {
		return text.Bytes(), nil
	}
	formatted, err := format.Source(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("formatting %s: %w\n%s", name, err, text.Bytes())
	}
	return formatted, nil
}

// yamlText returns a field with a text as controller-gen writes it: a line is broken at the first
// space after its 80th column.
func yamlText(indent int, key, text string) string {
	var lines strings.Builder
	line := strings.Repeat(" ", indent) + key + ":"
	for word := range strings.FieldsSeq(text) {
		if len(line) > 80 {
			lines.WriteString(line + "\n")
			line = strings.Repeat(" ", indent+1)
		}
		line += " " + word
	}
	return lines.String() + line
}

// usesOldBuilder reports whether the types of a package are registered with the builder of
// controller-runtime, as kubebuilder did until controller-runtime deprecated it.
func usesOldBuilder(dir, apiDir string) (bool, error) {
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(apiDir), "*.go"))
	if err != nil {
		return false, err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return false, fmt.Errorf("looking how types are registered: %w", err)
		}
		if bytes.Contains(content, []byte("scheme.Builder{")) {
			return true, nil
		}
	}
	return false, nil
}
