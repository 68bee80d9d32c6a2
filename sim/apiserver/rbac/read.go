// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns the policy of files, and of all files with YAML or JSON in directories. Documents of
// other kinds have no effect.
func Read(paths ...string) (*Policy, error) {
	var objects []runtime.Object
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
			found, err := parse(data)
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
	return New(objects...)
}

// parse returns the RBAC objects of a file, whose documents are separated by lines of "---".
func parse(data []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		obj, err := decode(document)
		if err != nil {
			return nil, err
		}
		if obj != nil {
			objects = append(objects, obj)
		}
	}
}

// decode returns the RBAC object of a document, or nil if it has another kind.
func decode(document []byte) (runtime.Object, error) {
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(document, &header); err != nil {
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
	if err := yaml.UnmarshalStrict(document, obj); err != nil {
		return nil, fmt.Errorf("%s: %w", header.Kind, err)
	}
	return obj, nil
}
