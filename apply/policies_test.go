// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/step"
)

// An object that exists and is of no set is refused, with its owner and a remedy; Adopt takes over
// what has no owner.
func TestForeignObjects(t *testing.T) {
	yes := true
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "other", Controller: &yes}
	for _, tt := range []struct {
		name    string
		change  func(*corev1.ConfigMap)
		policy  apply.Policy
		want    string // of the condition
		content string
	}{
		{"without an owner", func(*corev1.ConfigMap) {}, apply.NoWait, "ConfigMap default/a exists, has no owner and is not ours", "x=theirs"},
		{"adopted", func(*corev1.ConfigMap) {}, apply.Adopt, "True AllReady", "k=ours,x=theirs"},
		{"adopted by annotation", func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{apply.PolicyAnnotation: "adopt"} }, apply.NoWait, "True AllReady", "k=ours,x=theirs"},
		{"given away as it is", func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{apply.PolicyAnnotation: "adopt, create-only"}
		}, apply.NoWait, "True AllReady", "x=theirs"},
		{"controlled", func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{other} }, apply.Adopt, "is controlled by Pod other", "x=theirs"},
		{"of another set", func(cm *corev1.ConfigMap) {
			cm.Labels = map[string]string{apply.SetLabel: "another"}
			cm.Annotations = map[string]string{apply.OwnerAnnotation: "Shop.test.example.com elsewhere/shop"}
		}, apply.Adopt, "belongs to another set, of Shop.test.example.com elsewhere/shop and is not ours", "x=theirs"},
		{"with an unknown policy", func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{apply.PolicyAnnotation: "adpot"} }, apply.Adopt, `has "adpot"`, "x=theirs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a", "k", "ours"), tt.policy) }, apply.Owns(&corev1.ConfigMap{}))
			o.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
			pod := &corev1.Pod{}
			o.get(pod, "other")
			other.UID = pod.UID
			cm := newConfigMap("a", "x", "theirs")
			tt.change(cm)
			for i := range cm.OwnerReferences {
				cm.OwnerReferences[i].UID = pod.UID
			}
			o.create(cm)
			err := o.settle(shop)
			if got := o.condition(shop); !strings.Contains(got, tt.want) {
				t.Errorf("condition %q with error %v, want %q", got, err, tt.want)
			}
			if got := o.configMap("a"); got != tt.content {
				t.Errorf("data %s, want %s", got, tt.content)
			}
		})
	}
}

// What others have set in an adopted object stays, unless the set migrates it.
func TestAdoptAndMigrate(t *testing.T) {
	for _, tt := range []struct {
		option apply.SetOption
		want   string
	}{
		{apply.PruneLimit(20), "k=ours,x=theirs"},
		{apply.Migrate("test"), "k=ours"},
	} {
		o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a", "k", "ours"), apply.Adopt) },
			apply.Owns(&corev1.ConfigMap{}), tt.option)
		o.create(newConfigMap("a", "x", "theirs"))
		o.mustSettle(shop)
		if got := o.configMap("a"); got != tt.want {
			t.Errorf("data %s, want %s", got, tt.want)
		}
	}
}

// What is wrong with several objects is on one line, each with its remedy, the first three of them.
func TestSeveralForeignObjects(t *testing.T) {
	names := []string{"a", "b"}
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		for _, name := range names {
			set.Add(newConfigMap(name))
		}
	}, apply.Owns(&corev1.ConfigMap{}))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		cm := newConfigMap(name)
		if name == "b" {
			cm.Annotations = map[string]string{apply.PolicyAnnotation: "adpot"}
		}
		o.create(cm)
	}
	err := o.settle(shop)
	want := "False OwnedByAnother: ConfigMap default/a exists, has no owner and is not ours: delete it, or allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt; " +
		`ConfigMap default/b: annotation apply.ctrlkit.dev/policy has "adpot": use "create-only", "replace", "replace-orphaning", "replace-losing-data", "keep" or "adopt", separated by commas: correct the annotation`
	if got := o.condition(shop); got != want || strings.Contains(err.Error(), "\n") {
		t.Errorf("condition %q, want %q, with error %v", got, want, err)
	}
	names = []string{"e", "d", "c", "a"}
	o.settle(shop)
	want = "False OwnedByAnother: ConfigMap default/e exists, has no owner and is not ours; ConfigMap default/d exists, has no owner and is not ours; " +
		"ConfigMap default/c exists, has no owner and is not ours; and 1 more (for each: delete it, or allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt)"
	if got := o.condition(shop); got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
}

