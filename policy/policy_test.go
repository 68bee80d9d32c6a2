// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

func object(annotations ...string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "b"}}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "policy.ctrlkit.dev/"+annotations[i], annotations[i+1])
	}
	return obj
}

func namespace(annotations ...string) *metav1.PartialObjectMetadata {
	obj := object(annotations...)
	obj.Namespace, obj.Name = "", "prod"
	return obj
}

// misspelled says that there is no annotation of this name.
func misspelled(name string) string {
	return "annotation policy.ctrlkit.dev/" + name + ` of the object is "": there is no such annotation: use "policy.ctrlkit.dev/reconcile", ` +
		`"policy.ctrlkit.dev/reclaim", "policy.ctrlkit.dev/allow" or "policy.ctrlkit.dev/reconcile-now"`
}

// What people read names the annotation, who has it, its value, what is allowed, and the remedy.
func TestMessages(t *testing.T) {
	const (
		closed   = ": nothing is created, updated or deleted, and a deletion waits"
		correct  = "; correct the annotation, or remove it"
		detached = ": the deletion of the object deletes nothing else"
		long     = "manage or not to manage, that is the question: whether 'tis nobler to suffer"
	)
	ignored := policy.Defaults{IgnoreNamespaces: true}
	none := (*metav1.PartialObjectMetadata)(nil)
	tests := []struct {
		name              string
		object, namespace *metav1.PartialObjectMetadata
		defaults          policy.Defaults
		reason, message   string
	}{
		{"nothing", object(), namespace(), policy.Defaults{}, "Managed", ""},
		{"supported", object("allow", "observe, create"), namespace(), policy.Defaults{Supported: []policy.Verbs{policy.AllVerbs, policy.VerbObserve | policy.VerbCreate}}, "Restricted",
			`annotation policy.ctrlkit.dev/allow of the object is "observe,create": not allowed: update, delete, late-initialize; the deletion of the object deletes nothing else`},
		{"not supported", object("allow", "observe"), namespace(), policy.Defaults{Supported: []policy.Verbs{policy.AllVerbs, policy.VerbObserve | policy.VerbCreate}}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/allow of the object is "observe": the operator does not support this set: use "*" or "observe,create"` + closed + correct},
		{"as people type", object("reconcile", " Manage "), namespace("reconcile", "skip"), policy.Defaults{}, "Managed", ""},
		{
			"skip", object(), namespace("reconcile", "Skip"), policy.Defaults{}, "Skipped",
			`annotation policy.ctrlkit.dev/reconcile of namespace prod is "skip": the status is refreshed, and nothing is created, updated or deleted`,
		},
		{
			"skip by default", object(), namespace(), policy.Defaults{Reconcile: policy.ReconcileSkip}, "Skipped",
			`the operator's default for policy.ctrlkit.dev/reconcile is "skip": the status is refreshed, and nothing is created, updated or deleted`,
		},
		{"detached", object("reconcile", "detach-on-delete"), namespace(), policy.Defaults{}, "DetachOnDelete", `annotation policy.ctrlkit.dev/reconcile of the object is "detach-on-delete"` + detached},
		{
			"detached and deleted", object("reclaim", "delete"), namespace("reconcile", "detach-on-delete"), policy.Defaults{}, "DetachOnDelete",
			`annotation policy.ctrlkit.dev/reconcile of namespace prod is "detach-on-delete"` + detached + `, although annotation policy.ctrlkit.dev/reclaim of the object is "delete"`,
		},
		{"retained", object("reclaim", "retain"), namespace(), policy.Defaults{}, "DetachOnDelete", `annotation policy.ctrlkit.dev/reclaim of the object is "retain"` + detached},
		{
			"restricted", object("allow", "observe,update,delete"), namespace("reclaim", "retain"), policy.Defaults{}, "Restricted",
			`annotation policy.ctrlkit.dev/allow of the object is "observe,update,delete": not allowed: create, late-initialize; annotation policy.ctrlkit.dev/reclaim of namespace prod is "retain"` + detached,
		},
		{
			"not deleted", object("allow", "observe, create"), namespace(), policy.Defaults{}, "Restricted",
			`annotation policy.ctrlkit.dev/allow of the object is "observe,create": not allowed: update, delete, late-initialize; the deletion of the object deletes nothing else`,
		},
		{
			"unknown", object("reconcile", "mange"), namespace("reconcile", "manage"), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/reconcile of the object is "mange": use "manage", "skip" or "detach-on-delete" (did you mean "manage"?)` + closed + correct,
		},
		{
			"empty", object(), namespace("reclaim", ""), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/reclaim of namespace prod is "": use "delete" or "retain"` + closed + correct,
		},
		{
			"long", object("reconcile", long), namespace(), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/reconcile of the object is "` + long[:60] + `...": use "manage", "skip" or "detach-on-delete"` + closed + correct,
		},
		{
			"an unknown verb", object("allow", "observe,creat"), namespace(), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/allow of the object is "observe,creat": there is no verb "creat" (did you mean "create"?): ` +
				`use "*", or some of "observe", "create", "update", "delete" and "late-initialize", separated by commas` + closed + correct,
		},
		{
			"contradictory", object("allow", "create"), namespace(), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/allow of the object is "create": what is not observed can't be created, changed or deleted: add "observe"` + closed + correct,
		},
		{
			"a misspelled annotation", object("reconcil", "skip"), namespace(), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/reconcil of the object is "skip": there is no such annotation (did you mean "reconcile"?): use "policy.ctrlkit.dev/reconcile", ` +
				`"policy.ctrlkit.dev/reclaim", "policy.ctrlkit.dev/allow" or "policy.ctrlkit.dev/reconcile-now"` + closed + correct,
		},
		{
			"two", object("reconcile", "x"), namespace("reclaim", "y"), policy.Defaults{}, "InvalidPolicy",
			`annotation policy.ctrlkit.dev/reconcile of the object is "x": use "manage", "skip" or "detach-on-delete"; annotation policy.ctrlkit.dev/reclaim of namespace prod is "y": use "delete" or "retain"` + closed + correct,
		},
		{
			"the operator", object(), namespace(), policy.Defaults{Reconcile: "mange"}, "InvalidPolicy",
			`the operator's default for policy.ctrlkit.dev/reconcile is "mange": use "manage", "skip" or "detach-on-delete" (did you mean "manage"?)` + closed +
				"; correct the configuration of the operator, or give the object the annotation",
		},
		{"an unread namespace", object(), none, policy.Defaults{}, "NamespaceUnknown", "namespace prod was not read: its annotations are not known" + closed},
		{"another namespace", object(), object("reconcile", "manage"), policy.Defaults{}, "NamespaceUnknown", "namespace prod was not read: its annotations are not known" + closed},
		{"a cluster-scoped object", namespace("reconcile", "manage"), none, policy.Defaults{}, "Managed", ""},
		{
			"several misspelled annotations", object("d", "", "b", "", "a", "", "c", ""), namespace(), policy.Defaults{}, "InvalidPolicy",
			misspelled("a") + "; " + misspelled("b") + "; " + misspelled("c") + "; " + misspelled("d") + closed + correct,
		},
		{"namespaces ignored", object(), namespace("reconcile", "skip"), ignored, "Managed", ""},
		{"namespaces ignored, and not read", object(), none, ignored, "Managed", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := policy.Resolve(test.object, test.namespace, test.defaults)
			if diff := cmp.Diff([]string{test.reason, test.message}, []string{d.Reason(), d.Message()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if closed := test.reason == "InvalidPolicy" || test.reason == "NamespaceUnknown"; closed != (d.OnDeletion() == policy.DeletionBlocked) {
				t.Errorf("a deletion is %s", d.OnDeletion())
			}
		})
	}
}

// An error can be tested for a namespace that is unknown, also one of several.
func TestErr(t *testing.T) {
	err := policy.Resolve(object("allow", "x"), nil, policy.Defaults{}).Err()
	if err == nil || !strings.Contains(err.Error(), `annotation policy.ctrlkit.dev/allow of the object is "x"`) {
		t.Errorf("error %v", err)
	}
	if !errors.Is(err, policy.ErrNamespaceUnknown) {
		t.Errorf("error %v does not say that the namespace is unknown", err)
	}
	if err := policy.Resolve(object(), namespace(), policy.Defaults{}).Err(); err != nil {
		t.Errorf("error %v", err)
	}
}

// A decision that was not resolved allows nothing.
func TestZeroDecision(t *testing.T) {
	var d policy.Decision
	if d.Allows(policy.VerbObserve) || d.OnDeletion() != policy.DeletionBlocked || d.Reason() != "InvalidPolicy" || d.Message() == "" {
		t.Errorf("%+v allows to observe, or deletes: %s", d, d.OnDeletion())
	}
}

func TestAllowsSeveral(t *testing.T) {
	d := policy.Resolve(object("allow", "observe,create"), namespace(), policy.Defaults{})
	for verbs, want := range map[policy.Verbs]bool{
		0: false, policy.VerbCreate: true, policy.VerbObserve | policy.VerbCreate: true, policy.VerbCreate | policy.VerbUpdate: false, policy.AllVerbs: false, 1 << 7: false, 1<<7 | policy.VerbCreate: false,
	} {
		if got := d.Allows(verbs); got != want {
			t.Errorf("%b is allowed: %v, want %v", verbs, got, want)
		}
	}
}

func TestDefaultsCheck(t *testing.T) {
	for _, test := range []struct {
		defaults policy.Defaults
		want     string
	}{
		{policy.Defaults{}, ""},
		{policy.Defaults{Reconcile: "Skip", Reclaim: policy.ReclaimRetain, Allow: policy.VerbObserve}, ""},
		{policy.Defaults{Reconcile: "skp"}, `the operator's default for policy.ctrlkit.dev/reconcile is "skp"`},
		{policy.Defaults{Reclaim: "keep"}, `the operator's default for policy.ctrlkit.dev/reclaim is "keep"`},
		{policy.Defaults{Allow: policy.VerbCreate}, `the operator's default for policy.ctrlkit.dev/allow is "create"`},
		{policy.Defaults{Allow: 1 << 7}, `the operator's default for policy.ctrlkit.dev/allow is "none"`},
	} {
		err := test.defaults.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q", test.defaults, err, test.want)
		}
	}
}

