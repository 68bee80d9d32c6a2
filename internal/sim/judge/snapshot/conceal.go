// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// conceal replaces the values of a difference in the data of a Secret by short hashes, by which
// they can still be distinguished. Differences are printed, and written into the reports of CI.
func conceal(d oracle.Difference) oracle.Difference {
	isSecret := strings.HasPrefix(d.Thing, "secrets ") || strings.HasPrefix(d.Thing, "Secret ") // the latter in a cache
	if !isSecret || !cluster.IsSecretData(d.Path) {
		return d
	}
	want, got := hashOf(d.Want), hashOf(d.Got)
	n := 4
	for n < len(want) && n < len(got) && want[:n] == got[:n] {
		n++
	}
	d.Want, d.Got = hidden(want, n), hidden(got, n)
	return d
}

// hashOf returns the hash of a value, and nothing for a field that is not set.
func hashOf(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

func hidden(hash string, n int) string {
	if hash == "" {
		return ""
	}
	return "<secret " + hash[:n] + ">"
}
