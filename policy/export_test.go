// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

var (
	ParseReconcile = parseReconcile
	ParseReclaim   = parseReclaim
)

// Sources returns where the parts were found: reconcile, reclaim and allow.
func (d Decision) Sources() [3]string {
	return [3]string{d.reconciled.source.String(), d.reclaimed.source.String(), d.allowed.source.String()}
}
