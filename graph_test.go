// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

func TestGraphRunsInOrderAndBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var j journal
		takes := func(name string, d time.Duration) ctrlkit.Action {
			return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
				<-time.After(d)
				j.note(fmt.Sprintf("%s at %s", name, time.Since(begin)))
				return ctrlkit.NoRequeue()
			})
		}
		_, err := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			config := g.Add(takes("Config", time.Second))
			disk := g.Add(takes("Disk", 3*time.Second))
			pods := g.Add(takes("Pods", time.Second), config, disk)
			g.Add(takes("Service", time.Second), config)
			g.Add(takes("Monitor", time.Second), pods, pods)
		}).Run(t.Context())
		must(t, err)
		j.want(t, "Config at 1s", "Service at 2s", "Disk at 3s", "Pods at 4s", "Monitor at 5s")
	})
}

// An action that ends its goroutine has failed, and blocks what comes after it.
func TestGraphAndTheEndOfAGoroutine(t *testing.T) {
	var j journal
	_, err := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		ends := g.Add(ctrlkit.NewAction("Ends", func(context.Context) (ctrl.Result, error) { runtime.Goexit(); return ctrl.Result{}, nil }))
		g.Add(j.ok("After"), ends)
		g.Add(j.ok("Beside"))
	}).Run(t.Context())
	var blocked *ctrlkit.BlockedError
	if !errors.As(err, &blocked) || blocked.Action != "After" || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("got the error %v", err)
	}
	j.want(t, "Beside")
}

func TestGraphIsAsCompleteAsPossible(t *testing.T) {
	var j journal
	w := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		fails := g.Add(j.fails("Fails"))
		waits := g.Add(j.waits("Waits"))
		fine := g.Add(j.ok("Fine"))
		requeues := g.Add(j.ends("Requeues", ctrl.Result{RequeueAfter: time.Minute}, nil))
		b := g.Add(j.ok("B"), fails, fine)
		g.Add(j.ok("C"), b)
		g.Add(j.ok("D"), waits, fails, b)
		g.Add(j.ok("E"), fine)
		g.Add(j.ok("F"), requeues)
		again := g.Add(ctrlkit.NewAction("Again", func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(time.Second) }))
		g.Add(j.ok("G"), again)
	})
	result, err := w.Run(background())
	same(t, "actions run", []string{"E", "Fails", "Fine", "G", "Requeues", "Waits"}, j.sorted())
	want := "Fails: boom; Waits: waiting for the world; B is blocked by Fails; C is blocked by Fails; " +
		"D is blocked by Fails, Waits; F is blocked by Requeues"
	same(t, "error", want, text(err))
	var names []string
	for _, b := range ctrlkit.BlockedActions(err) {
		names = append(names, b.Action)
	}
	same(t, "blocked", "B C D F", strings.Join(names, " "))
	result, err = ctrlkit.IgnoreExit(result, err)
	same(t, "error", "Fails: boom", text(err))
	same(t, "requeued after", time.Second, result.RequeueAfter)
}

func TestGraphWhoseActionsOnlyWaitIsNotAnError(t *testing.T) {
	var j journal
	w := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(j.ok("B"), g.Add(j.waits("A"))) })
	if _, err := ctrlkit.IgnoreExit(w.Run(background())); err != nil {
		t.Error(err)
	}
}

func TestGraphCanceledMidwayStartsNothingFurther(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(background())
	w := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		a := g.Add(ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) { cancel(); return ctrlkit.NoRequeue() }))
		b := g.Add(j.ok("B"), a)
		g.Add(j.ok("C"), b)
	})
	_, err := w.Run(ctx)
	if want := "C is blocked by B; B was not started: context canceled"; text(err) != want || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s", err, want)
	}
	j.want(t)
}

func TestGraphBuilderMistakes(t *testing.T) {
	var kept *ctrlkit.GraphBuilder
	var foreign ctrlkit.GraphNode
	ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { kept, foreign = g, g.Add(ctrlkit.Nop()) }) //nolint:discarded // only its nodes are of use
	for name, tt := range map[string]struct {
		do   func()
		want string
	}{
		"used after it was built": {func() { kept.Add(ctrlkit.Nop()) }, "add everything inside the function"},
		"a node of another graph": {func() {
			ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(ctrlkit.Nop(), foreign) }) //nolint:discarded // it panics
		}, "not added to this Graph"},
		"the zero node": {func() {
			ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(ctrlkit.Nop(), ctrlkit.GraphNode{}) }) //nolint:discarded // it panics
		}, "not added to this Graph"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), tt.want) {
					t.Errorf("got panic %v, want %q", v, tt.want)
				}
			}()
			tt.do()
		})
	}
}

// Every graph: an action runs if and only if all that it comes after have passed, and never before
// them.
func TestGraphProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		passes := make([]bool, n)
		after := make([][]int, n)
		for i := range n {
			passes[i] = rapid.IntRange(0, 3).Draw(t, "passes") > 0
			for j := range i {
				if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					after[i] = append(after[i], j)
				}
			}
		}
		var mu sync.Mutex
		var ran []int
		w := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			nodes := make([]ctrlkit.GraphNode, n)
			for i := range n {
				var deps []ctrlkit.GraphNode
				for _, d := range after[i] {
					deps = append(deps, nodes[d])
				}
				nodes[i] = g.Add(ctrlkit.NewAction(fmt.Sprint(i), func(context.Context) (ctrl.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, i)
					if passes[i] {
						return ctrlkit.NoRequeue()
					}
					return ctrlkit.RequeueIfError(errBoom)
				}), deps...)
			}
		})
		_, _ = w.Run(background())
		should := make([]bool, n)
		for i := range n {
			should[i] = !slices.ContainsFunc(after[i], func(d int) bool { return !should[d] || !passes[d] })
			position := slices.Index(ran, i)
			if should[i] != (position >= 0) {
				t.Fatalf("action %d ran: %t, should: %t", i, position >= 0, should[i])
			}
			for _, d := range after[i] {
				if should[i] && slices.Index(ran, d) > position {
					t.Fatalf("action %d ran before %d", i, d)
				}
			}
		}
	})
}
