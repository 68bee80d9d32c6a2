// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Changed says that something outside the cluster was changed, or that it was tried.
type Changed struct {
	Step string
	// Verb is create, update, delete or release.
	Verb string
	// ID is that of the resource, as far as it is known.
	ID string
	// Drift are the paths by which the resource differed before the call.
	Drift []string
	// Before and After are what was seen of the resource before the call, and after it if that is known.
	// They have no secrets.
	Before, After Seen
	Err           error
}

// Seen is how a resource outside the cluster was seen.
type Seen struct {
	State    string            `json:"state,omitempty"` // "absent", "up to date", "drifted", ...; empty if it is not known
	Settings map[string]string `json:"settings,omitempty"`
}

func (Changed) event() {}

func (e Changed) String() string {
	text := e.Verb + " of the resource"
	if e.ID != "" {
		text += " " + e.ID
	}
	return withError(text, e.Err)
}

func (e Changed) withTexts(f func(string) string) Event {
	e.Step, e.ID, e.Drift, e.Err = f(e.Step), f(e.ID), eachText(e.Drift, f), errorWithTexts(e.Err, f)
	e.Before, e.After = e.Before.withTexts(f), e.After.withTexts(f)
	return e
}

func (s Seen) withTexts(f func(string) string) Seen {
	if s.State = f(s.State); s.Settings != nil {
		settings := make(map[string]string, len(s.Settings))
		for key, value := range s.Settings {
			settings[key] = f(value)
		}
		s.Settings = settings
	}
	return s
}

func (e Changed) bytes() int {
	return errorBytes(e.Err) + sized(len(e.Drift)*stringBytes) + 3*stringBytes*(len(e.Before.Settings)+len(e.After.Settings))
}

// ChangeLog returns an observer that writes what was changed outside the cluster to w, a line of
// JSON for each [Changed]: to a file that is appended to, or to a pipe of a log shipper. It has no
// secrets. Failed is called with an error of w, and may be nil; an operator that must not change what
// it can't record has to end then.
//
// A process that is killed between the call and the line leaves none: the next one sees what has
// become of the call, and the annotations of the object have its intent.
func ChangeLog(w io.Writer, failed func(error)) Observer {
	return &changeLog{encoder: json.NewEncoder(w), failed: failed}
}

type changeLog struct {
	mu      sync.Mutex // guards encoder: a line is one write
	encoder *json.Encoder
	failed  func(error)
}

// A changeLine is a line of a change log.
type changeLine struct {
	Time       time.Time `json:"time"`
	Controller string    `json:"controller"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Run        string    `json:"run,omitempty"`
	Step       string    `json:"step,omitempty"`
	Verb       string    `json:"verb"`
	ID         string    `json:"id,omitempty"`
	Drift      []string  `json:"drift,omitempty"`
	Before     Seen      `json:"before,omitzero"`
	After      Seen      `json:"after,omitzero"`
	Error      string    `json:"error,omitempty"`
}

// Observe implements [Observer].
func (l *changeLog) Observe(_ context.Context, entry Entry) {
	e, ok := entry.Event.(Changed)
	if !ok {
		return
	}
	line := changeLine{
		Time: entry.Time, Controller: entry.Controller, Kind: entry.Object.Kind, Namespace: entry.Object.Namespace, Name: entry.Object.Name,
		Step: e.Step, Verb: e.Verb, ID: e.ID, Drift: e.Drift, Before: e.Before, After: e.After,
	}
	if entry.Run != nil {
		line.Run = string(entry.Run.ID)
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.encoder.Encode(line); err != nil && l.failed != nil {
		l.failed(err)
	}
}
