// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
)

// quota is an error that says what it means for Ready.
var quota = failure.Mark(errors.New("20 users exist"), failure.WithClass(failure.ClassTerminal), failure.WithSeverity(condition.SeverityError),
	failure.WithReason("TooManyUsers"), failure.WithRetryAfter(time.Hour))

// failingAt returns functions of which one changes the status and returns an error.
func failingAt(method string, err *error) *recorder {
	f := newRecorder()
	try := func(_ context.Context, req *request) error {
		req.Object.Status.Observed = "tried"
		return *err
	}
	act := func(ctx context.Context, req *request) error {
		return try(ctx, req)
	}
	switch method {
	case "Claim":
		f.claim = try
	case "CreateOrUpdate":
		f.create = act
	case "UpdateStatus":
		f.update = try
	case "Delete":
		f.delete = act
	}
	return f
}

// An error of each method becomes the condition Ready, with its reason, a Kubernetes event by its
// severity, and the time of the next try. What the method has changed of the status is saved.
func TestErrorsBecomeReady(t *testing.T) {
	for _, method := range []string{"Claim", "CreateOrUpdate", "UpdateStatus", "Delete"} {
		onCluster(t, method, func(t *testing.T, c *cluster) {
			var err error
			o := &operator{recorder: failingAt(method, &err)}
			c.start(o)
			if method == "Delete" {
				c.create()
			}
			o.change(func() { err = quota })
			switch method {
			case "Delete":
				c.delete()
			case "UpdateStatus":
				c.create(func(obj *User) { obj.Annotations = map[string]string{"policy.ctrlkit.dev/reconcile": "skip"} })
			default:
				c.create()
			}
			if got := c.condition("Ready"); !strings.HasPrefix(got, "False TooManyUsers: ") || !strings.Contains(got, "20 users exist") {
				t.Errorf("Ready is %s", got)
			}
			obj := c.get()
			equal(t, "status", obj.Status.Observed, "tried")
			if has, want := slices.Contains(obj.Finalizers, finalizer), method == "CreateOrUpdate" || method == "Delete"; has != want {
				t.Errorf("it has the finalizer: %v", has)
			}
			if events := o.takeEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning TooManyUsers ") {
				t.Errorf("events %q, want one", events)
			}
			o.take()
			time.Sleep(59 * time.Minute)
			if took := o.take(); took != "" {
				t.Errorf("calls before the hour is over: %s", took)
			}
			o.change(func() { err = nil })
			time.Sleep(2 * time.Minute)
			if method == "Delete" && c.get() != nil || method != "Delete" && c.condition("Ready") != "True Ready" {
				t.Errorf("the next try leaves %s", c.condition("Ready"))
			}
			if took := o.take(); !strings.Contains(took, method) {
				t.Errorf("calls %q after the hour", took)
			}
		})
	}
}

// A Delete that takes longer is resumed, and keeps the object until it is done.
func TestADeleteThatTakesLonger(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o, done := &operator{recorder: newRecorder()}, false
		o.delete = func(context.Context, *request) error {
			if !done {
				return ctrlkit.Poll("the user to log out", time.Minute)
			}
			return nil
		}
		c.start(o)
		c.create()
		c.delete()
		equal(t, "Ready", c.condition("Ready"), "False CleaningUp: cleaning up: waits for the user to log out")
		o.change(func() { done = true })
		time.Sleep(time.Minute + time.Second)
		if c.get() != nil {
			t.Error("it is still there")
		}
	})
}
