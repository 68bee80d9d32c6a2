// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// FuzzDefinitions makes types of arbitrary definitions: there is no panic, and either types or a
// problem.
func FuzzDefinitions(f *testing.F) {
	for _, name := range []string{"testdata/hostile/matrices.yaml", "testdata/hostile/unserved.yml", "../../gen/golden/defined/traffic.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{spec: {group: a, names: {kind: "_"}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {metadata: {}, "": {type: object}, _: {type: string, enum: [_, _]}}}}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &definitions.Definition{}
		if yaml.Unmarshal(text, d) != nil {
			return
		}
		label := d.Spec.Group + "/v1"
		p := check.NewDefinitions(label+" ./x", label, []*definitions.Definition{d, d})
		if (p.Types == nil) == (p.Problem == "") {
			t.Errorf("types %v with the problem %q", p.Types, p.Problem)
		}
	})
}
