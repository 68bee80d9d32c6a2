// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
)

// aReconcile is one of the object default/x, as controller-runtime logs it.
type aReconcile struct {
	reads *reads
	log   logr.Logger
	id    types.UID
}

func reconcileOf(r *reads, id types.UID) aReconcile {
	results := newReconciles()
	results.reads = r
	return aReconcile{r, results.logger(funcr.New(func(string, string) {}, funcr.Options{})).WithValues("controller", "c", "namespace", "default", "name", "x", "reconcileID", id), id}
}

// get reads the object default/s of a kind.
func (a aReconcile) get(kind string) aReconcile {
	a.reads.note(a.id, schema.GroupResource{Resource: kind}, client.ObjectKey{Namespace: "default", Name: "s"})
	return a
}

func (a aReconcile) succeeds() { a.log.V(5).Info("Reconcile successful") }
func (a aReconcile) polls()    { a.log.V(5).Info("Reconcile done, requeueing after 1m0s") }
func (a aReconcile) fails()    { a.log.Error(errors.New("no"), "Reconciler error") }

func (a aReconcile) says(kind string) aReconcile {
	a.log.WithValues("name", "another").Info(track.UnwatchedMessage, track.UnwatchedKind, kind, track.UnwatchedStep, "A")
	return a
}

// What the last reconcile of an object has read is accused, unless something wakes the object.
func TestReads(t *testing.T) {
	accused := []judge.Unwatched{{Controller: "c", Object: "default/x", Kind: "secrets", Read: "default/s"}}
	for name, c := range map[string]struct {
		do   func(r *reads)
		want []judge.Unwatched
	}{
		"a read":                  {func(r *reads) { reconcileOf(r, "1").get("secrets").succeeds() }, accused},
		"the last reconcile":      {func(r *reads) { reconcileOf(r, "1").polls(); reconcileOf(r, "2").get("secrets").succeeds() }, accused},
		"a reconcile that runs":   {func(r *reads) { reconcileOf(r, "1").get("secrets") }, nil},
		"another one follows":     {func(r *reads) { reconcileOf(r, "1").get("secrets").succeeds(); reconcileOf(r, "2").succeeds() }, nil},
		"a time":                  {func(r *reads) { reconcileOf(r, "1").get("secrets").polls() }, nil},
		"a failure":               {func(r *reads) { reconcileOf(r, "1").get("secrets").fails() }, nil},
		"it is watched":           {func(r *reads) { reconcileOf(r, "1").get("pods").succeeds() }, nil},
		"it is watched later":     {func(r *reads) { reconcileOf(r, "1").get("secrets").succeeds(); r.handled(&corev1.Secret{}) }, nil},
		"something else reads it": {func(r *reads) { reconcileOf(r, "1").get("secrets").succeeds(); reconcileOf(r, "").get("secrets") }, nil},
		"an engine reads what it declares": {func(r *reads) {
			a := reconcileOf(r, "1").get("secrets")
			read := r.running["1"][schema.GroupResource{Resource: "secrets"}]
			read.engine = true
			r.running["1"][schema.GroupResource{Resource: "secrets"}] = read
			a.succeeds()
		}, nil},
		"an engine says so": {func(r *reads) { reconcileOf(r, "1").get("secrets").says("Secret").polls() }, []judge.Unwatched{
			{Controller: "c", Object: "default/x", Step: "A", Kind: "secrets", Read: "default/s"},
		}},
		"an engine says so of a kind that only the server knows": {func(r *reads) { reconcileOf(r, "1").says("Thing.example.com").succeeds() }, []judge.Unwatched{
			{Controller: "c", Object: "default/x", Step: "A", Kind: "things.example.com"},
		}},
		"the informers are not seen": {func(r *reads) { clear(r.watched); reconcileOf(r, "1").get("secrets").succeeds() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReads(clientgoscheme.Scheme, func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
				resource, _ := meta.UnsafeGuessKindToResource(gvk)
				return resource, true, nil
			})
			r.handled(&corev1.PodList{})
			c.do(r)
			if diff := cmp.Diff(c.want, r.unwatched(), cmpopts.IgnoreFields(judge.Unwatched{}, "Site")); diff != "" {
				t.Error(diff)
			}
			for _, u := range r.unwatched() {
				if u.Read != "" && u.Site == "" {
					t.Errorf("%v has no line of code", u)
				}
			}
		})
	}
}
