// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// busy has the store show a silo in a state.
func busy(state external.State) func(o *external.Observation) {
	return func(o *external.Observation) {
		if o.State != external.Absent {
			o.State = state
		}
	}
}

// A waiting connector waits for a Secret that does not exist.
type waiting struct{ *store }

func (w waiting) Connect(ctx context.Context, req *step.Request[*Silo]) (external.Client[*Silo], error) {
	if _, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Namespace: "default", Name: "credentials"}); err != nil {
		return nil, err
	}
	return w.store.Connect(ctx, req)
}

// requeues is when a reconcile is followed by the next one, as the engine reports it to the
// controller. A dirty one has written to the object: the event of that write brings the next one
// at once, whatever the result is. A clean one has not, and nothing but the result brings the next
// one.
var requeues = []struct {
	name string
	// prepare makes the world in which the object is idle, or never was there.
	prepare func(d *siloDesk)
	// first and second are two reconciles in this world: "dirty" or "clean", then what is
	// returned.
	first, second string
}{
	{"success", func(*siloDesk) {}, "dirty poll", "clean poll"},
	{"success, with a delay of the kind", func(d *siloDesk) {
		d.options.Poll = time.Hour
		d.restart()
	}, "dirty hourly", "clean hourly"},
	{"the object is not found", func(d *siloDesk) { d.delete() }, "clean never", "clean never"},
	{"the object is deleted", func(d *siloDesk) {
		d.settle()
		d.delete()
	}, "dirty never", "clean never"},
	{"the system creates", func(d *siloDesk) { d.store.seen = busy(external.Creating) }, "dirty busy", "clean busy"},
	{"the system updates", func(d *siloDesk) { d.store.seen = busy(external.Updating) }, "dirty busy", "clean busy"},
	{"the system deletes", func(d *siloDesk) {
		d.settle()
		d.delete()
		d.store.seen = busy(external.Deleting)
	}, "dirty busy", "clean busy"},
	{"the resource can't be used yet", func(d *siloDesk) {
		d.store.seen = func(o *external.Observation) { o.Unavailable = "no endpoint" }
	}, "dirty busy", "clean busy"},
	{"the resource drifts, and is updated", func(d *siloDesk) {
		d.settle()
		for _, b := range d.store.all {
			b.size = "edited"
		}
	}, "clean poll", "clean poll"},
	{"a user changes the spec", func(d *siloDesk) {
		d.settle()
		d.change(func(obj *Silo) { obj.Spec.Size = "large" })
	}, "dirty poll", "clean poll"},
	{"the drift may not be repaired", func(d *siloDesk) {
		d.settle()
		d.annotate("policy.ctrlkit.dev/allow", "observe,create,delete")
		for _, b := range d.store.all {
			b.size = "edited"
		}
	}, "dirty poll", "clean poll"},
	{"a handled error: the call fails, and the condition has it", func(d *siloDesk) {
		d.store.fail = failing("create", external.Refused(errors.New("quota exceeded")))
	}, "dirty backoff", "clean backoff"},
	{"a handled error: the resource has failed", func(d *siloDesk) { d.store.seen = busy(external.Broken) }, "dirty backoff", "clean backoff"},
	{"a handled error: the connection fails", func(d *siloDesk) {
		d.store.fail = failing("connect", errors.New("connection refused"))
	}, "dirty backoff", "clean backoff"},
	{"the system asks for fewer calls", func(d *siloDesk) {
		d.settle()
		d.store.fail = failing("observe", failure.Mark(errors.New("429"), failure.WithClass(failure.ClassThrottled), failure.WithRetryAfter(7*time.Minute)))
	}, "dirty 7m0s", "clean 7m0s"},
	{"an unhandled error: the object can't be read", func(d *siloDesk) {
		d.reads = errors.New("the API server is not reachable")
		d.restart()
	}, "clean backoff", "clean backoff"},
	{"a wait for a watch", func(d *siloDesk) {
		d.connector = waiting{d.store}
		d.restart()
	}, "dirty never", "clean never"},
	{"the system is left alone", func(d *siloDesk) {
		d.settle()
		d.options.Calls.Failures = 1
		d.restart()
		d.store.fail = failing("observe", errors.New("connection refused"))
		_, _ = d.reconcile()
		d.store.fail = nil
	}, "dirty pause", "clean pause"},
}

func TestWhenToRequeue(t *testing.T) {
	for _, tt := range requeues {
		onDesk(t, tt.name, byName(), func(t *testing.T, d *siloDesk) {
			tt.prepare(d)
			if got := d.outcome(); got != tt.first {
				t.Errorf("the first reconcile is %s, want %s", got, tt.first)
			}
			if got := d.outcome(); got != tt.second {
				t.Errorf("the second reconcile is %s, want %s", got, tt.second)
			}
		})
	}
}

// outcome reconciles, and returns what comes next in the words of requeues.
func (d *siloDesk) outcome() string {
	d.t.Helper()
	version := func() string {
		if obj := d.get(); obj != nil {
			return obj.ResourceVersion
		}
		return ""
	}
	before := version()
	result, err := d.reconcile()
	text := "clean "
	if version() != before {
		text = "dirty "
	}
	within := func(poll time.Duration) bool {
		return result.RequeueAfter >= poll*9/10 && result.RequeueAfter <= poll*11/10
	}
	switch {
	case err != nil:
		return text + "backoff"
	case result.RequeueAfter == 0:
		return text + "never"
	case result.RequeueAfter == 5*time.Second:
		return text + "busy"
	case within(30 * time.Second):
		return text + "pause"
	case within(time.Minute):
		return text + "poll"
	case within(time.Hour):
		return text + "hourly"
	}
	return text + result.RequeueAfter.String()
}
