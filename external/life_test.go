// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

// eachIdentity runs a test for each class but some, in a bubble.
func eachIdentity(t *testing.T, test func(t *testing.T, d *siloDesk), except ...string) {
	t.Helper()
	eachIdentityOf(t, "", test, except...)
}

// eachIdentityOf does that for a case of a table.
func eachIdentityOf(t *testing.T, name string, test func(t *testing.T, d *siloDesk), except ...string) {
	t.Helper()
	for class, identity := range siloIdentities {
		if !slices.Contains(except, class) {
			onDesk(t, name+class, identity, test)
		}
	}
}

func TestRefusedCreationIsTriedAgain(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.store.fail = failing("create", external.Refused(errors.New("quota exceeded")))
		for range 3 {
			d.fails()
			time.Sleep(time.Hour)
		}
		d.expect("Creating", "True InProgress")
		d.expect("Failed", "True TemporaryError: create: quota exceeded")
		d.expect("Available", "False Absent")
		d.store.fail = nil
		d.settle()
		d.expect("Ready", "True")
		d.expect("Failed", "False")
		d.has(1)
	})
}

// The pause before another token after a refusal is that of the engine.
func TestRefusedCreationWaitsAsTheEngineDoes(t *testing.T) {
	slow := failure.Backoff{Initial: 4 * time.Hour, Max: 4 * time.Hour}
	for name, tt := range map[string]struct {
		failures failure.Table
		again    bool
	}{
		"usual": {again: true},
		"slow":  {failures: failure.Table{Backoffs: map[failure.Class]failure.Backoff{failure.ClassTransient: slow}}},
	} {
		onDesk(t, name, siloIdentities["token"], func(t *testing.T, d *siloDesk) {
			d.failures = tt.failures
			d.restart()
			d.store.fail = failing("create", external.Refused(errors.New("quota exceeded")))
			d.fails()
			time.Sleep(2 * time.Hour)
			d.store.take()
			_, _ = d.reconcile()
			if calls := d.store.take(); strings.Contains(calls, "create") != tt.again {
				t.Errorf("after two hours: %s", calls)
			}
		})
	}
}

func TestRefusedCreationIsDeletedWithoutCall(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.store.fail = failing("create", external.Refused(errors.New("quota exceeded")))
		_, _ = d.reconcile()
		d.delete()
		d.store.take()
		d.settle()
		if calls := d.store.take(); strings.Contains(calls, "create") || strings.Contains(calls, "delete") || d.get() != nil {
			t.Errorf("calls %s", calls)
		}
	})
}

// A limit that prevents the call of Create is no creation whose result is not known.
func TestPreventedCreationIsTriedAgain(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Calls.Failures = 1
		d.restart()
		d.store.fail = failing("connect", errors.New("connection refused"))
		_, _ = d.reconcile()
		d.store.fail = nil
		for range 2 {
			if result, err := d.reconcile(); err != nil || result.RequeueAfter < 27*time.Second || result.RequeueAfter > 33*time.Second {
				t.Fatalf("%+v, %v", result, err)
			}
		}
		d.expect("Ready", "False Waiting")
		time.Sleep(time.Minute)
		d.settle()
		d.expect("Ready", "True")
		d.has(1)
	})
}

func TestInvisibleResourceIsDeleted(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Visible = 30 * time.Second
		d.restart()
		d.store.lag = 20 * time.Second
		d.passes()
		d.delete()
		d.wait()
		if diff := cmp.Diff([]string(nil), d.store.ids()); diff != "" || d.get() != nil {
			t.Errorf("left in the store:\n%s", diff)
		}
	}, "name") // a name that was chosen says nothing of when it was created
}

// That an earlier resource was seen says nothing of the one that was created in its place.
func TestInvisibleSuccessorIsDeleted(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Visible = 30 * time.Second
		d.restart()
		d.settle()
		d.expect("Ready", "True")
		time.Sleep(time.Hour)
		clear(d.store.all) // another client has deleted it
		d.store.lag = 20 * time.Second
		d.passesTimes(2)
		d.has(1)
		d.delete()
		d.wait()
		d.gone()
	})
}

// failAfterCreate lets the id that Create returns not be written.
func (d *siloDesk) failAfterCreate() {
	d.t.Helper()
	d.store.lag = 20 * time.Second
	d.store.fail = func(method string) error {
		if method == "create" {
			d.writes = errors.New("the API server is not reachable")
		}
		return nil
	}
	if _, err := d.reconcile(); err == nil {
		d.t.Fatal("no error")
	}
	d.writes, d.store.fail = nil, nil
	if len(d.store.all) != 1 {
		d.t.Fatal("it was not created")
	}
}

func TestIDThatCouldNotBeWrittenIsKept(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Visible = time.Minute
		d.restart()
		d.failAfterCreate()
		d.passesTimes(10)
		d.expect("Ready", "True")
		if id := external.IDOf(d.get()); id != "silo-1" || strings.Count(d.store.take(), "create") != 1 {
			t.Errorf("the id is %q, and the store has %v", id, d.store.ids())
		}
	}, "name") // there is no id to write
}

func TestIDThatCouldNotBeWrittenIsDeleted(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Visible = time.Minute
		d.restart()
		d.failAfterCreate()
		d.delete()
		d.wait()
		d.gone()
	}, "name") // there is no id to write
}
