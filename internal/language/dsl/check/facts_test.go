// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

func TestReadFactsOfTypes(t *testing.T) {
	const source = `package v1

// +kubebuilder:resource:path=databases,scope=Cluster,shortName=db

// Database has its markers apart from its comment.
type Database struct{}

// Cache is namespaced.
//
// +kubebuilder:resource:shortName={ca,ch},path="caches"
type Cache struct{}

// +kubebuilder:resource:path=ignored

var x int

// +genclient:nonNamespaced
type Zone struct{}

// +kubebuilder:resource:scope="Cluster"
type Region struct{}

type Plain struct{}
`
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := check.Facts{
		ClusterScoped: map[string]bool{"Database": true, "Zone": true, "Region": true},
		Resources:     map[string]string{"Database": "databases", "Cache": "caches"},
	}
	if diff := cmp.Diff(want, check.ReadFacts([]*ast.File{file})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
