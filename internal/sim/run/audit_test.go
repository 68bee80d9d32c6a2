// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

const auditedUser = "system:serviceaccount:system:manager"

// post sends an event to an audit, as the API server does.
func post(t *testing.T, a *audit, event string) {
	t.Helper()
	config, err := os.ReadFile(a.dir + "/" + webhookFile)
	must(t, err)
	url := regexp.MustCompile(`server: "([^"]+)"`).FindStringSubmatch(string(config))[1]
	answer, err := http.Post(url, "application/json", strings.NewReader(`{"kind":"EventList","items":[`+event+`]}`))
	must(t, err)
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the answer is %s", answer.Status)
	}
}

func eventOf(user, verb, ref string, code int, message string) string {
	return fmt.Sprintf(`{"verb":%q,"user":{"username":%q},"objectRef":%s,"requestURI":"/x","responseStatus":{"code":%d,"message":%q}}`, verb, user, ref, code, message)
}

const refusedCreate = `configmaps is forbidden: User "system:serviceaccount:system:manager" cannot create resource "configmaps" in API group "" in the namespace "default"`

func TestAudit(t *testing.T) {
	const maps, status = `{"resource":"configmaps","namespace":"default","name":"x"}`, `{"apiGroup":"apps","resource":"deployments","subresource":"status","namespace":"default","name":"x"}`
	for name, test := range map[string]struct{ event, used, missing string }{
		"allowed":            {eventOf(auditedUser, "patch", status, 200, ""), "patch deployments.apps/status", ""},
		"not there":          {eventOf(auditedUser, "get", maps, 404, "not found"), "get configmaps", ""},
		"of another user":    {eventOf("admin", "get", maps, 200, ""), "", ""},
		"refused":            {eventOf(auditedUser, "create", maps, 403, refusedCreate), "", "create configmaps"},
		"a patch creates":    {eventOf(auditedUser, "patch", maps, 403, refusedCreate), "", "create configmaps"},
		"a patch created":    {eventOf(auditedUser, "patch", maps, 201, ""), "create configmaps, patch configmaps", ""},
		"an update created":  {eventOf(auditedUser, "update", maps, 201, ""), "create configmaps, update configmaps", ""},
		"an owner reference": {eventOf(auditedUser, "create", maps, 403, `configmaps "x" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`), "", " configmaps"},
		"a quota":            {eventOf(auditedUser, "create", maps, 403, `configmaps "x" is forbidden: exceeded quota: small`), "", ""},
		"a namespace that goes": {
			eventOf(auditedUser, "create", maps, 403, `configmaps "x" is forbidden: unable to create new content in namespace default because it is being terminated`), "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newAudit(auditedUser)
			must(t, err)
			a.settle = 0
			defer a.close() //nolint:errcheck // nothing depends on it
			post(t, a, test.event)
			used, refusals := a.seen()
			var got, missing []string
			for _, n := range used {
				got = append(got, n.String())
			}
			for _, r := range refusals {
				missing = append(missing, r.need.String())
			}
			if diff := cmp.Diff([]string{test.used, test.missing}, []string{strings.Join(got, ", "), strings.Join(missing, ", ")}); diff != "" {
				t.Error(diff)
			}
			if test.missing != "" {
				<-a.refused // the run ends
			}
		})
	}
}

// The audit hears only who knows its secret.
func TestAuditHasASecret(t *testing.T) {
	a, err := newAudit(auditedUser)
	must(t, err)
	defer a.close() //nolint:errcheck // nothing depends on it
	config, err := os.ReadFile(a.dir + "/" + webhookFile)
	must(t, err)
	url := regexp.MustCompile(`server: "(http://[^/]+)/`).FindStringSubmatch(string(config))[1]
	answer, err := http.Post(url+"/guess", "application/json", strings.NewReader(`{}`))
	must(t, err)
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("the answer is %s", answer.Status)
	}
}

const auditedRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
`

// The rule that is missing is named, once, as the files lack it.
func TestExplainRefusals(t *testing.T) {
	file := t.TempDir() + "/role.yaml"
	must(t, os.WriteFile(file, []byte(auditedRole), 0o600))
	policy, err := rbac.Read(file)
	must(t, err)
	who, err := policy.Account("system/manager")
	must(t, err)
	a := &account{policy: policy, user: who}
	owners := []permission.Need{{Group: "web.example.com", Resource: "websites/finalizers", Verb: "update"}}
	create := permission.Need{Resource: "configmaps", Verb: "create", Targets: []permission.Target{{Namespace: "default"}}}
	elsewhere := permission.Need{Resource: "configmaps", Verb: "create", Targets: []permission.Target{{Namespace: "other"}}}
	for name, test := range map[string]struct {
		refusals []refusal
		want     string
	}{
		"twice": {
			[]refusal{{create, refusedCreate}, {elsewhere, refusedCreate}, {create, refusedCreate}},
			"no rule allows system:serviceaccount:system:manager to create configmaps in namespace default\n" +
				"  add the rule: {apiGroups: [\"\"], resources: [configmaps], verbs: [create]}\n" +
				"  or the marker: // +kubebuilder:rbac:groups=\"\",resources=configmaps,verbs=create",
		},
		"an owner reference": {
			[]refusal{{permission.Need{Resource: "configmaps"}, "cannot set blockOwnerDeletion"}},
			"no rule allows system:serviceaccount:system:manager to update websites/finalizers.web.example.com in all namespaces\n" +
				"  add the rule: {apiGroups: [\"web.example.com\"], resources: [websites/finalizers], verbs: [update]}\n" +
				"  or the marker: // +kubebuilder:rbac:groups=web.example.com,resources=websites/finalizers,verbs=update",
		},
		"more than one has": {
			[]refusal{{permission.Need{Resource: "roles"}, "attempting to grant RBAC permissions not currently held"}},
			"a write to roles was refused: attempting to grant RBAC permissions not currently held",
		},
		"what the files allow": {
			[]refusal{{permission.Need{Resource: "configmaps", Verb: "get", Targets: []permission.Target{{Namespace: "a", Name: "x"}}}, "the answer"}}, "the answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, a.explain(test.refusals, owners)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
