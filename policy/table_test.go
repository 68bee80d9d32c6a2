// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
)

// rules are what may be done, by what was found for the three parts. The first row that matches
// holds. They are written down from the guide, docs/external-options.md, and share nothing with the code.
const rules = `
reconcile         reclaim  allow                  may                                           deletion
bad               any      any                    observe                                       blocked
any               bad      any                    observe                                       blocked
any               any      bad                    observe                                       blocked
skip              any      any                    observe                                       detach
any               any      observe                observe                                       detach
any               any      observe,create,update  observe,create,update                         detach
detach-on-delete  any      observe,delete         observe                                       detach
manage            retain   observe,delete         observe                                       detach
manage            delete   observe,delete         observe,delete                                delete
detach-on-delete  any      *                      observe,create,update,late-initialize         detach
manage            retain   *                      observe,create,update,late-initialize         detach
manage            delete   *                      observe,create,update,delete,late-initialize  delete
`

// absent stands for no annotation, and no default.
const absent = "absent"

// What the columns of the table are made of. The last of each is bad.
var (
	reconciles = []string{absent, "manage", "skip", "detach-on-delete", "mange"}
	reclaims   = []string{absent, "delete", "retain", "keep"}
	allows     = []string{absent, "*", "observe", "observe,create,update", "observe,delete", "create"}
)

// A combination is what the object, its namespace and the operator say of one part.
type combination [3]string

func combinations(object, namespace, operator []string) (all []combination) {
	for _, o := range object {
		for _, n := range namespace {
			for _, d := range operator {
				all = append(all, combination{o, n, d})
			}
		}
	}
	return all
}

// first returns the first that is present, and whose it is.
func (c combination) first(without string) (value, whose string) {
	for i, whose := range []string{"the object", "namespace prod", "the operator"} {
		if c[i] != absent {
			return c[i], whose
		}
	}
	return without, "the operator"
}

// A rule is a row.
type rule struct {
	reconcile, reclaim, allow, may, deletion string
	used                                     bool
}

func parseRules(t *testing.T) (all []*rule) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(rules), "\n")[1:] {
		f := strings.Fields(line)
		all = append(all, &rule{f[0], f[1], f[2], f[3], f[4], false})
	}
	return all
}

func (r *rule) matches(reconcile, reclaim, allow string) bool {
	is := func(want, got, bad string) bool { return want == "any" || want == got || want == "bad" && got == bad }
	return is(r.reconcile, reconcile, "mange") && is(r.reclaim, reclaim, "keep") && is(r.allow, allow, "create")
}

// Each combination of what object, namespace and operator say allows each verb, and deletes, as the
// rules say, and names where the parts were found.
func TestTable(t *testing.T) {
	rings.Test(t, "takes seconds")
	all := parseRules(t)
	n := 0
	for _, reconcile := range combinations(reconciles, reconciles, reconciles) {
		for _, reclaim := range combinations(reclaims, reclaims, reclaims) {
			for _, allow := range combinations(allows, []string{absent, "observe"}, []string{absent}) {
				n++
				check(t, all, reconcile, reclaim, allow)
			}
		}
	}
	for _, allow := range combinations(allows, allows, allows[:5]) { // a default is a set, and can't be a word that is none
		n++
		check(t, all, combination{absent, absent, absent}, combination{absent, absent, absent}, allow)
	}
	if want := 125*64*12 + 6*6*5; n != want {
		t.Errorf("%d combinations, want %d", n, want)
	}
	for _, r := range all {
		if !r.used {
			t.Errorf("no combination matches %+v", *r)
		}
	}
}

func check(t *testing.T, all []*rule, reconcile, reclaim, allow combination) {
	t.Helper()
	a, whoseReconcile := reconcile.first("manage")
	b, whoseReclaim := reclaim.first("delete")
	c, whoseAllow := allow.first("*")
	var want *rule
	for _, r := range all {
		if want == nil && r.matches(a, b, c) {
			want = r
		}
	}
	want.used = true
	object := annotated("prod", "b", reconcile[0], reclaim[0], allow[0])
	namespace := annotated("", "prod", reconcile[1], reclaim[1], allow[1])
	defaults := policy.Defaults{Reconcile: policy.Reconcile(unless(reconcile[2])), Reclaim: policy.Reclaim(unless(reclaim[2]))}
	if allow[2] != absent {
		defaults.Allow, _ = policy.ParseVerbs(allow[2])
	}
	d := policy.Resolve(object, namespace, defaults)
	for i, verb := range []policy.Verbs{policy.VerbObserve, policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete, policy.VerbLateInitialize} {
		name := []string{"observe", "create", "update", "delete", "late-initialize"}[i]
		may := strings.Contains(","+want.may+",", ","+name+",")
		if d.Allows(verb) != may || (d.Refusal(verb) == "") != may {
			t.Fatalf("reconcile %v, reclaim %v, allow %v: %s is allowed: %v, want %v by %+v", reconcile, reclaim, allow, name, d.Allows(verb), may, *want)
		}
	}
	if got := d.OnDeletion().String(); got != want.deletion {
		t.Fatalf("reconcile %v, reclaim %v, allow %v: a deletion is %q, want %q", reconcile, reclaim, allow, got, want.deletion)
	}
	if (d.Err() != nil) != (want.deletion == "blocked") {
		t.Fatalf("reconcile %v, reclaim %v, allow %v: error %v", reconcile, reclaim, allow, d.Err())
	}
	if got, want := d.Sources(), [3]string{whoseReconcile, whoseReclaim, whoseAllow}; got != want {
		t.Fatalf("reconcile %v, reclaim %v, allow %v: found at %q, want %q", reconcile, reclaim, allow, got, want)
	}
}

func unless(value string) string {
	if value == absent {
		return ""
	}
	return value
}

// annotated returns an object that says these things.
func annotated(namespace, name, reconcile, reclaim, allow string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for key, value := range map[string]string{"reconcile": reconcile, "reclaim": reclaim, "allow": allow} {
		if value != absent {
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "policy.ctrlkit.dev/"+key, value)
		}
	}
	return obj
}
