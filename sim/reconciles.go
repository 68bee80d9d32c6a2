// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
)

// reconciles are the results of the last reconciles of one process. controller-runtime logs each
// result, and has no other way to see it from outside.
type reconciles struct {
	mu      sync.Mutex
	failing map[[2]string]string // errors, by controller and object

	reads *reads // is notified when a reconcile ends
}

func newReconciles() *reconciles { return &reconciles{failing: map[[2]string]string{}} }

// failed returns the objects whose last reconcile has returned an error, ordered.
func (r *reconciles) failed() []judge.Failing {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []judge.Failing
	keys := slices.SortedFunc(maps.Keys(r.failing), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		list = append(list, judge.Failing{Controller: key[0], Object: key[1], Err: r.failing[key]})
	}
	return list
}

// logger returns a logger that sees what controllers log.
func (r *reconciles) logger(l logr.Logger) logr.Logger {
	return logr.New(resultSink{LogSink: l.GetSink(), results: r})
}

// resultLevel is the level at which controllers log the results that are no errors.
const resultLevel = 5

// resultSink is the sink of a logger that sees what controllers log.
type resultSink struct {
	logr.LogSink
	results *reconciles
	pending []any // values that LogSink does not have yet: most loggers never log

	controller, namespace, name string
	id                          types.UID // of the reconcile; empty outside
}

// full returns the sink that logs, with all values.
func (s resultSink) full() logr.LogSink {
	if len(s.pending) > 0 {
		return s.LogSink.WithValues(s.pending...)
	}
	return s.LogSink
}

// Enabled reports whether a level is logged, or seen.
func (s resultSink) Enabled(level int) bool { return level == resultLevel || s.LogSink.Enabled(level) }

// Info sees the result of a reconcile that has returned no error.
func (s resultSink) Info(level int, message string, pairs ...any) {
	if s.name != "" && (message == "Reconcile successful" || strings.HasPrefix(message, "Reconcile done, requeueing")) {
		s.results.mu.Lock()
		delete(s.results.failing, s.key())
		s.results.mu.Unlock()
		s.ended(message == "Reconcile successful")
	}
	if message == track.UnwatchedMessage && s.id != "" && s.results.reads != nil {
		s.results.reads.said(s.id, s.key(), textOf(pairs, track.UnwatchedKind), textOf(pairs, track.UnwatchedStep))
	}
	if s.LogSink.Enabled(level) {
		s.full().Info(level, message, pairs...)
	}
}

// Error sees the result of a reconcile that has returned an error.
func (s resultSink) Error(err error, message string, pairs ...any) {
	if s.name != "" && message == "Reconciler error" {
		s.results.mu.Lock()
		s.results.failing[s.key()] = fmt.Sprint(err)
		s.results.mu.Unlock()
		s.ended(false)
	}
	s.full().Error(err, message, pairs...)
}

// ended notes the end of a reconcile. Sleeps says that it has asked for no time.
func (s resultSink) ended(sleeps bool) {
	if s.id != "" && s.results.reads != nil {
		s.results.reads.ended(s.id, s.key(), sleeps)
	}
}

// textOf returns the text of a key among key-value pairs.
func textOf(pairs []any, key string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == key {
			text, _ := pairs[i+1].(string)
			return text
		}
	}
	return ""
}

func (s resultSink) key() [2]string { return [2]string{s.controller, s.namespace + "/" + s.name} }

// WithValues returns a sink of the same results: controllers say in values of which object they
// log.
func (s resultSink) WithValues(pairs ...any) logr.LogSink {
	for i := 0; i+1 < len(pairs) && s.id == ""; i += 2 { // what a reconcile adds later is about others
		if id, ok := pairs[i+1].(types.UID); ok && pairs[i] == "reconcileID" {
			s.id = id
		}
		value, ok := pairs[i+1].(string)
		if !ok {
			continue
		}
		switch pairs[i] {
		case "controller":
			s.controller = value
		case "namespace":
			s.namespace = value
		case "name":
			s.name = value
		}
	}
	if slices.ContainsFunc(pairs, mayChange) {
		s.LogSink, s.pending = s.full().WithValues(pairs...), nil
	} else {
		s.pending = slices.Concat(s.pending, pairs)
	}
	return s
}

// mayChange reports whether a value may be another one when it is logged.
func mayChange(value any) bool {
	switch value.(type) {
	case nil, string, types.UID, types.NamespacedName, klog.ObjectRef, bool, int, int32, int64, time.Duration:
		return false
	}
	return true
}

// WithName returns a sink of the same results.
func (s resultSink) WithName(name string) logr.LogSink {
	s.LogSink = s.LogSink.WithName(name)
	return s
}
