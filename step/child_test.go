// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
	"github.com/ctrlkit/ctrlkit/step/steptest"
)

// kitRequest returns a request for a Thing, whose writes are counted.
func kitRequest(t *testing.T, objects ...client.Object) (*request, *counting) {
	t.Helper()
	thing := newThing()
	thing.UID = ""
	req := steptest.NewRequest(t, thing, steptest.WithScheme(allKinds()), steptest.WithObjects(objects...))
	counted := &counting{Client: req.Client}
	req.Client = counted
	return req, counted
}

type counting struct {
	client.Client
	applies int
	stale   bool         // the cache does not have anything
	before  func() error // an Apply, nil if nothing happens
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.stale {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *counting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.applies++
	if c.before != nil {
		if err := c.before(); err != nil {
			return err
		}
	}
	return c.Client.Apply(ctx, obj, opts...)
}

func readMap(t *testing.T, req *request) *corev1.ConfigMap {
	t.Helper()
	obj := &corev1.ConfigMap{}
	must(t, req.APIReader.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, obj))
	return obj
}

func ensureMap(t *testing.T, req *request, data map[string]string) {
	t.Helper()
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Data: data} // its namespace is that of the Thing
	must(t, step.EnsureChild(t.Context(), req, child))
	if !metav1.IsControlledBy(child, req.Object) || child.ResourceVersion == "" {
		t.Errorf("afterwards the child is %+v", child.ObjectMeta)
	}
}

func TestEnsureChild(t *testing.T) {
	req, writes := kitRequest(t)
	for _, tt := range []struct {
		name    string
		before  func(*corev1.ConfigMap) // what another one does
		stale   bool
		data    map[string]string
		want    map[string]string
		applies int
	}{
		{"it is created", nil, false, map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, 1},
		{"nothing has changed", nil, false, map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, 0},
		{"the cache does not have it yet", nil, true, map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, 0},
		{"a value changes", nil, false, map[string]string{"a": "3", "b": "2"}, map[string]string{"a": "3", "b": "2"}, 1},
		{"a field is not set any more", nil, false, map[string]string{"a": "3"}, map[string]string{"a": "3"}, 1},
		{"what another one sets stays", func(c *corev1.ConfigMap) { c.Data["x"] = "9" }, false, map[string]string{"a": "3"}, map[string]string{"a": "3", "x": "9"}, 0},
		{"what another one changes is put right", func(c *corev1.ConfigMap) { c.Data["a"] = "9" }, false, map[string]string{"a": "3"}, map[string]string{"a": "3", "x": "9"}, 1},
		{"labels of others stay", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"x": "y"} }, false, map[string]string{"a": "3"}, map[string]string{"a": "3", "x": "9"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.before != nil {
				obj := readMap(t, req)
				tt.before(obj)
				must(t, writes.Client.Update(t.Context(), obj, client.FieldOwner("another")))
			}
			writes.applies, writes.stale = 0, tt.stale
			ensureMap(t, req, tt.data)
			same(t, "data", tt.want, readMap(t, req).Data)
			same(t, "writes.applies", tt.applies, writes.applies)
		})
	}
}

// What the API server fills in does not count as a change: defaults, also of the keys of lists, and
// numbers.
func TestEnsureChildWithDefaults(t *testing.T) {
	labels := map[string]string{"app": "a"}
	children := map[string]func() client.Object{
		"Deployment": func() client.Object {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
				}}}},
			}}
		},
		"Service": func() client.Object {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
		},
		"Secret": func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child"}, StringData: map[string]string{"a": "1"}}
		},
	}
	for kind, child := range children {
		t.Run(kind, func(t *testing.T) {
			req, writes := kitRequest(t)
			for range 3 {
				must(t, step.EnsureChild(t.Context(), req, child()))
			}
			same(t, "writes.applies", 1, writes.applies)
		})
	}
}

