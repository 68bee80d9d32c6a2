// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// ensureRequest returns a request for a Shop, whose writes are counted.
func ensureRequest(t *testing.T, objects ...client.Object) (*step.Request[*Shop], *counting) {
	t.Helper()
	shop := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	req := ctrlkittest.NewRequest(t, shop, ctrlkittest.WithScheme(scheme), ctrlkittest.WithObjects(objects...))
	counted := &counting{Client: req.Client}
	req.Client = counted
	return req, counted
}

type counting struct {
	client.Client
	applies int
	stale   bool         // the cache does not have anything
	before  func() error // a write, nil if nothing happens
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.stale {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *counting) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if patch.Type() == types.ApplyYAMLPatchType {
		c.applies++
	}
	if c.before != nil {
		if err := c.before(); err != nil {
			return err
		}
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func readMap(t *testing.T, req *step.Request[*Shop]) *corev1.ConfigMap {
	t.Helper()
	obj := &corev1.ConfigMap{}
	must(t, req.APIReader.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, obj))
	return obj
}

func ensureMap(t *testing.T, req *step.Request[*Shop], data map[string]string) {
	t.Helper()
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Data: data} // its namespace is that of the Thing
	must(t, apply.Ensure(t.Context(), req, child))
	if !metav1.IsControlledBy(child, req.Object) || child.ResourceVersion == "" {
		t.Errorf("afterwards the child is %+v", child.ObjectMeta)
	}
}

func TestEnsure(t *testing.T) {
	req, writes := ensureRequest(t)
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
		{"the cache does not have it yet", nil, true, map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, 1}, // refused: it exists
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
			if diff := cmp.Diff(tt.want, readMap(t, req).Data); diff != "" || writes.applies != tt.applies {
				t.Errorf("%d applies, want %d; data: %s", writes.applies, tt.applies, diff)
			}
		})
	}
}

// What the API server fills in does not count as a change: defaults, also of the keys of lists, and
// numbers.
func TestEnsureWithDefaults(t *testing.T) {
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
			req, writes := ensureRequest(t)
			for range 3 {
				must(t, apply.Ensure(t.Context(), req, child()))
			}
			if writes.applies != 1 {
				t.Errorf("%d applies", writes.applies)
			}
		})
	}
}

func TestEnsureOfOthers(t *testing.T) {
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
		{"without a controller", foreign(), false, false, "ConfigMap default/child exists, has no owner and is not ours", ""},
		{"which the cache does not have", foreign(), true, false, "ConfigMap default/child exists, has no owner and is not ours", ""},
		{"with another controller", foreign(controlledBy("Other", "b")), false, false, "ConfigMap default/child exists, is controlled by Other b and is not ours", ""},
		{"that is going", going, false, true, "", "ConfigMap default/child to be gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, writes := ensureRequest(t, tt.there)
			if tt.delete {
				must(t, req.Client.Delete(t.Context(), tt.there.DeepCopy()))
			}
			writes.stale = tt.stale
			err := apply.Ensure(t.Context(), req, configMap("child", map[string]string{"a": "ours"}))
			if got := readMap(t, req).Data["a"]; got != "theirs" {
				t.Errorf("the object of others has %q", got)
			}
			if tt.wait != "" {
				if waits := ctrlkit.Waits(err); len(waits) != 1 || waits[0].For != tt.wait {
					t.Errorf("got %v, want a wait for %s", err, tt.wait)
				}
				return
			}
			classified := failure.Classify(err)
			if err == nil || err.Error() != tt.err || classified.Class != failure.ClassTerminal || classified.Severity != condition.SeverityError || classified.Reason != apply.ReasonOwnedByAnother || classified.Remedy == "" {
				t.Errorf("got %v, classified as %+v", err, classified)
			}
			if tt.stale != (classified.RetryAfter > 0) { // without an event that reports the end
				t.Errorf("tried again after %s", classified.RetryAfter)
			}
		})
	}
}

