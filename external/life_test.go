// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// eachIdentity runs a test for each class, in a bubble.
func eachIdentity(t *testing.T, test func(t *testing.T, d *siloDesk)) {
	t.Helper()
	for name, identity := range siloIdentities {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSiloDesk(t, identity)
				test(t, d)
			})
		})
	}
}

func TestLifeOfResource(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.settle()
		d.expect("Ready", "True")
		d.expect("Available", "True Available")
		if calls := d.store.take(); strings.Count(calls, "create") != 1 || len(d.store.all) != 1 {
			t.Errorf("calls %s", calls)
		}
		id := external.IDOf(d.get())
		if !slices.Equal(d.store.ids(), []string{id}) {
			t.Errorf("the id %q is recorded, and the store has %v", id, d.store.ids())
		}
		before := d.get().ResourceVersion
		if _, err := d.reconcile(); err != nil || d.get().ResourceVersion != before {
			t.Errorf("a poll without a change writes, or fails: %v", err)
		}
		if calls := d.store.take(); calls != "observe" {
			t.Errorf("a poll calls %s", calls)
		}
		d.store.all[id].size = "edited"
		d.settle()
		if got := d.store.all[id].size; got != "small" {
			t.Errorf("the size is %s", got)
		}
		delete(d.store.all, id)
		time.Sleep(time.Hour) // it is not recent any more
		d.settle()
		d.has(1)
		d.delete()
		d.settle()
		d.gone()
	})
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
			if result, err := d.reconcile(); err != nil || result.RequeueAfter != 30*time.Second {
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

// The rate prevents Create after the intent is written: another object has used it up.
func TestCreationBeyondTheRate(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Calls.PerSecond, d.options.Calls.Burst = 0.01, 2
		d.restart()
		other := d.get()
		other.Name, other.ResourceVersion, other.UID = "other", "", ""
		d.must(d.client.Create(t.Context(), other))
		if _, err := d.reconcileOne(client.ObjectKeyFromObject(other)); err != nil {
			t.Fatal(err)
		}
		for _, sleep := range []time.Duration{100, 200, 200, 200} {
			result, err := d.reconcile()
			if err != nil || result.RequeueAfter == 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			time.Sleep(sleep * time.Second)
		}
		d.expect("Available", "True")
		if len(d.store.all) != 2 || strings.Count(d.store.take(), "create") != 2 {
			t.Errorf("the store has %v", d.store.ids())
		}
	})
}

func TestInvisibleResourceIsDeleted(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		if strings.HasSuffix(t.Name(), "/name") {
			t.Skip("a name that was chosen says nothing of when it was created")
		}
		d.options.Visible = 30 * time.Second
		d.restart()
		d.store.lag = 20 * time.Second
		d.passes()
		d.delete()
		d.wait()
		if diff := cmp.Diff([]string(nil), d.store.ids()); diff != "" || d.get() != nil {
			t.Errorf("left in the store:\n%s", diff)
		}
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
		if strings.HasSuffix(t.Name(), "/name") {
			t.Skip("there is no id to write")
		}
		d.options.Visible = time.Minute
		d.restart()
		d.failAfterCreate()
		d.passesTimes(10)
		d.expect("Ready", "True")
		if id := external.IDOf(d.get()); id != "silo-1" || strings.Count(d.store.take(), "create") != 1 {
			t.Errorf("the id is %q, and the store has %v", id, d.store.ids())
		}
	})
}

func TestIDThatCouldNotBeWrittenIsDeleted(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		if strings.HasSuffix(t.Name(), "/name") {
			t.Skip("there is no id to write")
		}
		d.options.Visible = time.Minute
		d.restart()
		d.failAfterCreate()
		d.delete()
		d.wait()
		d.gone()
	})
}
