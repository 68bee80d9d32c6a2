// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import "testing"

// What is written to a subresource that is no part of the object says nothing of the object.
func TestSubresources(t *testing.T) {
	server := newServer(t, "a")
	record := &Record{}
	c := NewClient(server, record)
	get(t, c, "a")
	s := &subresource{client: c, name: "scale"}
	for _, w := range []*Write{{Verb: "patch", Subresource: "scale", Before: &Snapshot{}}, {Verb: "patch", Subresource: "status", Before: &Snapshot{}}} {
		s.end(t.Context(), w, pod("a"), pod("body"), "", false, nil)
		if w.Before != nil || w.After != nil || w.NoOp {
			t.Errorf("the write of %s is %+v", w.Subresource, w)
		}
	}
	if !IsPartOf("") || !IsPartOf("status") || IsPartOf("scale") {
		t.Error("the parts of an object are wrong")
	}
}
