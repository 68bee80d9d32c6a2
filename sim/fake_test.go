// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// shelf is a fake that lists what was put on it.
type shelf struct {
	starts int
	owners map[string]types.UID
}

func (s *shelf) Resources() []OwnedResource {
	var list []OwnedResource
	for id, owner := range s.owners {
		list = append(list, OwnedResource{Resource{ID: id}, owner})
	}
	return list
}

var shelves = NewFake("shelf", func() *shelf { return &shelf{owners: map[string]types.UID{}} })

// A fake is kept when the operator crashes, is new in each run, and its orphans are found.
func TestFakeOfARun(t *testing.T) {
	w := Workload{Operator: func(ctx context.Context, p *Process) error {
		if err := p.Call(ctx, Call{System: "shelf", Verb: "start"}, func() error { shelves.Of(p).starts++; return nil }); err != nil {
			return err
		}
		return idleOperator(ctx, p)
	}}
	for range 2 {
		w.Script = func(w *World) {
			x := configMap("x")
			w.Create(x)
			x, _ = Get(w, x)
			shelves.Of(w).owners["thing"] = x.UID
			w.Settle()
			if n := shelves.Of(w).starts; n != 1 {
				t.Errorf("%d starts in this run", n)
			}
			w.Delete(x)
			w.must("restart", func() error { w.run.processes.restartAll(); return nil })
			w.Sleep(time.Minute)
			if n := shelves.Of(w).starts; n != 2 {
				t.Errorf("%d starts after the restart", n)
			}
		}
		result := play(t, w, "")
		orphan := violation(oracle.NoLeak, "configmaps default/x is gone, its external resource thing of shelf is not")
		if !slices.ContainsFunc(result.violations, func(v oracle.Violation) bool { return v.Oracle == orphan.Oracle && v.Text == orphan.Text }) {
			t.Errorf("the orphan is not found: %v", result.violations)
		}
		if _, ok := result.checkpoints[0]["external shelf thing"]; !ok {
			t.Errorf("the fake is not compared: %v", result.checkpoints[0])
		}
	}
}

// A player has the instance of the run, of which no crash makes another one.
func TestFakeOfAPlayer(t *testing.T) {
	for range 2 {
		stocked := player.New(func(s *player.Stage, cm *corev1.ConfigMap) error {
			if cm.Name == "x" {
				shelves.Of(s).starts++
			}
			return nil
		})
		play(t, Workload{
			Players: player.None().With(stocked),
			Operator: func(ctx context.Context, p *Process) error {
				shelves.Of(p).starts += 10
				return idleOperator(ctx, p)
			},
			Script: func(w *World) {
				w.Create(configMap("x"))
				w.Settle()
				w.must("restart", func() error { w.run.processes.restartAll(); return nil })
				w.Sleep(time.Minute)
				if n := shelves.Of(w).starts; n != 21 {
					t.Errorf("got %d, want two starts and a call of the player", n)
				}
			},
		}, "")
	}
}

// Who asks for a fake outside of a run gets a message that says so.
func TestFakeOfNoRun(t *testing.T) {
	for want, of := range map[string]func(){
		"there is no run":    func() { shelves.Of(player.NewStage(nil, "x")) },
		"an external system": func() { shelves.Of(&World{member: fakes.New("shelf").Member()}) },
		"two fakes have the name": func() {
			w := &World{member: fakes.New().Member()}
			NewFake("shelf", func() int { return 1 }).Of(w)
			shelves.Of(w)
		},
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got the panic %q", got)
				}
			}()
			of()
		})
	}
}
