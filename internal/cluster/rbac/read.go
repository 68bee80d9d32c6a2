// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	yamlv3 "go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Read returns the policy of files, and of all files with YAML or JSON in directories. Documents of
// other kinds have no effect.
func Read(paths ...string) (*Policy, error) {
	var objects []runtime.Object
	places := places{}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			switch filepath.Ext(name) {
			case ".yaml", ".yml", ".json":
			default:
				if name != path {
					return nil
				}
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			found, err := places.parse(name, data)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			objects = append(objects, found...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("no Roles, ClusterRoles or bindings in %q", paths)
	}
	return newPolicy(objects, places)
}

// A Place is where a rule stands.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1
}

// String returns the place as editors and terminals recognize it; empty if it is not known.
func (p Place) String() string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// places are those of the rules of objects that were read, by the address of a rule's verbs: a role
// is copied, and what its rules refer to is not.
type places map[*string]Place

func (p places) of(rule *rbacv1.PolicyRule) Place {
	if len(rule.Verbs) == 0 {
		return Place{}
	}
	return p[&rule.Verbs[0]]
}

func (p places) note(file string, rules []rbacv1.PolicyRule, lines []int) {
	for i := range rules {
		if i < len(lines) && len(rules[i].Verbs) > 0 {
			p[&rules[i].Verbs[0]] = Place{file, lines[i]}
		}
	}
}

// parse returns the RBAC objects of a file, whose documents are separated by lines of "---".
func (p places) parse(file string, data []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		obj, err := decode(&document)
		if err != nil {
			return nil, err
		}
		switch o := obj.(type) {
		case nil:
			continue
		case *rbacv1.Role:
			p.note(file, o.Rules, linesOfRules(&document))
		case *rbacv1.ClusterRole:
			p.note(file, o.Rules, linesOfRules(&document))
		}
		objects = append(objects, obj)
	}
}

// linesOfRules returns the lines on which the rules of a role begin.
func linesOfRules(document *yamlv3.Node) []int {
	if len(document.Content) == 0 {
		return nil
	}
	var lines []int
	fields := document.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value != "rules" {
			continue
		}
		for _, rule := range fields[i+1].Content {
			lines = append(lines, rule.Line)
		}
	}
	return lines
}

// decode returns the RBAC object of a document, or nil if it has another kind.
func decode(document *yamlv3.Node) (runtime.Object, error) {
	data, err := yamlv3.Marshal(document)
	if err != nil {
		return nil, err
	}
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(data, &header); err != nil {
		return nil, err
	}
	if header.GroupVersionKind().GroupVersion() != rbacv1.SchemeGroupVersion {
		return nil, nil
	}
	var obj runtime.Object
	switch header.Kind {
	case "Role":
		obj = &rbacv1.Role{}
	case "ClusterRole":
		obj = &rbacv1.ClusterRole{}
	case "RoleBinding":
		obj = &rbacv1.RoleBinding{}
	case "ClusterRoleBinding":
		obj = &rbacv1.ClusterRoleBinding{}
	default:
		return nil, nil
	}
	if err := yaml.UnmarshalStrict(data, obj); err != nil {
		return nil, fmt.Errorf("%s: %w", header.Kind, err)
	}
	return obj, nil
}
