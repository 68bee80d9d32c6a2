// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import "testing"

// A version is of the epoch of a process if it is not older than the first write of that process.
func TestEpoch(t *testing.T) {
	var e epoch
	if e.includes("7") {
		t.Error("a version is included before anything was written")
	}
	e.begin("10")
	e.begin("20")
	for version, want := range map[string]bool{"9": false, "10": true, "11": true, "100": true, "": false, "unordered": false} {
		if got := e.includes(version); got != want {
			t.Errorf("version %q: got %v, want %v", version, got, want)
		}
	}
	unordered := epoch{version: "unordered"}
	if unordered.includes("11") || unordered.includes("unordered") {
		t.Error("versions without an order are included")
	}
}
