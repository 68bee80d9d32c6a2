// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/journal"
)

// changeLines returns the lines of a change log, without what differs between runs.
func changeLines(t *testing.T, log *bytes.Buffer, id string) (lines []string) {
	t.Helper()
	for text := range strings.Lines(log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line["time"] == "" || line["run"] == nil || line["controller"] != "silos" || line["name"] != "logs" {
			t.Errorf("line %s", text)
		}
		for _, key := range []string{"time", "run", "controller", "kind", "namespace", "name", "step"} {
			delete(line, key)
		}
		short, _ := json.Marshal(line)
		lines = append(lines, strings.ReplaceAll(string(short), id, "ID"))
	}
	log.Reset()
	return lines
}

// What is changed outside is logged, with how it was before and after: each call once, and nothing
// while nothing changes.
func TestChangeLog(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		var log bytes.Buffer
		d.observers = []journal.Observer{journal.ChangeLog(&log, func(err error) { t.Error(err) })}
		d.store.seen = func(o *external.Observation) {
			if o.State != external.Absent {
				o.Settings = map[string]string{"size": d.store.all[d.store.ids()[0]].size}
			}
		}
		d.publishing()
		expect := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, changeLines(t, &log, external.IDOf(d.get()))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
		}
		d.settle()
		expect("created", `{"after":{"settings":{"size":"small"},"state":"up to date"},"before":{"state":"absent"},"id":"ID","verb":"create"}`)
		d.passesTimes(3)
		expect("nothing has changed")
		d.change(func(obj *Silo) { obj.Spec.Size = "huge" })
		d.store.fail = failing("update", errors.New("timeout"))
		d.fails()
		expect("not updated", `{"before":{"settings":{"size":"small"},"state":"drifted"},"drift":["spec.size"],"error":"timeout","id":"ID","verb":"update"}`)
		d.store.fail = nil
		d.settle()
		expect("updated", `{"after":{"settings":{"size":"huge"},"state":"up to date"},"before":{"settings":{"size":"small"},"state":"drifted"},"drift":["spec.size"],"id":"ID","verb":"update"}`)
		if strings.Contains(log.String(), secretText) {
			t.Error("the password is in the log")
		}
		id := external.IDOf(d.get())
		d.delete()
		d.passes()
		want := []string{`{"after":{"state":"absent"},"before":{"settings":{"size":"huge"},"state":"up to date"},"id":"ID","verb":"delete"}`}
		if diff := cmp.Diff(want, changeLines(t, &log, id)); diff != "" {
			t.Errorf("deleted (-want +got)\n%s", diff)
		}
	})
}

// A log that can't be written is reported, and stops nothing.
func TestChangeLogFails(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		failed := 0
		d.observers = []journal.Observer{journal.ChangeLog(fullDisk{}, func(error) { failed++ }), journal.ChangeLog(fullDisk{}, nil)}
		d.restart()
		d.settle()
		if failed != 1 {
			t.Errorf("failed %d times", failed)
		}
	})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
