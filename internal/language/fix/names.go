// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import "strings"

// Module is the path of the package that the names move to.
const Module = "github.com/ctrlkit/ctrlkit"

// originals are the import paths that the original library has had.
var originals = []string{
	"github.com/risingwavelabs/ctrlkit",
	"github.com/risingwavelabs/risingwave-operator/pkg/ctrlkit",
	"github.com/singularity-data/risingwave-operator/pkg/ctrlkit",
	"github.com/arkbriar/ctrlkit/pkg/ctrlkit",
	"github.com/arkbriar/ctrlkit/ctrlkit/pkg/ctrlkit",
}

// isBelow reports whether path is a package below one of those in roots.
func isBelow(path string, roots []string) bool {
	for _, root := range roots {
		if strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// renamed has the names of the original library that another name replaces wherever they stand, or
// the same one.
var renamed = map[string]string{
	"Action":         "Action",
	"ErrExit":        "ErrExit",
	"Exit":           "Exit",
	"If":             "If",
	"IfElse":         "IfElse",
	"IgnoreExit":     "IgnoreExit",
	"Join":           "Join",
	"JoinOrdered":    "JoinOrdered",
	"NewAction":      "NewAction",
	"NoRequeue":      "NoRequeue",
	"ParallelJoin":   "ParallelJoin",
	"RequeueAfter":   "RequeueAfter",
	"RequeueIfError": "RequeueIfError",
	"Sequential":     "Sequential",
	"Timeout":        "Timeout",

	"Continue":           "NoRequeue",
	"JoinInParallel":     "ParallelJoin",
	"OrderedJoin":        "JoinOrdered",
	"ReconcileAction":    "Action",
	"RequeueImmediately": "RequeueWithBackoff", // it sets Result.Requeue, as it did
	"SequentialJoin":     "JoinOrdered",
	"Shared":             "Once",
	"WrapAction":         "NewAction",

	// Deprecated here.
	"ActionFunc":                           "ActionFunc",
	"ActionHook":                           "ActionHook",
	"ChainActionHooks":                     "ChainActionHooks",
	"ChainedActionHooks":                   "ChainedActionHooks",
	"ControllerManagerActionLifeCycleHook": "ControllerManagerActionLifeCycleHook",
	"CrontollerManagerActionLifeCycleHook": "ControllerManagerActionLifeCycleHook",
	"ExitIf":                               "ExitIf",
	"NeedsRequeue":                         "NeedsRequeue",
	"RequeueIfErrorAndWrap":                "RequeueIfErrorAndWrap",
}

// left says what a person has to write instead of names that are not replaced.
var left = map[string]string{
	"DryRun": "print ctrlkit.Describe of the workflow",
	"EmptyControllerManagerActionLifeCycleHook": "embed nothing: an implementation needs no methods of a hook",
}

// called are the names that are replaced only where they are called.
var called = map[string]string{
	"OptimizeWorkflow":  "remove it: a workflow is run as it is built",
	"Parallel":          "ctrlkit.ParallelJoin with one action",
	"Retry":             "ctrlkit.Retry with a wait.Backoff",
	"RetryInterval":     "ctrlkit.Retry with a wait.Backoff",
	"ValidateOwnership": "metav1.IsControlledBy",
}
