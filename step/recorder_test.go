// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// regards is a recorder that keeps the resource versions of what events regard.
type regards struct {
	*world
	versions []string
}

func (r *regards) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.versions = append(r.versions, regarding.(client.Object).GetResourceVersion())
	r.world.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// Events are cut to what the API server accepts, by all that record them, and regard no version of
// the object: equal ones are one series.
func TestEventsAreShortened(t *testing.T) {
	w := newWorld(t, newThing())
	r := &regards{world: w}
	options := w.options()
	options.Recorder = r
	long := strings.Repeat("é", 600)
	w.engineWith(options, doing("A", does(func(_ context.Context, req *request) {
		req.Event("Warning", "Broken", "Do", "%s", long)
		req.Recorder.Eventf(req.Object, nil, "Warning", "Broken", "Do", "a%s", long)
		req.Event("Normal", "Done", "Do", "%d%%", 100)
	})))
	w.must()
	events := w.takeEvents()
	for _, e := range events[:2] {
		note := strings.TrimPrefix(e, "Broken: ")
		if len(note) > 1024 || len(note) < 1000 || !utf8.ValidString(note) || !strings.HasSuffix(note, " ...") {
			t.Errorf("a note of %d bytes: %s", len(note), note)
		}
	}
	same(t, "a short one", "Done: 100%", events[2])
	same(t, "versions", []string{"", "", ""}, r.versions)
	if w.thing().ResourceVersion == "" {
		t.Error("the object itself has lost its version")
	}
}

// Conditions that become unhealthy for one reason are one event, which has all they say, and those
// of two reasons are two.
func TestOneEventForAReason(t *testing.T) {
	for _, test := range []struct {
		reason string
		want   []string
	}{
		{"Broken", []string{"Broken: no disk; no net"}},
		{"Slow", []string{"Broken: no disk", "Slow: no net"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(keeping("A", does(func(_ context.Context, req *request) {
				req.Conditions.MarkUnhealthy("Disk", condition.SeverityWarning, "Broken", "no disk")
				req.Conditions.MarkUnhealthy("Net", condition.SeverityWarning, test.reason, "no net")
			}), "Disk", "Net"))
			w.must()
			w.said(test.want...)
		})
	}
}
