// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/refusal"
)

// Only the member of a union that is not wanted is another one, and only if one is wanted.
func TestOthers(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	budget := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	claim := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"}
	for _, tt := range []struct {
		name         string
		kind         schema.GroupVersionKind
		wanted, live string
		want         string // "" for nothing
	}{
		{"another strategy", deployment, `{spec: {strategy: {type: Recreate}}}`, `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`,
			".spec.strategy.rollingUpdate"},
		{"the same strategy", deployment, `{spec: {strategy: {type: RollingUpdate}}}`, `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, ""},
		{"no strategy", deployment, `{spec: {strategy: {}}}`, `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, ""},
		{"a volume in a list with keys", deployment, `{spec: {template: {spec: {volumes: [{name: b, secret: {}}]}}}}`,
			`{spec: {template: {spec: {volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]}}}}`,
			`.spec.template.spec.volumes[name="b"].emptyDir`},
		{"a volume of which nothing is wanted", deployment, `{spec: {template: {spec: {volumes: [{name: b}]}}}}`, `{spec: {template: {spec: {volumes: [{name: b, emptyDir: {}}]}}}}`, ""},
		{"a probe", deployment, `{spec: {template: {spec: {containers: [{name: c, livenessProbe: {exec: {}}}]}}}}`,
			`{spec: {template: {spec: {containers: [{name: c, livenessProbe: {httpGet: {}, periodSeconds: 10}}]}}}}`,
			`.spec.template.spec.containers[name="c"].livenessProbe.httpGet`},
		{"both members, which is the author's mistake", budget, `{spec: {minAvailable: 1, maxUnavailable: 1}}`, `{spec: {minAvailable: 2}}`, ""},
		{"the other number", budget, `{spec: {maxUnavailable: 1}}`, `{spec: {minAvailable: 2}}`, ".spec.minAvailable"},
		{"a kind without a type", claim, `{spec: {type: Recreate}}`, `{spec: {rollingUpdate: {}}}`, ""},
	} {
		var wanted, live map[string]any
		must(t, yaml.Unmarshal([]byte(tt.wanted), &wanted))
		must(t, yaml.Unmarshal([]byte(tt.live), &live))
		got := ""
		for _, path := range refusal.Others(runtime.NewScheme(), tt.kind, wanted, live) {
			got += path.String()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
