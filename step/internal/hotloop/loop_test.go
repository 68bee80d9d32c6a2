// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// The text says what is written again and again, by which other client, and the remedy.
func TestTextsOfALoop(t *testing.T) {
	tier := []string{".metadata.labels.tier"}
	tests := []struct {
		name     string
		verb     string
		fight    bool
		paths    []string
		managers []string
		want     string
	}{
		{"an echo", "patch", false, tier, nil, `.metadata.labels.tier of Pod default/self is written again and again: a step gives it another value each time`},
		{"an echo of unknown fields", "update", false, nil, nil, `update of Pod default/self is written again and again: a step gives it another value each time`},
		{"created", "create", true, nil, nil, `Pod default/self is created again and again: another client deletes it, find out which one and stop one of the two`},
		{"deleted", "delete", true, nil, nil, `Pod default/self is deleted again and again: another client creates it, find out which one and stop one of the two`},
		{"deleted, by a known one", "delete", true, nil, []string{"helm"}, `Pod default/self is deleted again and again: field manager "helm" creates it, stop one of the two`},
		{"a second copy", "patch", true, tier, []string{"things"}, `.metadata.labels.tier of Pod default/self is written again and again: field manager "things" writes it too, ` +
			`which is the name of this controller: look for a second copy of the operator and stop one of the two`},
		{"known managers", "patch", true, tier, []string{"helm", "kubectl"}, `.metadata.labels.tier of Pod default/self is written again and again: ` +
			`field manager "helm", "kubectl" writes it too, stop one of the two`},
		{"an applied field", "apply", true, tier, []string{"hpa"}, `.metadata.labels.tier of Pod default/self is written again and again: ` +
			`field manager "hpa" writes it too, stop one of the two, or leave the field to it (a child: apply.Theirs)`},
		{"unknown managers", "patch", true, tier, nil, `.metadata.labels.tier of Pod default/self is written again and again: ` +
			`another client undoes it, which the managed fields do not name: find out which one and stop one of the two`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			loop := &Loop{Write: &track.Write{Verb: test.verb, Object: self}, Fight: test.fight, Paths: test.paths, Managers: test.managers}
			equal(t, "", test.want, loop.text("things"))
		})
	}
}
