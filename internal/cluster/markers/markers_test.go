// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

// The markers are those of the project of a role: neither those of a module within it, nor those of
// whatever lies beside a role outside of any module.
func TestFor(t *testing.T) {
	const marker = "package op\n\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get\n"
	root := t.TempDir()
	for name, text := range map[string]string{
		"op/go.mod": "module op\n", "op/a.go": marker, "op/internal/b.go": marker, "op/tools/go.mod": "module tools\n", "op/tools/c.go": marker,
		"op/vendor/x/d.go": marker, "op/config/rbac/role.yaml": "", "op/role.yaml": "", "role.yaml": "",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := []string{"a.go", "b.go"}
	for role, want := range map[string][]string{"op/config/rbac/role.yaml": own, "op/config/rbac": own, "op/role.yaml": own, "role.yaml": nil} {
		found, err := For([]string{filepath.Join(root, role)})
		var got []string
		for _, m := range found {
			got = append(got, filepath.Base(m.Place.File))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", role, got, err, want)
		}
	}
}

// What the file of a controller asks for that has not run is unchecked, also if another one asks for it,
// too. A controller has run if a request is for the kind whose status or finalizers it writes, whatever it
// shares with others.
func TestUnrun(t *testing.T) {
	marker := func(file, group string, resources []string, verbs ...string) Marker {
		return Marker{Place: rbac.Place{File: file}, rule: rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}}
	}
	all := []Marker{
		marker("wheel.go", "crew", []string{"wheels/status"}, "patch"), marker("wheel.go", "", []string{"secrets", "configmaps"}, "delete"),
		marker("captain.go", "crew", []string{"captains"}, "get", "delete"), marker("captain.go", "crew", []string{"captains/finalizers"}, "update"),
		marker("captain.go", "", []string{"secrets", "pods"}, "delete"), marker("mate.go", "crew", []string{"mates/status"}, "patch"),
		marker("mate.go", "", []string{"secrets"}, "delete"), marker("doc.go", "", []string{"configmaps"}, "delete"),
	}
	needs := []permission.Need{{Group: "crew", Resource: "wheels", Verb: "watch"}, {Resource: "pods", Verb: "list"}, {Group: "other", Resource: "captains", Verb: "get"}}
	c := rbac.Comparison{Unused: []rbac.Grant{
		{Rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"delete"}}},
		{Rule: rbacv1.PolicyRule{APIGroups: []string{"crew"}, Resources: []string{"captains", "boats"}, Verbs: []string{"get"}}},
	}}
	c.Uncheck(Unrun(all, needs))
	texts := func(list []rbac.Grant) (texts []string) {
		for _, g := range list {
			texts = append(texts, g.String()+" "+g.Unrun)
		}
		return texts
	}
	unused := []string{
		`{apiGroups: [""], resources: [configmaps], verbs: [delete]} `,
		`{apiGroups: [crew], resources: [boats], verbs: [get]} `,
	}
	unchecked := []string{
		`{apiGroups: [""], resources: [secrets], verbs: [delete]} captain.go, mate.go`,
		`{apiGroups: [crew], resources: [captains], verbs: [get]} captain.go`,
	}
	if got := texts(c.Unused); !slices.Equal(got, unused) {
		t.Errorf("unused are %q, want %q", got, unused)
	}
	if got := texts(c.Unchecked); !slices.Equal(got, unchecked) {
		t.Errorf("unchecked are %q, want %q", got, unchecked)
	}
}
