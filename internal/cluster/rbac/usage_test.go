// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

const generous = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, create]}
- {apiGroups: [""], resources: [configmaps, secrets], verbs: ["*"]}
- {apiGroups: ["", apps], resources: [pods, deployments], resourceNames: [x], verbs: [delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
- {apiGroups: [example.com], resources: [widgets/finalizers], verbs: [update]}
- {nonResourceURLs: [/metrics], verbs: [get]}
`

func TestUnused(t *testing.T) {
	policy, _ := read(t, generous)
	const (
		maps = `{apiGroups: [""], resources: [configmaps], verbs: [get, create]}`
		all  = `{apiGroups: [""], resources: [configmaps, secrets], verbs: [*]}`
		pods = `{apiGroups: ["", apps], resources: [pods, deployments], resourceNames: [x], verbs: [delete]}`
	)
	tests := []struct {
		method, path string
		want         []string
	}{
		{"GET", "/api/v1/namespaces/default/nodes/x", []string{maps, all, pods}}, // refused
		{"GET", "/api/v1/namespaces/default/secrets/x", []string{maps, pods}},
		{"GET", "/api/v1/namespaces/default/configmaps/x", []string{pods}}, // two rules allow it
		{"DELETE", "/api/v1/namespaces/default/pods/y", []string{maps, all, pods}},
		{"DELETE", "/apis/apps/v1/namespaces/default/deployments/x", []string{maps, all}},
	}
	for _, test := range tests {
		usage := policy.Record()
		server := apiserver.New(apiserver.Options{Authorizer: usage})
		r, err := apiserver.NewRequest(test.method, test.path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.User = apiserver.ServiceAccount("default", "operator")
		server.Serve(r)
		var got []string
		for _, g := range usage.Unused(r.User) {
			got = append(got, g.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("after %s %s: %s", test.method, test.path, diff)
		}
	}
}