// The words are read back as they are printed, whatever their case.
func TestParse(t *testing.T) {
	for v := policy.Verbs(0); v <= policy.AllVerbs; v++ {
		got, err := policy.ParseVerbs(v.String())
		if has := v.Has(policy.VerbObserve); has != (err == nil) || has && got != v {
			t.Errorf("%s: got %s and error %v", v, got, err)
		}
	}
	for text, want := range map[string]policy.Verbs{
		" Observe , DELETE ": policy.VerbObserve | policy.VerbDelete, "*": policy.AllVerbs, "observe,*": policy.AllVerbs,
		"observe,observe": policy.VerbObserve, "": 0, "observe,": 0, "observe delete": 0, "none": 0, "* observe": 0,
	} {
		if got, err := policy.ParseVerbs(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: got %s and error %v, want %s", text, got, err, want)
		}
	}
	_, err := policy.ParseReconcile("skipp")
	if want := `"skipp" is invalid: use "manage", "skip" or "detach-on-delete" (did you mean "skip"?)`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Parsers read any text, and return either a word that they print or an error that a condition can
// have.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "manage", " Skip", "observe,create", "*", "LateInitialize", "observe,,", strings.Repeat("ä", 1000), "\xff,\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		verbs, verbsErr := policy.ParseVerbs(text)
		if again, err := policy.ParseVerbs(verbs.String()); verbsErr == nil && (err != nil || again != verbs || !verbs.Has(policy.VerbObserve)) {
			t.Errorf("%q: %s is not read back", text, verbs)
		}
		reconcile, reconcileErr := policy.ParseReconcile(text)
		if again, err := policy.ParseReconcile(string(reconcile)); reconcileErr == nil && (err != nil || again != reconcile || !strings.EqualFold(strings.TrimSpace(text), string(reconcile))) {
			t.Errorf("%q: %s is not read back", text, reconcile)
		}
		reclaim, reclaimErr := policy.ParseReclaim(text)
		if reclaimErr == nil && !strings.EqualFold(strings.TrimSpace(text), string(reclaim)) {
			t.Errorf("%q is read as %s", text, reclaim)
		}
		for _, err := range []error{verbsErr, reconcileErr, reclaimErr} {
			if err != nil && (len(err.Error()) > 1500 || strings.ContainsAny(err.Error(), "\n\x00")) {
				t.Errorf("%q: %v", text, err)
			}
		}
		d := policy.Resolve(object("reconcile", text, "reclaim", text, "allow", text), namespace(), policy.Defaults{})
		if d.OnDeletion() != policy.DeletionBlocked || d.Allows(policy.VerbCreate) || len(d.Message()) > 5000 {
			t.Errorf("%q is not refused", text) // no text is good for all three
		}
	})
}
