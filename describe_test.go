// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

func TestDescribe(t *testing.T) {
	var j journal
	a, b, c := j.ok("A"), j.ok("B"), j.ok("C")
	ready := func(context.Context) (bool, error) { return true, nil }
	for _, tt := range []struct {
		action ctrlkit.Action
		want   string
	}{
		{a, "A"},
		{ctrlkit.Nop(), "Nop"},
		{ctrlkit.Join(), "Join"},
		{ctrlkit.Join(a, b), "Join(A, B)"},
		{ctrlkit.JoinOrdered(a, b), "JoinOrdered(A, B)"},
		{ctrlkit.ParallelJoin(a, ctrlkit.Sequential(b, c)), "ParallelJoin(A, Sequential(B, C))"},
		{ctrlkit.If(true, a), "If(true, A)"},
		{ctrlkit.IfElse(false, a, b), "IfElse(false, A, B)"},
		{ctrlkit.IfFunc("ready", ready, a), "If(ready, A)"},
		{ctrlkit.IfElseFunc("ready", ready, a, b), "IfElse(ready, A, B)"},
		{ctrlkit.Timeout(5*time.Second, a), "Timeout(5s, A)"},
		{ctrlkit.Retry(wait.Backoff{Steps: 3}, a), "Retry(3 times, A)"},
		{ctrlkit.Once(a), "Once(A)"},
		{ctrlkit.Finally(a, b), "Finally(A, B)"},
		{ctrlkit.Join(foreignAction{a}), "Join(foreign)"},
		{ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { x := g.Add(a); y := g.Add(b); g.Add(c, y, x) }), "Graph(A, B, C after A and B)"},
	} {
		same(t, "Description", tt.want, tt.action.Description())
		same(t, "Describe", tt.want, ctrlkit.Describe(tt.action).String())
	}
}

func TestDescribedWrapperKeepsItsInside(t *testing.T) {
	var j journal
	got := ctrlkit.Describe(ctrlkit.Join(describedAction{foreignAction{j.ok("A")}}))
	want := outline.Node{Kind: outline.KindJoin, Children: []outline.Node{{Kind: outline.KindOnce, Label: "mine"}}}
	same(t, "node", want, got)
}

type describedAction struct{ foreignAction }

func (describedAction) Describe() ctrlkit.Node {
	return outline.Node{Kind: outline.KindOnce, Label: "mine"}
}