// Replace deletes what can't be changed, and never what would be refused as a new object, too.
func TestReplace(t *testing.T) {
	image := "busybox:1"
	policies := []any{apply.NoWait}
	build := func(_ *Shop, set *apply.Set) { set.Add(append([]any{newJob("j", image)}, policies...)...) }
	o, shop := testOperator(t, build, apply.Owns(&batchv1.Job{}))
	o.mustSettle(shop)
	first := newJob("j", "")
	o.get(first, "j")

	image = "busybox:2"
	if err := o.settle(shop); err == nil || !strings.Contains(o.condition(shop), "ImmutableField") || !strings.Contains(err.Error(), "spec.template") {
		t.Errorf("without Replace: %v, %s", err, o.condition(shop))
	}
	if got := o.condition(shop); len(got) > 500 || !strings.Contains(got, "...: field is immutable") || !strings.HasSuffix(got, "to allow that for good") {
		t.Errorf("the condition is too long, or has no remedy: %s", got)
	}
	policies = append(policies, apply.Replace)
	image = "in valid\n"
	o.settle(shop)
	second := newJob("j", "")
	if !o.get(second, "j") || second.UID != first.UID || second.DeletionTimestamp != nil {
		if second.Spec.Template.Spec.Containers[0].Image != image {
			t.Errorf("an invalid Job has deleted the valid one")
		}
	}
	policies = []any{apply.NoWait, apply.Replace}
	image = "busybox:3"
	o.mustSettle(shop)
	third := newJob("j", "")
	if !o.get(third, "j") || third.UID == first.UID || third.Spec.Template.Spec.Containers[0].Image != image {
		t.Errorf("not replaced: %v", third.Spec.Template.Spec.Containers)
	}
}

// What is refused for another reason than that the object exists is not deleted.
func TestReplaceKeepsWhatInvalidContentWouldReplace(t *testing.T) {
	port := int32(80)
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		service := newService("s")
		service.Spec.Ports[0].Port = port
		set.Add(service, apply.Replace)
	}, apply.Owns(&corev1.Service{}))
	o.mustSettle(shop)
	port = 70000
	if err := o.settle(shop); err == nil {
		t.Error("the Service is valid")
	}
	if !o.get(&corev1.Service{}, "s") {
		t.Error("the Service is deleted")
	}
	if got := o.takeWrites(); len(got) != 0 {
		t.Errorf("writes %v", got)
	}
}

// A list with two items of one key is refused in these words, and not tried for ever.
func TestDuplicatesAreNamed(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		web := newDeployment("web", 1)
		web.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		set.Add(web)
	}, apply.Owns(&appsv1.Deployment{}))
	err := o.settle(shop)
	if got := o.condition(shop); !strings.Contains(got, "WrongSet") || !strings.Contains(got, `.env has two items with name="A": leave one of the two out`) {
		t.Errorf("condition %s with error %v", got, err)
	}
}

// A role of a binding can't be changed either, though the API server says it in other words.
func TestImmutableFieldsAreNamed(t *testing.T) {
	role := "a"
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}})
	}, apply.Owns(&rbacv1.RoleBinding{}))
	o.mustSettle(shop)
	role = "b"
	err := o.settle(shop)
	if got := o.condition(shop); !strings.Contains(got, "ImmutableField") || !strings.Contains(got, "roleRef") {
		t.Errorf("condition %s with error %v", got, err)
	}
}

