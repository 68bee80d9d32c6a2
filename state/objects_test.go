// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var target = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "target", UID: "target-uid"}}

func withOwners(object *corev1.ConfigMap, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	object.OwnerReferences = owners
	return object
}

var (
	targetOwns = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "target", UID: "target-uid"}
	otherOwns  = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "target", UID: "uid-of-its-namesake"}
)

func names(items []corev1.ConfigMap) []string {
	var all []string
	for _, item := range items {
		all = append(all, item.Namespace+"/"+item.Name)
	}
	return all
}

func TestOwnedByComparesUIDs(t *testing.T) {
	items := []corev1.ConfigMap{
		*withOwners(configMap("ns", "ours", nil), targetOwns),
		*withOwners(configMap("ns", "theirs", nil), otherOwns),
		*configMap("ns", "without-an-owner", nil),
		*withOwners(configMap("ns", "shared", nil), otherOwns, targetOwns),
	}
	same(t, "owned", []string{"ns/ours", "ns/shared"}, names(OwnedBy(target, items)))
}

func TestCheckOwner(t *testing.T) {
	if got, err := CheckOwner[corev1.ConfigMap](target, nil); got != nil || err != nil {
		t.Errorf("CheckOwner of nothing = %v, %v", got, err)
	}
	ours := withOwners(configMap("ns", "ours", nil), targetOwns)
	if got, err := CheckOwner(target, ours); got != ours || err != nil {
		t.Errorf("CheckOwner of an owned object = %v, %v", got, err)
	}
	got, err := CheckOwner(target, withOwners(configMap("ns", "theirs", nil), otherOwns))
	notOwned := &NotOwnedError{}
	if got != nil || !errors.As(err, &notOwned) {
		t.Fatalf("CheckOwner of another's object = %v, %v", got, err)
	}
	want := "ns/theirs is not owned by ns/target but by ConfigMap target: delete it, or make the target an owner"
	same(t, "error", want, err.Error())
}

func controlling(owner metav1.OwnerReference) metav1.OwnerReference {
	yes := true
	owner.Controller = &yes
	return owner
}

func TestControlledByIsTheControllerAlone(t *testing.T) {
	items := []corev1.ConfigMap{
		*withOwners(configMap("ns", "ours", nil), controlling(targetOwns)),
		*withOwners(configMap("ns", "shared", nil), controlling(otherOwns), targetOwns),
		*withOwners(configMap("ns", "without-a-controller", nil), targetOwns),
		*withOwners(configMap("ns", "namesakes", nil), controlling(otherOwns)),
		*configMap("ns", "without-an-owner", nil),
	}
	same(t, "controlled", []string{"ns/ours"}, names(ControlledBy(target, items)))
}

func TestCheckController(t *testing.T) {
	if got, err := CheckController[corev1.ConfigMap](target, nil); got != nil || err != nil {
		t.Errorf("CheckController of nothing = %v, %v", got, err)
	}
	ours := withOwners(configMap("ns", "ours", nil), otherOwns, controlling(targetOwns))
	if got, err := CheckController(target, ours); got != ours || err != nil {
		t.Errorf("CheckController of a controlled object = %v, %v", got, err)
	}
	for want, owners := range map[string][]metav1.OwnerReference{
		"ns/x is not controlled by ns/target but by ConfigMap target: delete it":                                {controlling(otherOwns), targetOwns},
		"ns/x is not controlled by ns/target: it has no controller, its owners are ConfigMap target: delete it": {targetOwns},
		"ns/x is not controlled by ns/target: it has no owner: delete it":                                       nil,
	} {
		got, err := CheckController(target, withOwners(configMap("ns", "x", nil), owners...))
		notOwned := &NotOwnedError{}
		if got != nil || !errors.As(err, &notOwned) {
			t.Errorf("CheckController of another's object = %v, %v", got, err)
		}
		wantError(t, err, want)
	}
}

func TestOnly(t *testing.T) {
	if got, err := Only[corev1.ConfigMap](nil); got != nil || err != nil {
		t.Errorf("Only of none = %v, %v", got, err)
	}
	one := []corev1.ConfigMap{*configMap("ns", "a", nil)}
	if got, err := Only(one); got != &one[0] || err != nil {
		t.Errorf("Only of one = %v, %v", got, err)
	}
	got, err := Only([]corev1.ConfigMap{*configMap("ns", "b", nil), *configMap("", "c", nil), *configMap("ns", "a", nil)})
	several := &SeveralError{}
	if got != nil || !errors.As(err, &several) {
		t.Fatalf("Only of three = %v, %v", got, err)
	}
	want := []types.NamespacedName{{Name: "c"}, {Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}
	same(t, "found objects", want, several.Found)
	if want := "at most one object may match, but 3 do: c, ns/a, ns/b"; err.Error() != want {
		t.Errorf("error: %v\nwant:  %s", err, want)
	}
}

func TestSortedLeavesItsArgumentAlone(t *testing.T) {
	items := []corev1.ConfigMap{*configMap("b", "a", nil), *configMap("a", "b", nil), *configMap("a", "a", nil)}
	sorted := Sorted(items)
	same(t, "sorted", []string{"a/a", "a/b", "b/a"}, names(sorted))
	same(t, "the argument", []string{"b/a", "a/b", "a/a"}, names(items))
}

func TestNamed(t *testing.T) {
	items := []corev1.ConfigMap{*configMap("b", "x", nil), *configMap("a", "y", nil), *configMap("a", "x", nil)}
	same(t, "named", []string{"b/x", "a/x"}, names(Named("x", items)))
}

func TestCopiesAreDeep(t *testing.T) {
	items := []corev1.ConfigMap{*configMap("ns", "a", map[string]string{"k": "v"})}
	copies := Copies(items)
	copies[0].Labels["k"] = "changed"
	same(t, "label of the original", "v", items[0].Labels["k"])
	if Copies[corev1.ConfigMap](nil) != nil {
		t.Error("the copy of nil is not nil")
	}
}

// A sparse is a kind with the one method for copies that runtime.Object asks for.
type sparse struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (s *sparse) DeepCopyObject() runtime.Object {
	return &sparse{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy()}
}

func TestCopyOfAKindWithDeepCopyObjectAlone(t *testing.T) {
	obj := &sparse{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}}}
	copied, copies := Copy(obj), Copies([]sparse{*obj})
	copied.Labels["k"], copies[0].Labels["k"] = "changed", "changed"
	if obj.Labels["k"] != "v" || copied.Name != "a" || copies[0].Name != "a" {
		t.Errorf("the original is %v, the copies are %v and %v", obj, copied, copies)
	}
	if Copy[sparse](nil) != nil {
		t.Error("the copy of nil is not nil")
	}
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t rapid.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
