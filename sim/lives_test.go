// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// What faults make of the lives of processes and of their watches, as the trace shows it. The
// right operator survives each of them.
func TestLivesAndWatches(t *testing.T) {
	rings.Test(t, "simulates for a while")
	tests := map[string][]string{ // expressions, in the order in which the trace has them
		"stop at write 1": {
			`operator +fault +stop at write 1`, `operator +stop`, `operator-2 +start`,
		},
		"second leader from write 1": {
			`operator +fault`, `operator-2 +start`, `operator +write 1 +create secrets .* -> 201`, ` 1m0\.\d+s +operator +crash`,
			` 18m1\.\d+s +sim +check`, // the longest backoff after it
		},
		"pause before write 1 for 2m0s": {
			`operator +fault`, ` 2m0\.\d+s +operator +write 1 +create secrets .* -> 201`,
		},
		"panic at write 1": {
			`operator +fault +panic at write 1`, `operator +write \d +create secrets .* -> 201`,
		},
		"close the watch of configmaps after event 1": {
			`operator +fault`, `operator +watch +watch configmaps`, `operator +event +MODIFIED configmaps default/x`,
		},
		"expire the watch of configmaps after event 1": {
			`operator +fault`, `operator +watch +watch configmaps`, `operator +event +MODIFIED configmaps default/x`,
		},
		"miss event 1 of secrets": {
			`operator +fault +miss event 1 of secrets`, `operator +watch +watch secrets`,
		},
		"duplicate event 1 of configmaps": {
			`operator +event +ADDED configmaps default/x`, `operator +event +ADDED configmaps default/x`,
		},
		"delay the watch of configmaps by 1 from event 1": {
			`operator +fault`, `operator +event +ADDED configmaps default/x`,
		},
		"delay event 1 of secrets": {
			`operator +fault`, `operator +event +ADDED secrets default/x-copy`,
		},
		"restart 1 events in the past of secrets after write 1": {
			`operator +crash`, `operator-2 +start`, `operator-2 +(read|list) +list secrets of the past -> 200`, `operator-2 +watch +watch secrets`,
		},
	}
	for plan, want := range tests {
		t.Run(plan, func(t *testing.T) {
			violations, trace := violationsOf(t, copyWorkload(), plan)
			if len(violations) > 0 {
				t.Errorf("violated: %v", violations)
			}
			rest := trace
			for _, expression := range want {
				at := regexp.MustCompile(expression).FindStringIndex(rest)
				if at == nil {
					t.Errorf("%s does not come where it should in\n%s", expression, trace)
					break
				}
				rest = rest[at[1]:]
			}
		})
	}
}

// With a fault, an operator that ends by itself is started again, later each time, as kubelet
// does.
func TestRestarts(t *testing.T) {
	w := copyWorkload()
	var starts []time.Duration
	right, begin := w.Operator, time.Time{}
	w.Operator = func(ctx context.Context, p *Process) error {
		if p.owner.Name == "operator" {
			begin, starts = time.Now(), nil
		}
		starts = append(starts, time.Since(begin))
		err := p.Call(ctx, Call{System: "license", Verb: "check"}, func() error { return nil })
		if err != nil {
			return err
		}
		return right(ctx, p)
	}
	violations, trace := violationsOf(t, w, "outage from call 1 for 10m0s")
	if len(violations) > 0 || len(starts) < 8 {
		t.Fatalf("%d starts, %v\n%s", len(starts), violations, trace)
	}
	for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute} {
		if waited := starts[i+1] - starts[i]; waited < least || waited > least+time.Second {
			t.Errorf("start %d comes %s after the one before, want %s", i+2, waited, least)
		}
	}
}

// Update waits while an object is being deleted, and fails when that does not end.
func TestUpdateOfWhatIsBeingDeleted(t *testing.T) {
	x := configMap("x")
	x.Finalizers = []string{"test.ctrlkit.dev/never"}
	r := play(t, Workload{Patience: 10 * time.Minute, Script: func(w *World) {
		w.Create(x)
		w.Delete(x)
		Update(w, x, func(*corev1.ConfigMap) { t.Error("it was updated") })
	}}, "")
	if len(r.violations) != 1 || r.violations[0].Text != `update ConfigMap default/x: ConfigMap "x" not found` {
		t.Errorf("got %v", r.violations)
	}
}

// An operator whose reconcile panics because of a fault is not accused: controller-runtime
// recovers. A call outside of a reconcile gets an error instead, as a panic there would end the
// process.
func TestInjectedPanics(t *testing.T) {
	r := inProcess(t, "panic at call 1; panic at write 1", func(ctx context.Context, p *Process) {
		if err := p.Call(ctx, Call{System: "disk"}, func() error { return nil }); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("the call gets %v", err)
		}
		c, err := client.New(p.Config(), client.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}); err == nil {
			t.Error("the write has succeeded")
		}
	})
	if len(r.violations) > 0 {
		t.Errorf("violated: %v", r.violations)
	}
}