// Fields of others stay theirs, are taken, or end the work, as chosen.
func TestFieldConflicts(t *testing.T) {
	for _, tt := range []struct {
		policies []any
		want     int32
		err      string
	}{
		{nil, 2, ""},
		{[]any{apply.Theirs}, 5, ""},
		{[]any{apply.StopOnConflict}, 5, `Deployment default/web: others have set spec.replicas (conflict with "third-party"`},
	} {
		t.Run(fmt.Sprint(tt.policies), func(t *testing.T) {
			image := "nginx:1"
			o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
				web := newDeployment("web", 2)
				web.Spec.Template.Spec.Containers[0].Image = image
				set.Add(append([]any{web, apply.NoWait}, tt.policies...)...)
			}, apply.Owns(&appsv1.Deployment{}))
			o.mustSettle(shop)
			o.patch(newDeployment("web", 2), `{"spec":{"replicas":5}}`)
			for range 2 {
				err := o.settle(shop)
				web := &appsv1.Deployment{}
				o.get(web, "web")
				if got := *web.Spec.Replicas; got != tt.want {
					t.Errorf("%d replicas, want %d", got, tt.want)
				}
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if got := web.Spec.Template.Spec.Containers[0].Image; tt.err == "" && got != image {
					t.Errorf("image %s, want %s: the rest is ours", got, image)
				}
				image = "nginx:2"
			}
		})
	}
}

// Two objects of a name are a mistake, and so is one without a name: the error has the lines.
func TestMistakesNameTheirPlaces(t *testing.T) {
	for _, tt := range []struct {
		add  func(set *apply.Set)
		want []string
	}{
		{func(set *apply.Set) {
			set.Add(newConfigMap("a"))
			set.Add(newConfigMap("a"))
		}, []string{"ConfigMap default/a is added twice: at apply/policies_test.go:", " and at apply/policies_test.go:"}},
		{func(set *apply.Set) { set.Add(&corev1.ConfigMap{}) }, []string{"*v1.ConfigMap, added at apply/policies_test.go:", "it has no name"}},
		{func(set *apply.Set) { set.Add(nil) }, []string{"<nil>, added at apply/policies_test.go:", "it is no object"}},
		{func(set *apply.Set) { set.Add((*corev1.ConfigMap)(nil)) }, []string{"*v1.ConfigMap, added at", "it is a nil *v1.ConfigMap"}},
		{func(set *apply.Set) { set.Add(newService("a")) }, []string{"its kind is not declared", "give apply.Owns(&Service{}) to apply.Children"}},
		{func(set *apply.Set) { set.Add(newConfigMap("a"), apply.Keep) }, []string{"apply.Keeps(&ConfigMap{})"}},
		{func(set *apply.Set) { set.Add(newConfigMap("a"), apply.Policy("x")) }, []string{`there is no policy "x"`}},
		{func(set *apply.Set) { set.Add(newConfigMap("a"), apply.Theirs, apply.StopOnConflict) }, []string{"exclude each other"}},
		{func(set *apply.Set) {
			set.Add(unstructuredFrom(map[string]any{"apiVersion": "example.com/v1", "kind": "Absent", "metadata": map[string]any{"name": "a"}}))
		}, []string{"Absent a, added at", "its kind"}},
	} {
		o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { tt.add(set) }, apply.Owns(&corev1.ConfigMap{}))
		err := o.settle(shop)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
}

// A kind whose definition comes later is no mistake of the operator: it is waited for.
func TestKindThatIsNotThereYet(t *testing.T) {
	absent := unstructuredFrom(map[string]any{"apiVersion": "example.com/v1", "kind": "Absent", "metadata": map[string]any{"name": "a"}})
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(absent) }, apply.Owns(absent.DeepCopy()))
	err := o.settle(shop)
	if got := o.condition(shop); err != nil || got != "False NotAllReady: 0 of 1 ready: Absent a: waits for the definition of Absent in example.com/v1" {
		t.Errorf("error %v, condition %s", err, got)
	}
}

// A plan says of an object that is only created, and adopted, that its content stays.
func TestPlanOfWhatIsOnlyCreated(t *testing.T) {
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.Pod], set *apply.Set) error {
		set.Add(newConfigMap("a", "k", "ours"), apply.Adopt, apply.CreateOnly)
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	cm := newConfigMap("a", "k", "theirs")
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	plan, err := apply.PlanFor(t.Context(), ctrlkittest.NewRequest(t, owner, ctrlkittest.WithObjects(cm)), parts)
	must(t, err)
	if text := plan.String(); strings.Contains(text, "theirs") || !strings.Contains(text, "ConfigMap default/a") {
		t.Errorf("plan\n%s", text)
	}
}
