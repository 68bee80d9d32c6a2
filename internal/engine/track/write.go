// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A Write is a request that the API server has accepted.
type Write struct {
	Own               bool // of a record that the operator alone writes
	Verb, Subresource string
	Object            journal.Object
	Sent              *Sent  // the paths that were sent, nil if they are not known
	Owner             string // the field owner that they were sent with
	// NoOp is true if the object is as it was: the answer has a resource version that was known
	// before, or the write was a dry run or the deletion of an object that is being deleted.
	NoOp bool
	// Input is true if [Record.Inputs] have the object as the write left it.
	Input bool

	// What the write did, for the detection of hot loops. Before is nil if it is not known; then
	// After is nil, too, unless the answer was an object. Both are nil for subresources that are no
	// part of the object.
	Before, After *Snapshot
	Verified      bool         // Before was read from the API server
	Cached        reflect.Type // of the object, if that is cached

	// kept says that the object with the answer is not changed afterwards: see [ContentPatch].
	kept bool
}

// by notes the field owner that a write names itself.
func (w *Write) by(owner string) *Write {
	if owner != "" {
		w.Owner = owner
	}
	return w
}

// Sent are the paths of what a write sent. They are found when they are needed: without an observer,
// few are.
type Sent struct {
	find  func() []string
	paths []string
}

// SentPaths returns paths that are known.
func SentPaths(paths ...string) *Sent { return &Sent{paths: paths} }

// Paths returns the paths, sorted. It is nil for those that can't be found.
func (s *Sent) Paths() []string {
	if s == nil {
		return nil
	}
	if s.find != nil {
		s.paths, s.find = s.find(), nil
	}
	return s.paths
}

// IsPartOf reports whether what is written to a subresource is a part of the object.
func IsPartOf(subresource string) bool { return subresource == "" || subresource == "status" }

// A Change is what a write did to one field.
type Change struct {
	Path   string
	Value  any  // after the write, nil if it is gone
	Differ bool // it had another value before
	Added  bool // it had none before
}

// Changes returns what the write did to the fields that it sent, sorted by their paths.
func (w *Write) Changes() []Change {
	if w.Before == nil || w.After == nil {
		return nil
	}
	fields := w.Sent.Paths()
	before, after := w.Before.leavesOfPaths(fields, w.Subresource), w.After.leavesOfPaths(fields, w.Subresource)
	var all []Change
	for _, path := range slices.Sorted(maps.Keys(union(before, after))) {
		differ := !reflect.DeepEqual(before[path], after[path])
		// A whole object that is sent says nothing about the fields that are as they were read.
		if differ && fields == nil || fields != nil && slices.ContainsFunc(fields, func(f string) bool { return Related(f, path) }) {
			all = append(all, Change{path, after[path], differ, before[path] == nil})
		}
	}
	return all
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// Related reports whether two paths are the same, or one is within the other.
func Related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[')
}

// Creates reports whether the object is a new one.
func (w *Write) Creates() bool {
	return w.Verb == "create" && w.Subresource == "" || w.Before != nil && w.Before.Absent && w.After != nil
}

// Hash returns a number for a text.
func Hash(text []byte) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write(text) // writing to a hash never fails
	return hash.Sum64()
}
