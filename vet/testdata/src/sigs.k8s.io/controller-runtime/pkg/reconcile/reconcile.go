// Package reconcile stands for the real one.
package reconcile

import "time"

type Result struct {
	Requeue      bool
	RequeueAfter time.Duration
}
