// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A message is said once, also at the end of another text; names and short texts are said again.
func TestSaidOnce(t *testing.T) {
	s := said{"Quota: the system allows 10 databases", "Waiting: waits for Secret shop/password"}
	for _, test := range [][2]string{
		{"Quota: the system allows 10 databases", above},
		{"fails, for 3s: the system allows 10 databases", "fails, for 3s: as above"},
		{"waits, for 3s: Secret shop/password", "waits, for 3s: Secret shop/password"},
		{"fails, for 3s: it has no quota", "fails, for 3s: it has no quota"},
		{"fails, for 4s: it has no quota.", "fails, for 4s: as above"},
		{"Ready", "Ready"}, {"Ready", above},
	} {
		if got := s.once(test[0]); got != test[1] {
			t.Errorf("%q is said as %q, want %q", test[0], got, test[1])
		}
	}
}

const refused = "the system refuses another database in this region"

// failing returns a world with an object whose message is in its conditions, in its step, and in what
// the step has returned, and with a child of another operator.
func failing(t *testing.T) *world {
	w := newWorld(t)
	w.put("a", "Quota", refused)
	obj := w.objects[types.NamespacedName{Namespace: "shop", Name: "a"}]
	condition := map[string]any{"type": "Stalled", "status": "True", "reason": "Quota", "message": refused, "lastTransitionTime": "2026-01-01T00:00:00Z"}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	_ = unstructured.SetNestedSlice(obj.Object, append(conditions, condition), "status", "conditions")
	child := func(kind, name string, state journal.ChildState, text, remedy string) journal.Child {
		return journal.Child{Object: journal.Object{Group: "apps", Kind: kind, Namespace: "shop", Name: name}, State: state, Text: text, Reason: "OwnedByAnother", Remedy: remedy}
	}
	w.reconcile(database("a"), journal.Cause{Kind: journal.CauseStart}, journal.ResultFailed,
		journal.StepEnded{Step: "Create", Phase: journal.PhaseDo, Outcome: journal.Outcome{Err: errors.New(refused), Class: "Quota", Remedy: "ask for more"}},
		journal.Kept{Step: "Parts", Children: []journal.Child{
			child("ConfigMap", "settings", journal.ChildFailed, "it exists and is not ours", "allow it with the annotation apply.ctrlkit.dev/policy: adopt"),
			child("Deployment", "web", journal.ChildReady, "", ""),
		}},
		journal.StepEnded{Step: "Parts", Phase: journal.PhaseDo, Outcome: journal.Outcome{Err: errors.New(refused), Class: "Quota"}})
	return w
}

// The page of an object begins with what is wrong, says it once, has the command that a remedy names,
// and leads to the objects of its sets.
func TestHeadline(t *testing.T) {
	w := failing(t)
	page := w.get(ofA)
	_, content, _ := strings.Cut(page, "<main")
	content, _, _ = strings.Cut(content, `id="strip"`) // what follows is history
	_, content, _ = strings.Cut(content, "</h1>")      // its heading is read out with the message
	if n := strings.Count(content, refused); n != 1 {
		t.Errorf("the message is %d times in the page:\n%s", n, content)
	}
	for _, want := range []string{
		`<p class="headline">Quota: ` + refused, "kubectl annotate configmap settings -n shop apply.ctrlkit.dev/policy=adopt</pre><button", "</b> stalled",
		`<a href="object?group=apps&amp;kind=Deployment&amp;name=web&amp;namespace=shop">Deployment web</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// An object that does not exist has no state, and its page leads back. A kind that is not followed is
// said to be unknown, for those who can show it.
func TestMissing(t *testing.T) {
	w := newWorld(t)
	w.put("a", "", "")
	page := w.get("object?group=example.com&kind=Database&namespace=shop&name=nope")
	if !strings.Contains(page, "does not exist") || !strings.Contains(page, `href="objects?kind=Database"`) || strings.Contains(page, `class="state`) {
		t.Errorf("the page of a missing object:\n%s", page)
	}
	for kind, want := range map[string]string{"Database": "", "Deployment": "true"} {
		_, header := w.answer("object?group=example.com&kind=" + kind + "&namespace=shop&name=a")
		if got := header.Get(UnknownHeader); got != want {
			t.Errorf("%s: %s is %q", kind, UnknownHeader, got)
		}
	}
}

// A filter can be cleared, a kind that there is not is shown as chosen, and a group of one leads to its
// object.
func TestWayOut(t *testing.T) {
	w := failing(t)
	page := w.get("objects?kind=Nope")
	for _, want := range []string{`<option selected>Nope</option>`, `0 of 1 objects · <a href="objects">clear the filter</a>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if overview := w.get(""); !strings.Contains(overview, `<a href="object?group=example.com&amp;kind=Database&amp;name=a&amp;namespace=shop"><b aria-hidden="true">■</b> Database shop/a</a>`) {
		t.Errorf("a group of one does not lead to its object:\n%s", overview)
	}
	if icon, header := w.answer("favicon.svg"); header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(icon, "<svg") {
		t.Errorf("the icon is %v %s", header, icon)
	}
}

// The children of an object go on to what they own, with the warnings about what is not ready, and
// without ReplicaSets of earlier revisions.
func TestChildrenOfChildren(t *testing.T) {
	at := func(kind, name string, status map[string]any) found {
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": status}}
		obj.SetName(name)
		obj.SetUID(types.UID(name))
		return found{obj, schema.GroupVersionKind{Group: map[string]string{"Pod": ""}[kind], Version: "v1", Kind: kind}}
	}
	event := func(of, kind string) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(of)}, Type: kind, Reason: "BackOff", Message: of, LastTimestamp: metav1.Now()}
	}
	all := childrenIn(map[types.UID][]found{
		"owner": {at("Deployment", "web", nil)}, "web": {at("ReplicaSet", "web-1", nil)},
		"web-1": {at("Pod", "web-1-a", map[string]any{"phase": "Pending"})}, "web-1-a": {at("Pod", "endless", nil)}, "endless": {at("Pod", "web-1-a", nil)},
	}, []corev1.Event{event("web-1-a", "Warning"), event("web-1-a", "Normal"), event("other", "Warning")}, "owner", mostChildren)
	pod := all[0].Within[0].Within[0]
	if pod.Object.Name != "web-1-a" || len(pod.Events) != 1 || !pod.Events[0].Warning || len(pod.Within) != 1 || len(pod.Within[0].Within) != 0 {
		t.Errorf("the tree is %+v", all)
	}
	old := at("ReplicaSet", "old", map[string]any{"replicas": int64(0)})
	young := at("ReplicaSet", "young", map[string]any{"replicas": int64(1)})
	if !isRetired(old.object) || isRetired(young.object) {
		t.Error("what is retired is taken for what is not")
	}
}
