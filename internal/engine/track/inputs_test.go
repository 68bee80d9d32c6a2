// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The inputs of a reconcile are unchanged as long as a reader returns the same versions.
func TestInputs(t *testing.T) {
	nothing := func(*testing.T, client.Client) {}
	a := func(t *testing.T, c client.Client) { get(t, c, "a") }
	all := func(t *testing.T, c client.Client) {
		must(t, c.List(t.Context(), &corev1.PodList{}, client.InNamespace("default")))
	}
	missing := func(t *testing.T, c client.Client) { _ = c.Get(t.Context(), key("missing"), &corev1.Pod{}) }
	untyped := func(t *testing.T, c client.Client) {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		must(t, c.Get(t.Context(), key("a"), obj))
	}
	change := func(name string) func(*testing.T, client.Client) {
		return func(t *testing.T, c client.Client) { label(t, c, name, "theirs") }
	}
	create := func(t *testing.T, c client.Client) { must(t, c.Create(t.Context(), pod("missing"))) }
	remove := func(t *testing.T, c client.Client) { must(t, c.Delete(t.Context(), pod("a"))) }
	tests := []struct {
		name         string
		read, change func(t *testing.T, c client.Client)
		want         bool
	}{
		{"nothing was read", nothing, change("a"), true},
		{"an object, unchanged", a, nothing, true},
		{"an object, changed", a, change("a"), false},
		{"an object, deleted", a, remove, false},
		{"an object, and another one changed", a, change("b"), true},
		{"an object without a Go type, unchanged", untyped, nothing, true},
		{"an object without a Go type, changed", untyped, change("a"), false},
		{"an object that is not there", missing, nothing, true},
		{"an object that is created", missing, create, false},
		{"a list, unchanged", all, nothing, true},
		{"a list, with a changed item", all, change("b"), false},
		{"a list, with a new item", all, create, false},
		{"a list, with one item less", all, remove, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t, "a", "b")
			record := &Record{}
			record.NoteInputs()
			test.read(t, NewClient(server, record))
			inputs := record.Inputs()
			test.change(t, server)
			for range 2 { // it reads into the same object
				same(t, "unchanged", test.want, inputs.Unchanged(t.Context(), server))
			}
		})
	}
}

// What can't be compared makes the next reconcile run.
func TestUnknownInputs(t *testing.T) {
	tests := []struct {
		name string
		read func(t *testing.T, c *Client, live *Reader)
	}{
		{"a live read", func(t *testing.T, _ *Client, live *Reader) { get(t, live, "a") }},
		{"a live list", func(t *testing.T, _ *Client, live *Reader) { must(t, live.List(t.Context(), &corev1.PodList{})) }},
		{"a subresource", func(t *testing.T, c *Client, _ *Reader) {
			_ = c.SubResource("scale").Get(t.Context(), pod("a"), pod("a"))
		}},
		{"a read that has failed", func(t *testing.T, c *Client, _ *Reader) {
			_ = c.Get(t.Context(), key("a"), &corev1.Namespace{}) // the error is not that it is missing
			c.record.got(key("a"), &corev1.Pod{}, errRead)
		}},
		{"too many", func(t *testing.T, c *Client, _ *Reader) {
			for range mostInputs + 1 {
				get(t, c, "a")
			}
		}},
		{"a no-op of an object that no cache has", func(t *testing.T, c *Client, _ *Reader) {
			_ = c.Delete(t.Context(), pod("missing"))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t, "a")
			record := &Record{}
			record.NoteInputs()
			c := NewClient(server, record)
			test.read(t, c, NewReader(server, c))
			if record.Inputs() != nil {
				t.Error("it is as if all that the reconcile depends on were known")
			}
			if len(record.inputs.all) > mostInputs {
				t.Errorf("%d inputs are kept", len(record.inputs.all))
			}
		})
	}
	if (*Inputs)(nil).Unchanged(t.Context(), nil) {
		t.Error("unknown inputs are unchanged")
	}
}

// Inputs are only noted if they are wanted.
func TestInputsThatAreNotWanted(t *testing.T) {
	record := &Record{}
	c := NewClient(newServer(t, "a"), record)
	get(t, c, "a")
	if record.Inputs() != nil {
		t.Error("they are noted")
	}
}
