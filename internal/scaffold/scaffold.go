// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Init plans a project with its first kind. The project may be there already, as Init has written
// it: then nothing is changed, or what is missing is added.
func Init(project *Project, first API, r Requirements) (*Plan, error) {
	if err := errors.Join(project.check(), first.check(project.Domain)); err != nil {
		return nil, err
	}
	v, err := valuesOf(project, first)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Dir: project.Dir}
	for _, f := range projectFiles {
		if err := plan.render(v, f); err != nil {
			return nil, err
		}
	}
	if err := plan.kind(project, first, v); err != nil {
		return nil, err
	}
	// More kinds may have been added since: then controller-gen has written these files.
	if len(project.Own()) < 2 {
		if err := plan.generated(v); err != nil {
			return nil, err
		}
	}
	return plan, plan.module(project, r, true)
}

// CreateAPI plans a further kind of a project. What generators write for it, controller-gen and,
// with a document, ctrlkit generate, is not part of the plan.
func CreateAPI(project *Project, a API, r Requirements) (*Plan, error) {
	if err := a.check(project.Domain); err != nil {
		return nil, err
	}
	if err := project.checkNew(a); err != nil {
		return nil, err
	}
	v, err := valuesOf(project, a)
	if err != nil {
		return nil, err
	}
	if v.OldBuilder, err = usesOldBuilder(project.Dir, v.apiDir); err != nil {
		return nil, err
	}
	plan := &Plan{Dir: project.Dir}
	if err := plan.kind(project, a, v); err != nil {
		return nil, err
	}
	return plan, plan.module(project, r, false)
}

// kind plans the files of a kind, and the lines that it needs in those of the project.
func (p *Plan) kind(project *Project, a API, v *values) error {
	for _, f := range v.apiFiles() {
		if err := p.render(v, f); err != nil {
			return err
		}
	}
	// The package may be there, under whatever name its file has.
	group := file{"groupversion_info.go", path.Join(v.apiDir, "groupversion_info.go")}
	if old, err := readIfThere(p.Dir, group.path); err != nil {
		return err
	} else if old == nil {
		if err := p.render(v, group); err != nil {
			return err
		}
	}
	for _, shared := range []struct {
		file
		extend func(content []byte) ([]byte, []string, error)
	}{
		{file{"PROJECT", projectFile}, func(content []byte) ([]byte, []string, error) {
			content, err := addResource(content, project, a)
			return content, nil, err
		}},
		{file{"main.go", mainFile}, func(content []byte) ([]byte, []string, error) {
			editor, err := editMain(content)
			if err != nil {
				return nil, nil, err
			}
			editor.add(v)
			content, err = editor.result()
			return content, editor.missing, err
		}},
		{file{"crd_kustomization.yaml", "config/crd/kustomization.yaml"}, kustomization("crdkustomizeresource", "bases/"+v.crdFile)},
		{file{"samples_kustomization.yaml", "config/samples/kustomization.yaml"}, kustomization("manifestskustomizesamples", v.SampleFile)},
	} {
		if err := p.extend(v, shared.file, shared.extend); err != nil {
			return err
		}
	}
	if there, err := readIfThere(p.Dir, metricsReader.path); err != nil || there == nil {
		return err
	}
	return p.extend(v, metricsReader, readReports)
}

// kustomization adds a file to the resources of a kustomization.
func kustomization(marker, name string) func([]byte) ([]byte, []string, error) {
	return func(content []byte) ([]byte, []string, error) {
		content, ok := addEntry(content, marker, name)
		if !ok {
			return content, []string{fmt.Sprintf("there is no line # +kubebuilder:scaffold:%s: add %s to its resources", marker, name)}, nil
		}
		return content, nil, nil
	}
}

// render plans a file that is written once.
func (p *Plan) render(v *values, f file) error {
	content, err := v.render(f.template)
	if err != nil {
		return err
	}
	return p.add(f.path, content)
}

// extend plans a file that kinds share: the one that is there, or a new one, with additions.
func (p *Plan) extend(v *values, f file, extend func([]byte) ([]byte, []string, error)) error {
	old, err := readIfThere(p.Dir, f.path)
	if err != nil {
		return err
	}
	content := old
	if old == nil {
		if content, err = v.render(f.template); err != nil {
			return err
		}
	}
	content, notes, err := extend(content)
	if err != nil {
		return err
	}
	for _, note := range notes {
		p.Notes = append(p.Notes, f.path+": "+note)
	}
	p.note(Change{Path: f.path, Old: old, New: content, Extends: true})
	return nil
}

// generated plans what controller-gen would write for the first kind, so that a new project can be
// built at once.
func (p *Plan) generated(v *values) error {
	for _, f := range v.generatedFiles() {
		if err := p.render(v, f); err != nil {
			return err
		}
	}
	return p.add("config/rbac/role.yaml", v.role())
}

// role returns the role of a project with one kind, as controller-gen writes it.
func (v *values) role() []byte {
	type rule struct{ group, resource, verbs string }
	const children = "create delete get list patch watch"
	object := "get list watch"
	if v.External {
		object = "get list patch watch" // the finalizer, and what is known of the resource
	}
	rules := []rule{
		{v.QualifiedGroup, v.Plural, object},
		{v.QualifiedGroup, v.Plural + "/status", "patch"},
		{"events.k8s.io", "events", "create patch"},
	}
	if !v.NoChildren {
		rules = append(rules, rule{v.QualifiedGroup, v.Plural + "/finalizers", "update"})
	}
	if v.Deployment {
		rules = append(rules, rule{"apps", "deployments", children}, rule{`""`, "services", children})
	}
	if v.Document {
		rules = append(rules, rule{`""`, "pods", "get list watch"})
	}
	if v.External {
		rules = append(rules, rule{`""`, "secrets", "create get list patch watch"}, rule{`""`, "namespaces", "get list watch"})
	}
	if v.ConfigMap {
		rules = append(rules, rule{`""`, "configmaps", children})
	}
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource))
	})
	for i := 0; i < len(rules); i++ { // one rule for what has the same verbs
		for j := len(rules) - 1; j > i; j-- {
			if rules[i].group == rules[j].group && rules[i].verbs == rules[j].verbs {
				rules[i].resource += " " + rules[j].resource
				rules = slices.Delete(rules, j, j+1)
			}
		}
	}
	var text bytes.Buffer
	text.WriteString("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: manager-role\nrules:\n")
	for _, r := range rules {
		fmt.Fprintf(&text, "- apiGroups:\n  - %s\n  resources:\n", r.group)
		for resource := range strings.FieldsSeq(r.resource) {
			fmt.Fprintf(&text, "  - %s\n", resource)
		}
		text.WriteString("  verbs:\n")
		for verb := range strings.FieldsSeq(r.verbs) {
			fmt.Fprintf(&text, "  - %s\n", verb)
		}
	}
	return text.Bytes()
}
