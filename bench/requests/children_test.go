// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

// The requests of an operator that keeps a ConfigMap, a Service and a Deployment with a set. Nothing
// in them spells out what the API server adds. Package apply promises these numbers.
func TestRequestsOfASet(t *testing.T) {
	rings.Test(t, "starts a control plane")
	log.SetLogger(logr.Discard())
	s := newSetup(t)
	s.must(appsv1.AddToScheme(s.user.Scheme()))
	table := &table{}
	const finalizer = 1
	s.measureSet(table, "set", 3+1+finalizer)
	if rings.Exploring() {
		s.installPolicy()
		s.measureSet(table, "set, with the policy", 3+1)
	}
	t.Logf("API requests of an operator with a set of 3, for one object\n%s", table)
}

// measureSet counts the requests for one object, in a namespace of its own. Created is how many
// writes its creation takes at most.
func (s *setup) measureSet(table *table, operator string, created int) {
	s.t.Helper()
	m := s.newMeasurement(table, operator)
	namespace := s.namespace()
	stop := m.start(namespace, operators.Operator{Add: withSet})

	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: widget.Spec{First: "1"}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	service := &corev1.Service{ObjectMeta: *config.ObjectMeta.DeepCopy()}
	// Before its first write to a Widget, a process asks once whether its cache is up to date.
	first := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "first"}}
	m.phase("first of the process", func(ctx context.Context) error { return s.user.Create(ctx, first) })
	atMost(s.t, operator+": live reads for the first of the process", m.phases["first of the process"].Reads, 1)
	m.limited("create until idle", created, func(ctx context.Context) error { return s.user.Create(ctx, w) })
	m.limited("resync", 0, m.counter.Resync)
	m.limited("one field", 2, func(ctx context.Context) error {
		return s.user.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"first":"one"}}`)))
	})
	s.must(s.user.Get(s.t.Context(), client.ObjectKeyFromObject(config), config))
	if config.Data["text"] != "one" {
		s.t.Errorf("%s: the ConfigMap has %q, want the changed field", operator, config.Data)
	}
	m.limited("a child deleted", 1, func(ctx context.Context) error { return s.user.Delete(ctx, service) })
	m.limited("a child edited", 1, func(ctx context.Context) error {
		return s.user.Patch(ctx, config, client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"by hand"}}`)))
	})
	s.must(s.user.Get(s.t.Context(), client.ObjectKeyFromObject(config), config))
	if config.Data["text"] != "one" {
		s.t.Errorf("%s: the ConfigMap that was edited by hand has %q", operator, config.Data)
	}
	m.limited("restart", 0, func(context.Context) error {
		stop()
		stop = m.start(namespace, operators.Operator{Add: withSet})
		return nil
	})
	stop()
}

// limited counts a phase, and fails if there are more writes than that, a refused one, or a live
// read. The lists with which watches begin are none.
func (m *measurement) limited(phase string, writes int, do func(ctx context.Context) error) {
	m.t.Helper()
	m.phase(phase, do)
	counts := m.phases[phase]
	atMost(m.t, m.operator+": "+phase, counts.Writes, writes)
	for what, n := range counts.Reads {
		if strings.HasPrefix(what, "GET ") {
			m.t.Errorf("%s: %s: %d live reads: %s", m.operator, phase, n, what)
		}
	}
	if counts.Refused > 0 {
		m.t.Errorf("%s: %s: %d refused writes", m.operator, phase, counts.Refused)
	}
}

// withSet adds an operator of Widgets whose children are a set.
func withSet(mgr ctrl.Manager, _ process.Settings) error {
	children := apply.Children("Parts", func(_ context.Context, req *step.Request[*widget.Widget], want *apply.Set) error {
		meta, labels := metav1.ObjectMeta{Name: req.Object.Name}, map[string]string{"widget": req.Object.Name}
		want.Add(
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": req.Object.Spec.First}},
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}})
		want.Add(&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		}}, apply.NoWait) // no controller runs it here
		return nil
	}, apply.Owns(&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{}), apply.DeleteInOrder())
	engine, err := step.New(step.Options[*widget.Widget]{
		Name: "widget", Finalizer: widget.Finalizer, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("widget"),
		SkipUnchanged: true, Controller: controller.Options{SkipNameValidation: new(true)},
	}, children)
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}))
}
