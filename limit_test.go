// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// limited are the actions that limit how many others run at the same time, for actions without
// dependencies.
var limited = map[string]func(int, ...ctrlkit.Action) ctrlkit.Action{
	"ParallelJoinLimit": ctrlkit.ParallelJoinLimit,
	"Graph": func(limit int, actions ...ctrlkit.Action) ctrlkit.Action {
		return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			g.Limit(limit)
			for _, a := range actions {
				g.Add(a)
			}
		})
	},
}

// At most two of five actions run at the same time, and one begins as soon as another has ended,
// also by an error, a panic, or the end of its goroutine.
func TestLimit(t *testing.T) {
	for name, limit := range limited {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, running, most := time.Now(), atomic.Int32{}, atomic.Int32{}
				var j journal
				takes := func(name string, d time.Duration, end func() error) ctrlkit.Action {
					return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
						if n := running.Add(1); n > most.Load() {
							most.Store(n)
						}
						defer running.Add(-1)
						j.note(fmt.Sprintf("%s at %s", name, time.Since(begin)))
						<-time.After(d)
						return ctrl.Result{}, end()
					})
				}
				fine := func() error { return nil }
				w := limit(2, takes("A", 3*time.Second, fine), takes("B", time.Second, func() error { return errors.New("oops") }),
					takes("C", time.Second, func() error { panic("wrong") }), takes("D", time.Second, func() error { runtime.Goexit(); return nil }),
					takes("E", time.Second, fine))
				_, err := w.Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), "oops") || !strings.Contains(err.Error(), "wrong") || !strings.Contains(err.Error(), "Goexit") {
					t.Errorf("got the error %v", err)
				}
				if most.Load() != 2 || time.Since(begin) != 4*time.Second {
					t.Errorf("%d ran at the same time, and all took %s", most.Load(), time.Since(begin))
				}
				if text := w.Description(); !strings.Contains(text, "(at most 2, A, B, ") {
					t.Errorf("described as %s", text)
				}
			})
		})
	}
}

// What the limit kept from beginning is reported as not started when the context ends: nothing is
// taken for done.
func TestLimitAndTheEndOfTheContext(t *testing.T) {
	for name, limit := range limited {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var j journal
			cancels := ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) {
				cancel()
				return ctrl.Result{}, nil
			})
			_, err := limit(1, cancels, j.ok("B"), j.ok("C")).Run(ctx)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "B and 1 more were not started") {
				t.Errorf("got the error %v", err)
			}
			j.want(t)
		})
	}
}

// The actions that were ready first begin first, and their dependents after them.
func TestLimitOfAGraph(t *testing.T) {
	var j journal
	_, err := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		g.Limit(1)
		a := g.Add(j.ok("A"))
		g.Add(j.ok("D"), a)
		b := g.Add(j.ok("B"))
		g.Add(j.ok("C"), b)
	}).Run(t.Context())
	must(t, err)
	j.want(t, "A", "B", "D", "C")
}

func TestLimitMustBePositive(t *testing.T) {
	for name, limit := range limited {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "at least one action has to run") {
					t.Errorf("%s: got %v", name, v)
				}
			}()
			if a := limit(0); a != nil {
				t.Errorf("%s: there is an action", name)
			}
		}()
	}
}
