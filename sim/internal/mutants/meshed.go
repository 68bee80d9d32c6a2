// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/player"
	"github.com/ctrlkit/ctrlkit/step"
)

// The mistakes of an operator that keeps a Service for each Widget, in a cluster in which a service
// mesh and a webhook change the Service, too.
const (
	claimsZeroValues Bug = "set-claims-zero-values"
	revertsWebhook   Bug = "set-reverts-webhook"
	comparesOrder    Bug = "set-compares-order"
)

func meshedMutants() []Mutant {
	m := mutantsOf(meshedWorkload)
	return []Mutant{
		m(claimsZeroValues, "a field that its author did not set is applied with its zero value in Go, over the value of another controller", "server-side apply of Go's types", oracle.BoundedRequests, oracle.BecomesIdle),
		m(revertsWebhook, "what is wanted is compared with what a webhook has made of it", "hot loops with mutating webhooks", oracle.NoNoopWrites),
		m(comparesOrder, "a list is compared with reflect.DeepEqual, although another controller orders it", "hot loops by quantities and the order of lists", oracle.BoundedRequests, oracle.BecomesIdle),
	}
}

// meshedWorkload is the life of a Widget with a Service. The right operator uses package apply.
func meshedWorkload(bug Bug) sim.Workload {
	widget := newWidget()
	w := sim.Workload{
		Name: "meshed", Scheme: scheme, CRDs: definitions, Players: player.None().With(mesh),
		Operator: func(ctx context.Context, p *sim.Process) error {
			config := p.Config()
			config.ContentType = runtime.ContentTypeJSON // the webhook understands nothing else
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return webhook{next} })
			mgr, err := ctrl.NewManager(config, p.ManagerOptions())
			if err == nil {
				err = completeMeshed(mgr, bug)
			}
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size = 2 })
			w.Settle()
		},
	}
	if bug != Right {
		w.Patience = 3 * time.Minute // some rounds of a fight show it as well as thousands
	}
	return w
}

// completeMeshed makes the operator.
func completeMeshed(mgr ctrl.Manager, bug Bug) error {
	if bug != Right {
		return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.Service{}).Complete(&meshed{Client: mgr.GetClient(), bug: bug})
	}
	return completeSet(mgr, "meshed", &Widget{}, func(req *step.Request[*Widget], want *apply.Set) { want.Add(meshedService(req.Object)) }, apply.Owns(&corev1.Service{}))
}

// meshedService returns what should exist for a Widget. The mesh decides about the target ports.
func meshedService(w *Widget) *corev1.Service {
	anyNode := corev1.ServiceInternalTrafficPolicyCluster
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"size": strconv.Itoa(int(w.Spec.Size))}, InternalTrafficPolicy: &anyNode,
			Ports: []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "admin", Port: 81}},
		},
	}
}

// mesh sends the traffic of each port of a Service to its proxy, and keeps the ports ordered by
// name. It acts every ten seconds, so that a fight with it takes few requests.
var mesh = player.New(func(s *player.Stage, service *corev1.Service) error {
	const period = 10 * time.Second
	if now := time.Now(); !now.Equal(now.Truncate(period)) {
		s.After(now.Truncate(period).Add(period).Sub(now))
		return nil
	}
	for i := range service.Spec.Ports {
		service.Spec.Ports[i].TargetPort = intstr.FromInt32(15001)
	}
	sortPorts(service.Spec.Ports)
	return s.Update(service)
})

func sortPorts(ports []corev1.ServicePort) {
	slices.SortFunc(ports, func(a, b corev1.ServicePort) int { return cmp.Compare(a.Name, b.Name) })
}

// A webhook changes the Services that the operator sends: traffic has to stay on its node. The API
// server in memory calls no webhooks, so that this one sits in the transport of the operator.
type webhook struct{ next http.RoundTripper }

func (h webhook) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || !strings.Contains(r.URL.Path, "/services") {
		return h.next.RoundTrip(r)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	data = bytes.ReplaceAll(data, []byte(`"internalTrafficPolicy":"Cluster"`), []byte(`"internalTrafficPolicy":"Local"`))
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return h.next.RoundTrip(r)
}

// meshed is an operator that keeps a Service without package apply.
type meshed struct {
	client.Client
	bug Bug
}

func (r *meshed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted, current := meshedService(w), &corev1.Service{}
	if err := ctrl.SetControllerReference(w, wanted, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	err := r.Get(ctx, req.NamespacedName, current)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.Create(ctx, wanted)
	case !metav1.IsControlledBy(current, w): // until the name is free
		return ctrl.Result{RequeueAfter: 30 * time.Second}, nil
	case r.isSame(wanted, current):
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.apply(ctx, wanted)
}

// apply applies a Service. Only by mistake does it apply target ports, or the ports in another
// order than that of the mesh.
func (r *meshed) apply(ctx context.Context, wanted *corev1.Service) error {
	if r.bug != comparesOrder {
		sortPorts(wanted.Spec.Ports)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	unstructured.RemoveNestedField(content, "status")
	if r.bug != claimsZeroValues {
		ports, _, _ := unstructured.NestedSlice(content, "spec", "ports") //nolint:errcheck // there are some
		for _, port := range ports {
			delete(port.(map[string]any), "targetPort")
		}
		if err := unstructured.SetNestedSlice(content, ports, "spec", "ports"); err != nil {
			return err
		}
	}
	return r.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("meshed"), client.ForceOwnership)
}

// isSame reports whether a Service is as it should be.
func (r *meshed) isSame(wanted, current *corev1.Service) bool {
	a, b := wanted.Spec, current.Spec
	if r.bug == revertsWebhook && *a.InternalTrafficPolicy != *b.InternalTrafficPolicy {
		return false
	}
	return reflect.DeepEqual(a.Selector, b.Selector) && reflect.DeepEqual(r.ports(a.Ports), r.ports(b.Ports))
}

// ports returns what is compared of ports.
func (r *meshed) ports(ports []corev1.ServicePort) []corev1.ServicePort {
	compared := make([]corev1.ServicePort, len(ports))
	for i, p := range ports {
		compared[i] = corev1.ServicePort{Name: p.Name, Port: p.Port}
		if r.bug == claimsZeroValues {
			compared[i].TargetPort = p.TargetPort
		}
	}
	if r.bug != comparesOrder {
		sortPorts(compared)
	}
	return compared
}