// The remedy for an object without an owner, followed literally, makes it ours. It leaves the other
// owners, and what is in it beside ours.
func TestEnsureIsGiven(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Other", Name: "other", UID: "another"}
	req, _ := ensureRequest(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", OwnerReferences: []metav1.OwnerReference{other}}, Data: map[string]string{"a": "theirs", "b": "theirs"}})
	child := configMap("child", map[string]string{"a": "ours"})
	if remedy := failure.Classify(apply.Ensure(t.Context(), req, child)).Remedy; !strings.Contains(remedy, "allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt") {
		t.Fatalf("the remedy is %s", remedy)
	}
	there := readMap(t, req)
	must(t, req.Client.Patch(t.Context(), there, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"adopt"}}}`))))
	must(t, apply.Ensure(t.Context(), req, child))
	there = readMap(t, req)
	if !metav1.IsControlledBy(there, req.Object) || len(there.OwnerReferences) != 2 || there.Data["a"] != "ours" || there.Data["b"] != "theirs" {
		t.Errorf("it has %v, owned by %v", there.Data, there.OwnerReferences)
	}
}

// What can't be kept by itself is a mistake, which no other try clears, and names its line.
func TestEnsureMistakes(t *testing.T) {
	req, _ := ensureRequest(t)
	elsewhere := configMap("child", nil)
	elsewhere.Namespace = "kube-system"
	for _, tt := range []struct {
		child   client.Object
		options []apply.Option
		want    string
	}{
		{elsewhere, nil, "it is in another namespace than its owner"},
		{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "child-"}}, nil, "it has a generateName"},
		{configMap("child", nil), []apply.Option{apply.Keep}, "apply.Keep (and Unowned) needs a set"},
		{configMap("child", nil), []apply.Option{apply.Once}, "apply.Once needs a set"},
		{configMap("child", nil), []apply.Option{apply.Wave(1)}, "apply.Wave needs a set"},
	} {
		err := apply.Ensure(t.Context(), req, tt.child, tt.options...)
		if err == nil || failure.Classify(err).Class != failure.ClassTerminal || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "ensure_test.go:") {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// It asks like every write whether the object is fresh, and an error of the API server is one of
// the step.
func TestEnsureFails(t *testing.T) {
	req, writes := ensureRequest(t)
	broken := errors.New("the line is dead")
	writes.before = func() error { return broken }
	if err := apply.Ensure(t.Context(), req, configMap("child", nil)); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "applying ConfigMap default/child: ") {
		t.Errorf("got %v", err)
	}
}

// An object that another client creates at the same instant is not taken over, also if there is no
// field that both set.
func TestEnsureDoesNotTakeOverWhatAppears(t *testing.T) {
	req, writes := ensureRequest(t)
	writes.before = func() error {
		writes.before = nil
		return writes.Client.Create(t.Context(), configMap("child", map[string]string{"theirs": "1"}))
	}
	ensure := func() error {
		return apply.Ensure(t.Context(), req, configMap("child", map[string]string{"ours": "1"}))
	}
	if err := ensure(); failure.Classify(err).Reason != apply.ReasonOwnedByAnother {
		t.Errorf("got %v", err)
	}
	got := readMap(t, req)
	if diff := cmp.Diff(map[string]string{"theirs": "1"}, got.Data); diff != "" || len(got.OwnerReferences) > 0 {
		t.Errorf("owners %v, data %s", got.OwnerReferences, diff)
	}

	must(t, req.Client.Delete(t.Context(), got)) // the name is free
	must(t, errors.Join(ensure(), ensure()))
}

// Of a union, the member that is wanted replaces the one that there is, in the same object; and
// what is settled is not written again.
func TestEnsureChangesUnions(t *testing.T) {
	req, writes := ensureRequest(t)
	child := childDeployment()
	must(t, apply.Ensure(t.Context(), req, child))
	uid := child.UID
	for range 2 {
		child = childDeployment()
		child.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		must(t, apply.Ensure(t.Context(), req, child))
	}
	if child.UID != uid || child.Spec.Strategy.RollingUpdate != nil || child.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("UID %s instead of %s, strategy %+v", child.UID, uid, child.Spec.Strategy)
	}
	if writes.applies != 3 { // created, refused, changed
		t.Errorf("%d applies", writes.applies)
	}
}

// A refusal that no retry ends is said as such, with a remedy.
func TestEnsureRefused(t *testing.T) {
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
		}, failure.ClassTerminal, `spec.template.spec.containers[name="c"].env has two items with name="A": leave one of the two out`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, _ := ensureRequest(t)
			must(t, apply.Ensure(t.Context(), req, childDeployment()))
			child := childDeployment()
			tt.change(child)
			err := apply.Ensure(t.Context(), req, child)
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

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// An object of Ensure belongs to no set: a set that wants it takes it, and then Ensure leaves it to
// the set.
func TestEnsureBesideASet(t *testing.T) {
	req, _ := ensureRequest(t)
	must(t, apply.Ensure(t.Context(), req, configMap("child", map[string]string{"a": "1"})))
	if got := readMap(t, req); got.Labels[apply.SetLabel] != "" || got.Annotations[apply.HashAnnotation] == "" {
		t.Fatalf("it has %v, %v", got.Labels, got.Annotations)
	}
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
		want.Add(configMap("child", map[string]string{"a": "2"}))
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	must(t, parts.Do(t.Context(), req))
	if got := readMap(t, req); got.Labels[apply.SetLabel] == "" || got.Data["a"] != "2" {
		t.Fatalf("it has %v, %v", got.Labels, got.Data)
	}
	err := apply.Ensure(t.Context(), req, configMap("child", map[string]string{"a": "3"}))
	if c := failure.Classify(err); c.Reason != apply.ReasonOwnedByAnother || !strings.Contains(c.Remedy, "remove the label "+apply.SetLabel) {
		t.Errorf("got %v: %s", err, c.Remedy)
	}
	got := readMap(t, req)
	delete(got.Labels, apply.SetLabel)
	must(t, req.Client.Update(t.Context(), got)) // as the remedy says
	must(t, apply.Ensure(t.Context(), req, configMap("child", map[string]string{"a": "3"})))
	if got := readMap(t, req); got.Data["a"] != "3" {
		t.Errorf("it has %v", got.Data)
	}
}

// A set that leaves an object alone once it is there takes one that Ensure has made as it is.
func TestEnsureThenCreateOnly(t *testing.T) {
	req, writes := ensureRequest(t)
	must(t, apply.Ensure(t.Context(), req, configMap("child", map[string]string{"password": "generated"})))
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
		want.Add(configMap("child", map[string]string{"password": "another"}), apply.CreateOnly)
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	for range 2 {
		must(t, parts.Do(t.Context(), req))
	}
	if got := readMap(t, req); got.Labels[apply.SetLabel] == "" || got.Data["password"] != "generated" || !metav1.IsControlledBy(got, req.Object) {
		t.Errorf("it has %v, %v", got.Labels, got.Data)
	}
	if writes.applies != 1 {
		t.Errorf("%d applies", writes.applies)
	}
}

// What others have added, and what a webhook changes, costs no write.
func TestEnsureBesideOthers(t *testing.T) {
	req, writes := ensureRequest(t)
	must(t, apply.Ensure(t.Context(), req, childDeployment()))
	there := childDeployment()
	must(t, req.APIReader.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, there))
	there.Spec.Template.Spec.Containers = append(there.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "s"})
	must(t, writes.Client.Update(t.Context(), there, client.FieldOwner("injector")))
	writes.applies = 0
	for range 3 {
		must(t, apply.Ensure(t.Context(), req, childDeployment()))
	}
	if writes.applies != 0 {
		t.Errorf("%d applies beside a sidecar", writes.applies)
	}
}

// The condition of a set agrees with Ready about an error that the operator classifies otherwise.
func TestConditionIsClassifiedByTheEngine(t *testing.T) {
	soon := failure.Table{ClassOf: func(err error) (failure.Class, bool) {
		return failure.ClassTransient, apierrors.IsForbidden(err) // the role comes a moment later
	}}
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
		want.Add(configMap("child", nil))
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	for _, tt := range []struct {
		table failure.Table
		want  string
	}{{failure.Table{}, "Forbidden"}, {soon, "TemporaryError"}} {
		req, counted := ensureRequest(t)
		counted.before = func() error {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "child", errors.New("not yet"))
		}
		engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: counted, APIReader: req.APIReader, Failures: tt.table}, parts)
		must(t, err)
		_, _ = engine.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(req.Object)}) // it fails
		must(t, req.APIReader.Get(t.Context(), client.ObjectKeyFromObject(req.Object), req.Object))
		for _, c := range req.Object.Status.Conditions {
			if (c.Type == "PartsReady" || c.Type == condition.Ready) && c.Reason != tt.want {
				t.Errorf("%s is %s %s, want %s", c.Type, c.Status, c.Reason, tt.want)
			}
		}
		if len(req.Object.Status.Conditions) == 0 {
			t.Error("there are no conditions")
		}
	}
}
