// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	outcomes "github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

// outcome is what steps have returned, taken apart.
type outcome struct {
	err   error
	waits []ctrlkit.Waiting
	after time.Duration
	// priority is what a step wants for the next reconcile, nil if none does.
	priority *int
	failure  failure.Classification
	silent   bool
	delay    time.Duration // of the backoff
	// passed says that nothing has interrupted the steps: no error, wait, requeue or exit.
	passed bool
}

func (r *run[T]) outcome(result ctrl.Result, err error) outcome {
	o := outcome{waits: ctrlkit.Waits(err)}
	signal := err
	result, o.err = ctrlkit.IgnoreExit(result, err)
	o.after, o.priority = outcomes.Delay(result), result.Priority
	// A time beside the mark of RequeueWithin, which is all that can be left of such an
	// error, interrupts nothing.
	o.passed = o.err == nil && len(o.waits) == 0 && !errors.Is(signal, ctrlkit.ErrExit) && (o.after == 0 || signal != nil)
	return o
}

// join keeps what o says of its failure, and joins the rest by the rules of package outcome.
func (o outcome) join(p outcome) outcome {
	all := o.parts().Join(p.parts())
	o.err, o.waits, o.passed = all.Err(), all.Waits, !all.Interrupted
	o.after, o.priority = all.Result.RequeueAfter, all.Result.Priority
	return o
}

func (o outcome) parts() outcomes.Outcome[ctrlkit.Waiting] {
	return outcomes.Outcome[ctrlkit.Waiting]{
		Result:      reconcile.Result{RequeueAfter: o.after, Priority: o.priority},
		Causes:      outcomes.CausesOf(o.err),
		Waits:       o.waits,
		Interrupted: !o.passed,
	}
}

// stalledBy returns what a person has to change according to some declared conditions, empty if
// nothing.
func stalledBy(set *condition.Set, declared []condition.Declaration) string {
	var texts []string
	for _, d := range declared {
		if set != nil && set.WorstSeverity(d.Type) == condition.SeverityError {
			c, _ := set.Get(d.Type)
			texts = append(texts, c.Reason+": "+c.Message)
		}
	}
	return strings.Join(texts, "; ")
}