func TestEnsureChildOfOthers(t *testing.T) {
	foreign := func(owners ...metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", OwnerReferences: owners}, Data: map[string]string{"a": "theirs"}}
	}
	going := foreign()
	going.Finalizers = []string{"example.com/keep"}
	controlledBy := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: kind, Name: name, UID: "another", Controller: new(true)}
	}
	for _, tt := range []struct {
		name   string
		there  *corev1.ConfigMap
		stale  bool
		delete bool
		err    string
		wait   string
	}{
		{"without a controller", foreign(), false, false, "ConfigMap default/child exists, has no controller and is not ours", ""},
		{"which the cache does not have", foreign(), true, false, "ConfigMap default/child exists, has no controller and is not ours", ""},
		{"with another controller", foreign(controlledBy("Other", "b")), false, false, "ConfigMap default/child exists, is controlled by Other b and is not ours", ""},
		{"that is going", going, false, true, "", "ConfigMap default/child to be gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, writes := kitRequest(t, tt.there)
			if tt.delete {
				must(t, req.Client.Delete(t.Context(), tt.there.DeepCopy()))
			}
			writes.stale = tt.stale
			err := step.EnsureChild(t.Context(), req, configMap("child", map[string]string{"a": "ours"}))
			same(t, "data of the object of others", "theirs", readMap(t, req).Data["a"])
			if tt.wait != "" {
				if waits := ctrlkit.Waits(err); len(waits) != 1 || waits[0].For != tt.wait {
					t.Errorf("got %v, want a wait for %s", err, tt.wait)
				}
				return
			}
			classified := failure.Classify(err)
			if err == nil || err.Error() != tt.err || classified.Class != failure.ClassTerminal || classified.Severity != condition.SeverityError || classified.Reason != step.ReasonOwnedByAnother || classified.Remedy == "" {
				t.Errorf("got %v, classified as %+v", err, classified)
			}
			same(t, "without an event that reports the end, retried by time", tt.stale, classified.RetryAfter > 0)
		})
	}
}

// The remedy for an object without a controller, followed literally, makes it ours. It leaves the other
// owners, and what is in it beside ours.
func TestEnsureChildIsGiven(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Other", Name: "other", UID: "another"}
	req, _ := kitRequest(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", OwnerReferences: []metav1.OwnerReference{other}}, Data: map[string]string{"a": "theirs", "b": "theirs"}})
	child := configMap("child", map[string]string{"a": "ours"})
	remedy := failure.Classify(step.EnsureChild(t.Context(), req, child)).Remedy
	_, command, _ := strings.Cut(remedy, "give it to the Thing, which changes it, and with which it is deleted: ")
	patch, ok := strings.CutPrefix(command, "kubectl -n default patch configmap child --type merge -p '")
	if !ok {
		t.Fatalf("the remedy is %s", remedy)
	}
	there := readMap(t, req)
	must(t, req.Client.Patch(t.Context(), there, client.RawPatch(types.MergePatchType, []byte(strings.TrimSuffix(patch, "'")))))
	must(t, step.EnsureChild(t.Context(), req, child))
	there = readMap(t, req)
	if !metav1.IsControlledBy(there, req.Object) || len(there.OwnerReferences) != 2 || there.Data["a"] != "ours" || there.Data["b"] != "theirs" {
		t.Errorf("it has %v, owned by %v", there.Data, there.OwnerReferences)
	}
}

// What an object of the same name has left to the garbage collector is waited for.
func TestEnsureChildOfANamesake(t *testing.T) {
	left := configMap("child", nil)
	left.OwnerReferences = []metav1.OwnerReference{{APIVersion: "test.example.com/v1", Kind: "Thing", Name: "a", UID: "before", Controller: new(true)}}
	w := newWorld(t, newThing(), left)
	req := &request{Object: newThing(), Client: w.server}
	err := step.EnsureChild(t.Context(), req, configMap("child", nil))
	if waits := ctrlkit.Waits(err); len(waits) != 1 || waits[0].For != "ConfigMap default/child to be gone" {
		t.Errorf("got %v, want a wait", err)
	}
}

// What can't be a child is a mistake, which no other try clears.
func TestEnsureChildOfAnotherNamespace(t *testing.T) {
	req, _ := kitRequest(t)
	child := configMap("child", nil)
	child.Namespace = "kube-system"
	if err := step.EnsureChild(t.Context(), req, child); err == nil || failure.Classify(err).Class != failure.ClassTerminal || !strings.Contains(err.Error(), "owning ConfigMap kube-system/child") {
		t.Errorf("got %v", err)
	}
	if err := step.EnsureChild(t.Context(), req, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "child-"}}); err == nil || failure.Classify(err).Class != failure.ClassTerminal {
		t.Errorf("got %v", err)
	}
}

