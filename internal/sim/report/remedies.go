// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// remedyFor returns what to do about a violation in a plan. What helps against another end depends
// on the fault.
func remedyFor(about oracle.Entry, plan fault.Plan) string {
	switch {
	case about.StaleRemedy != "" && plan.Hides():
		return about.StaleRemedy
	case about.Remedy != "" || about.Name != oracle.SameEnd:
		return about.Remedy
	case plan.Hides():
		return "The operator acted on a stale cache, and not again when it was fresh. Watch everything that it reads, " +
			"and let a conflict refuse a write that is based on an old state."
	}
	for _, f := range plan.Faults {
		if remedy := endRemedies[f.Kind]; remedy != "" {
			return remedy
		}
	}
	return ""
}

const occupiedRemedy = "Check with metav1.IsControlledBy that an object of the wanted name is the operator's own before using it. " +
	"If it is not, say so in a condition and return an error: no event enqueues the owner when the other object is gone."

const failedRemedy = "Return the error, so that the object is reconciled again, and compute the whole status in each reconcile, " +
	"so that nothing of the error stays when it is over."

var endRemedies = map[fault.Kind]string{
	fault.OccupyName:             occupiedRemedy,
	fault.OccupyNameByController: occupiedRemedy,
	fault.LeaveOrphan:            "Set the owner reference of an object that was there before, or refuse the object with a condition.",
	fault.RefuseWrite:            failedRemedy,
	fault.LoseWriteAnswer:        failedRemedy,
	fault.DeleteBeforeWrite:      "Watch the children with Owns, so that the owner is reconciled when one is deleted.",
}
