// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"
	"testing"
)

// What could not be hidden is said, and what the program has written is not taken for it.
func TestIsolationSaysWhatIsVisible(t *testing.T) {
	var visible, refused, lines []string
	heard := Isolation{
		Visible: func(text string) { visible = append(visible, text) }, Refused: func(text string) { refused = append(refused, text) },
	}.Heard(func(text string) { lines = append(lines, text) })
	for _, line := range []string{visiblePrefix + "/run: operation not permitted", refusedPrefix + "example.com:443", "ctrlkit visible", ""} {
		heard(line)
	}
	if !slices.Equal(visible, []string{"/run: operation not permitted"}) || !slices.Equal(refused, []string{"example.com:443"}) || len(lines) != 2 {
		t.Errorf("visible %q, refused %q, lines %q", visible, refused, lines)
	}
}
