// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
)

// Objects that no reconcile has are handed over, also when they were asked for before the start.
// One that a reconcile has is when that has ended. What fails is tried again.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // several hand-overs may be under way
		var log []string
		fails := map[string]error{}
		d := &drain{taken: map[types.NamespacedName]bool{}}
		key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
		d.handOver = func(_ context.Context, k types.NamespacedName) error {
			if d.take(k) {
				t.Errorf("a reconcile of %s begins while it is handed over", k.Name)
			}
			mu.Lock()
			defer mu.Unlock()
			err := fails[k.Name]
			delete(fails, k.Name)
			if err == nil {
				log = append(log, k.Name)
			}
			return err
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(log)
			if diff := cmp.Diff(want, log); diff != "" {
				t.Errorf("handed over: %s", diff)
			}
			log = nil
		}
		d.request(key("early"))
		ctx, cancel := context.WithCancel(t.Context())
		if err := d.Start(ctx, nil); err != nil {
			t.Fatal(err)
		}
		expect("early")
		if !d.take(key("busy")) || d.take(key("busy")) {
			t.Error("two reconciles of one object")
		}
		d.request(key("busy"))
		d.request(key("idle"))
		expect("idle")
		d.release(key("busy"))
		expect("busy")
		if !d.take(key("busy")) {
			t.Error("no reconcile can begin after a hand-over")
		}
		d.release(key("busy"))
		expect()
		mu.Lock()
		fails["x"], fails["y"] = errors.New("refused"), tenure.ErrExpired
		mu.Unlock()
		d.request(key("x"))
		d.request(key("y"))
		time.Sleep(time.Minute)
		expect("x", "y")
		cancel()
	})
}

func TestNoDrain(t *testing.T) {
	if d := (*drain)(nil); !d.take(types.NamespacedName{}) {
		t.Error("an engine without a shard does not reconcile")
	}
}
