// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/step"
)

// A picky server wants a field in each status.
type picky struct {
	client.Client
	refused int
}

func (p *picky) SubResource(name string) client.SubResourceClient {
	return pickyStatus{p.Client.SubResource(name), p}
}

type pickyStatus struct {
	client.SubResourceClient
	picky *picky
}

func (s pickyStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	before := &Thing{}
	if err := s.picky.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	if !strings.Contains(string(data), `"phase"`) && len(before.Status.Conditions) == 0 {
		s.picky.refused++
		return apierrors.NewInvalid(thingVersion.WithKind("Thing").GroupKind(), obj.GetName(), nil)
	}
	return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
}

func TestAStatusWithRequiredFields(t *testing.T) {
	second := newThing()
	second.Name, second.UID = "b", "uid-b"
	w := newWorld(t, newThing(), second)
	options := w.options()
	server := &picky{Client: w.client}
	options.Client = server
	e := w.engineWith(options, doing("A", passes))
	w.must()
	w.is(condition.Ready, "True Ready")
	if _, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(second)}); err != nil {
		t.Error(err)
	}
	same(t, "server.refused", 1, server.refused)
}

func TestADefinitionWithoutStatusSubresource(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("patch status", apierrors.NewNotFound(things, "a"))
	w.engine(doing("A", passes))
	err := w.fails()
	classified := failure.Classify(err)
	if classified.Class != failure.ClassInvalid || classified.Reason != "NoStatusSubresource" || !strings.Contains(classified.Remedy, "+kubebuilder:subresource:status") {
		t.Errorf("got %v: %+v", err, classified)
	}
}

// Integers that a float64 does not hold are written as they are, also when the write has to be
// repeated on a newer version.
func TestLargeIntegersStayExact(t *testing.T) {
	const large = 1<<63 - 1
	for _, interfere := range []bool{false, true} {
		w := newWorld(t, newThing())
		w.engine(doing("A", does(func(_ context.Context, req *request) {
			req.Object.Status.Size, req.Object.Status.Counters = large, map[string]int{"a": -large}
			if interfere {
				w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them") })
			}
		})))
		w.must()
		if got := w.thing().Status; got.Size != large || got.Counters["a"] != -large {
			t.Errorf("interfere %v: got %d and %d", interfere, got.Size, got.Counters["a"])
		}
	}
}

// A Hidden is an object whose generation is kept in a struct whose pointer may be nil.
type Hidden struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		*Observed  `json:",inline"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

type Observed struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

func (h *Hidden) DeepCopyObject() runtime.Object {
	c := *h
	c.ObjectMeta = *h.ObjectMeta.DeepCopy()
	if h.Status.Observed != nil {
		o := *h.Status.Observed
		c.Status.Observed = &o
	}
	c.Status.Conditions = slices.Clone(h.Status.Conditions)
	return &c
}

func TestAnObservedGenerationBehindAPointer(t *testing.T) {
	newScheme().AddKnownTypes(thingVersion, &Hidden{})
	for _, observed := range []*Observed{nil, {ObservedGeneration: 1}} {
		obj := &Hidden{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a", Generation: 3}}
		obj.Status.Observed = observed
		server := newHiddenClient(obj)
		e, err := step.New(step.Options[*Hidden]{Name: "hidden", Client: server}, step.Step[*Hidden]{Name: "A", Do: func(context.Context, *step.Request[*Hidden]) error {
			return nil
		}})
		must(t, err)
		if _, err := e.Reconcile(t.Context(), thingRequest); err != nil {
			t.Error(err)
		}
		got := &Hidden{}
		must(t, server.Get(t.Context(), thingRequest.NamespacedName, got))
		if observed != nil && got.Status.ObservedGeneration != 3 {
			t.Errorf("status.observedGeneration: %d, want 3", got.Status.ObservedGeneration)
		}
	}
}

// What can't be written to the status is said by an event; of a status that is too large, the
// conditions are written. A conflict, which passes, makes no event.
func TestTheStatusCantBeWritten(t *testing.T) {
	tooLarge := apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	for _, tt := range []struct {
		name   string
		err    error
		once   bool
		events []string
		ready  string
	}{
		{"no permission", apierrors.NewForbidden(things, "a", errors.New("no role")), false,
			[]string{`Forbidden: writing the status: things.test.example.com "a" is forbidden: no role`}, ""},
		{"no status subresource", apierrors.NewNotFound(things, "a"), false,
			[]string{`NoStatusSubresource: writing the status: things.test.example.com "a" not found`}, ""},
		{"a conflict", apierrors.NewConflict(things, "a", errors.New("it has changed")), false, nil, ""},
		{"an API server that restarts", apierrors.NewServiceUnavailable("restarting"), false, nil, ""},
		{"too large", tooLarge, true, []string{"Invalid: writing the status: Request entity too large: limit is 3145728"},
			"False Invalid: writing the status: Request entity too large: limit is 3145728"},
		{"too large for etcd", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), true,
			[]string{"Invalid: writing the status: Internal error occurred: etcdserver: request is too large"},
			"False Invalid: writing the status: Internal error occurred: etcdserver: request is too large"},
		{"the conditions are too large, too", tooLarge, false, []string{"Invalid: writing the status: Request entity too large: limit is 3145728"}, ""},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", changing(func(obj *Thing) { obj.Status.Phase = "much" })))
			refused := false
			w.fault = func(request string) error {
				if !strings.HasPrefix(request, "patch status") || tt.once && refused {
					return nil
				}
				refused = true
				return tt.err
			}
			_, _ = w.reconcile()
			same(t, "events", tt.events, w.takeEvents())
			w.is(condition.Ready, tt.ready)
			same(t, "phase", "", w.thing().Status.Phase)
		})
	}
}

// A Pointed is a Thing whose status is a pointer.
type (
	Pointed       = testkind.Object[ThingSpec, *PointedStatus]
	PointedStatus struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Phase              string             `json:"phase,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	}
)

func TestAStatusThatIsAPointer(t *testing.T) {
	obj := &Pointed{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Generation: 3}}
	scheme := testkind.Scheme(testkind.Of[ThingSpec, *PointedStatus]("Pointed"))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithStatusSubresource(obj).Build()
	e, err := step.New(step.Options[*Pointed]{Name: "things", Client: c}, step.Step[*Pointed]{Name: "Work", Do: func(_ context.Context, req *step.Request[*Pointed]) error {
		req.Object.Status.Phase = "Done"
		return nil
	}})
	must(t, err)
	version := ""
	for range 2 {
		_, err := e.Reconcile(t.Context(), thingRequest)
		must(t, err)
		must(t, c.Get(t.Context(), thingRequest.NamespacedName, obj))
		all, err := condition.Of(obj)
		must(t, err)
		if !meta.IsStatusConditionTrue(all, condition.Ready) || obj.Status.Phase != "Done" || obj.Status.ObservedGeneration != 3 {
			t.Errorf("the status is %+v", obj.Status)
		}
		if version != "" && obj.ResourceVersion != version {
			t.Error("the second reconcile has written")
		}
		version = obj.ResourceVersion
	}
}
