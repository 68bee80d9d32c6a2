// Package clock has steps that decide by the clock of the machine.
package clock

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

type schedule struct{}

func (schedule) Next(t time.Time) time.Time { return t.Add(time.Hour) }

func decide(_ context.Context, req *step.Request[*corev1.Pod]) error {
	if time.Since(req.Object.CreationTimestamp.Time) > time.Hour { // want `time.Since decides by the clock of the machine: use req.Now.Sub\(req.Object.CreationTimestamp.Time\), the time of the reconcile`
		return nil
	}
	if req.Object.CreationTimestamp.Time.Before(time.Now()) { // want `time.Now decides by the clock of the machine: use req.Now,`
		return nil
	}
	due := req.Object.CreationTimestamp.Add(time.Hour)
	now := time.Now() // want `time.Now decides`
	if now.After(due) {
		return nil
	}
	later := metav1.Now() // want `metav1.Now decides by the clock of the machine: use metav1.NewTime\(req.Now\)`
	if req.Object.CreationTimestamp.Before(&later) {
		return nil
	}
	next := schedule{}.Next(time.Now().UTC()) // want `time.Now decides`
	if next.IsZero() {
		return nil
	}
	return ctrlkit.RequeueWithin(time.Until(due)) // want `time.Until decides by the clock of the machine: use due.Sub\(req.Now\)`
}

func unnamed(_ context.Context, _ *step.Request[*corev1.Pod]) error {
	return ctrlkit.RequeueWithin(time.Until(time.Unix(0, 0))) // want `name the \*step.Request and use its Now`
}

func observe(...any)                        {}
func dial(context.Context, time.Time) error { return nil }

func right(ctx context.Context, req *step.Request[*corev1.Pod]) error {
	if req.Now.Sub(req.Object.CreationTimestamp.Time) > time.Hour {
		return nil
	}
	began := time.Now()
	err := dial(ctx, time.Now().Add(time.Second))
	if took := time.Since(began); took > time.Second { // a stopwatch
		observe("slow", took)
	}
	observe(time.Now().Sub(began).Seconds(), time.Since(req.Object.CreationTimestamp.Time).Seconds())
	limited, cancel := context.WithDeadline(ctx, time.Now().Add(time.Minute))
	defer cancel()
	req.Object.Status.StartTime = &metav1.Time{Time: time.Now()} // it is stored
	req.Logger.Info("dialed", "at", time.Now(), "text", fmt.Sprint(time.Now()))
	if err == nil {
		err = dial(limited, time.Now())
	}
	if time.Since(req.Object.CreationTimestamp.Time) > 24*time.Hour { //nolint:clock // the age by any clock
		return nil
	}
	return err
}

// withoutRequest has no other clock.
func withoutRequest(due time.Time) bool { return time.Now().After(due) }
