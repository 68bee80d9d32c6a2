// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "testing"

func TestDifferencesAreOneLine(t *testing.T) {
	for want, d := range map[string]Difference{
		"- secrets default/x is missing":                    {Thing: "secrets default/x", Want: "there"},
		"+ secrets default/x should not be there":           {Thing: "secrets default/x", Got: "there"},
		`~ secrets default/x data.a: got "2", want "1"`:     {Thing: "secrets default/x", Path: ".data.a", Want: "1", Got: "2"},
		`~ secrets default/x data.a: got nothing, want "1"`: {Thing: "secrets default/x", Path: ".data.a", Want: "1"},
	} {
		if got := d.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := (Violation{Oracle: NoLeak, Text: "b is left"}).String(), "no-leak: b is left"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