// It asks like every write whether the object is fresh, and an error of the API server is one of
// the step.
func TestEnsureChildFails(t *testing.T) {
	req, writes := kitRequest(t)
	broken := errors.New("the line is dead")
	writes.before = func() error { return broken }
	if err := step.EnsureChild(t.Context(), req, configMap("child", nil)); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "applying ConfigMap default/child: ") {
		t.Errorf("got %v", err)
	}
}

// An object that another client creates at the same instant is not taken over, also if there is no
// field that both set.
func TestEnsureChildDoesNotTakeOverWhatAppears(t *testing.T) {
	req, writes := kitRequest(t)
	writes.before = func() error {
		writes.before = nil
		return writes.Client.Create(t.Context(), configMap("child", map[string]string{"theirs": "1"}))
	}
	ensure := func() error {
		return step.EnsureChild(t.Context(), req, configMap("child", map[string]string{"ours": "1"}))
	}
	if err := ensure(); !apierrors.IsConflict(err) || failure.Classify(err).Class != failure.ClassConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	same(t, "the next try", step.ReasonOwnedByAnother, failure.Classify(ensure()).Reason)
	got := readMap(t, req)
	none(t, "owners", got.OwnerReferences)
	same(t, "data", map[string]string{"theirs": "1"}, got.Data)

	must(t, req.Client.Delete(t.Context(), got)) // the name is free
	must(t, errors.Join(ensure(), ensure()))
}

// A child without a namespace, of an owner that is in none, is a mistake that is not retried soon.
func TestAChildWithoutANamespace(t *testing.T) {
	w := newWorld(t)
	req := &step.Request[*corev1.Node]{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}, Client: w.client}
	err := step.EnsureChild(t.Context(), req, configMap("c", nil).DeepCopy())
	must(t, err)
	err = step.EnsureChild(t.Context(), req, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	if failure.Classify(err).Class != failure.ClassTerminal || !strings.Contains(err.Error(), "set the namespace of the child") {
		t.Errorf("got %v", err)
	}
}

// Of a union, the member that is wanted replaces the one that there is, in the same object; and what is
// settled is not written again.
func TestEnsureChildChangesUnions(t *testing.T) {
	req, writes := kitRequest(t)
	child := childDeployment()
	must(t, step.EnsureChild(t.Context(), req, child))
	uid := child.UID
	for range 2 {
		child = childDeployment()
		child.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		must(t, step.EnsureChild(t.Context(), req, child))
	}
	if child.UID != uid || child.Spec.Strategy.RollingUpdate != nil || child.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("UID %s instead of %s, strategy %+v", child.UID, uid, child.Spec.Strategy)
	}
	same(t, "writes.applies", 3, writes.applies) // created, refused, changed
}

// A refusal that no retry ends is said as such, with a remedy.
func TestEnsureChildRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*appsv1.Deployment)
		class  failure.Class
		want   string // of the text and the remedy
	}{
		{"an immutable field", func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels = map[string]string{"app": "b"}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		}, failure.ClassTerminal, "run kubectl delete deployment child -n default: its Pods go"},
		{"two variables of one name", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		}, failure.ClassInvalid, `spec.template.spec.containers[name="c"].env has two items with name="A": leave one of the two out`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, _ := kitRequest(t)
			must(t, step.EnsureChild(t.Context(), req, childDeployment()))
			child := childDeployment()
			tt.change(child)
			err := step.EnsureChild(t.Context(), req, child)
			c := failure.Classify(err)
			if err == nil || c.Class != tt.class || !strings.Contains(err.Error()+": "+c.Remedy, tt.want) {
				t.Errorf("%s: %v: %s, want %s", c.Class, err, c.Remedy, tt.want)
			}
		})
	}
}

func childDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
}
