// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A past is a history that knows one version of each object, and may suspect a hot loop.
type past struct {
	version   string
	suspected bool
}

func (p past) Known(_ journal.Object, before *Snapshot) (*Snapshot, bool) { return before, p.suspected }

func (p past) Answered(_ journal.Object, version string) bool { return version == p.version }

// A write is noted with the state before it, its answer, its fields and its owner.
func TestWritesAreNoted(t *testing.T) {
	tests := []struct {
		name  string
		write func(t *testing.T, c client.Client)
		want  []string // verb, subresource, owner and fields
		noted int
	}{
		{"created", func(t *testing.T, c client.Client) { must(t, c.Create(t.Context(), pod("new"))) }, []string{"create", "", "things"}, 1},
		{"updated", func(t *testing.T, c client.Client) { label(t, c, "a", "ours") }, []string{"update", "", "things"}, 1},
		{"patched", func(t *testing.T, c client.Client) { must(t, c.Patch(t.Context(), pod("a"), tierPatch("ours"))) },
			[]string{"patch", "", "things", ".metadata.labels.tier"}, 1},
		{"patched by another owner", func(t *testing.T, c client.Client) {
			must(t, c.Patch(t.Context(), pod("a"), tierPatch("ours"), client.FieldOwner("sidecar")))
		}, []string{"patch", "", "sidecar", ".metadata.labels.tier"}, 1},
		{"the status updated", func(t *testing.T, c client.Client) { must(t, c.Status().Update(t.Context(), get(t, c, "a"))) },
			[]string{"update", "status", "things"}, 1},
		{"the status patched", func(t *testing.T, c client.Client) {
			must(t, c.Status().Patch(t.Context(), pod("a"), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Failed"}}`))))
		}, []string{"patch", "status", "things", ".status.phase"}, 1},
		{"deleted", func(t *testing.T, c client.Client) { must(t, c.Delete(t.Context(), pod("a"))) }, []string{"delete", "", "things"}, 1},
		{"all deleted", func(t *testing.T, c client.Client) {
			must(t, c.DeleteAllOf(t.Context(), pod(""), client.InNamespace("default")))
		},
			[]string{"deletecollection", "", "things"}, 1},
		{"a dry run", func(t *testing.T, c client.Client) {
			must(t, c.Patch(t.Context(), pod("a"), tierPatch("ours"), client.DryRunAll))
		}, nil, 0},
		{"a deletion that matches nothing", func(t *testing.T, c client.Client) { _ = c.Delete(t.Context(), pod("missing")) }, nil, 0},
		{"a terminating object, deleted", func(t *testing.T, c client.Client) { must(t, c.Delete(t.Context(), get(t, c, "terminating"))) }, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t, "a")
			terminating := pod("terminating")
			terminating.Finalizers = []string{"example.com/wait"}
			must(t, server.Create(t.Context(), terminating))
			must(t, server.Delete(t.Context(), terminating))
			record := &Record{Owner: "things"}
			test.write(t, NewClient(server, record))
			writes := record.Writes()
			if len(writes) != test.noted || record.Refused() {
				t.Fatalf("refused: %v, noted %+v", record.Refused(), writes)
			}
			for _, w := range writes {
				got := append([]string{w.Verb, w.Subresource, w.Owner}, w.Sent.Paths()...)
				same(t, "noted write", test.want, got)
			}
		})
	}
}

// The state before a write is what the cache has, or what the write before was answered with.
func TestTheStateBeforeAWrite(t *testing.T) {
	server := newServer(t, "a", "unread")
	record := &Record{Self: pod("self")}
	c := NewClient(server, record)
	must(t, c.Patch(t.Context(), pod("unread"), tierPatch("1"))) // no cache has its type yet
	get(t, c, "a")
	for _, value := range []string{"1", "2"} {
		must(t, c.Patch(t.Context(), pod("a"), tierPatch(value)))
	}
	writes := record.Writes()
	if writes[0].Before != nil || writes[0].After == nil {
		t.Errorf("the state of an object that no cache has is %+v", writes[0].Before)
	}
	for i, want := range []bool{true, true} {
		w := writes[i+1]
		if changes := w.Changes(); len(changes) != 1 || changes[0].Differ != want || changes[0].Path != ".metadata.labels.tier" {
			t.Errorf("write %d changed %+v", i+1, changes)
		}
	}
	if writes[2].Before != writes[1].After {
		t.Errorf("the state before is %+v, want the answer to the write before", writes[2].Before)
	}
}

// A write that is answered with a known version changed nothing.
func TestNoOps(t *testing.T) {
	server := newServer(t, "a")
	version := get(t, server, "a").ResourceVersion
	tests := []struct {
		name    string
		history History
		answer  string
		change  func(answer *corev1.Pod)
		noOp    bool
	}{
		{"the version of our last write", past{version: version}, version, func(*corev1.Pod) {}, true},
		{"another version", past{version: version}, "99", func(*corev1.Pod) {}, false},
		{"no history", nil, version, func(*corev1.Pod) {}, false},
		{"it has released the object", past{version: version}, version, func(answer *corev1.Pod) { answer.DeletionTimestamp = &metav1.Time{} }, false},
		{"the object is kept by another finalizer", past{version: version}, version, func(answer *corev1.Pod) {
			answer.DeletionTimestamp, answer.Finalizers = &metav1.Time{}, []string{"example.com/wait"}
		}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := &Record{}
			record.Watch(test.history, nil)
			c := NewClient(server, record)
			w := c.begin(t.Context(), "patch", "", pod("a"))
			answer := pod("a")
			answer.ResourceVersion = test.answer
			test.change(answer)
			c.end(t.Context(), w, answer, "", false, nil)
			if w.NoOp != test.noOp || len(record.Writes()) > 0 == test.noOp {
				t.Errorf("no-op: got %v, want %v; noted %+v", w.NoOp, test.noOp, record.Writes())
			}
			record.Close()
			if record.knows(&Write{Verb: "patch"}, version) {
				t.Error("the history is used after the reconcile")
			}
		})
	}
}

// A suspicion makes the record ask the API server before a write.
func TestSuspectedWrites(t *testing.T) {
	server := newServer(t, "a")
	version := get(t, server, "a").ResourceVersion
	record := &Record{APIReader: server}
	record.Watch(past{suspected: true}, nil)
	c := NewClient(server, record)
	w := c.begin(t.Context(), "patch", "", pod("a"))
	if !w.Verified || w.Before == nil || w.Before.Version != version {
		t.Fatalf("the API server was not asked: %+v", w)
	}
	answer := pod("a")
	answer.ResourceVersion = version
	c.end(t.Context(), w, answer, "", false, nil)
	if len(record.InVain()) != 1 || len(record.Writes()) != 0 {
		t.Errorf("in vain: %+v, writes: %+v", record.InVain(), record.Writes())
	}
	if w := c.begin(t.Context(), "patch", "", pod("missing")); w.Before == nil || !w.Before.Absent {
		t.Errorf("an object that is not there is %+v", w.Before)
	}
	record.APIReader = nil
	if w := c.begin(t.Context(), "patch", "", pod("missing")); w.Verified || w.Before != nil {
		t.Errorf("without a reader the state is %+v", w.Before)
	}
}

// A fence is asked once, and its answer holds for all writes.
func TestAFence(t *testing.T) {
	stale := errors.New("the object is stale")
	for _, want := range []error{nil, stale} {
		asked := 0
		record := &Record{Fence: func(context.Context) error { asked++; return want }}
		server := newServer(t, "a", "b")
		c := NewClient(server, record)
		get(t, c, "a")
		same(t, "asked", 0, asked)
		writes := map[string]func() error{
			"create":        func() error { return c.Create(t.Context(), pod("new")) },
			"update":        func() error { return c.Update(t.Context(), get(t, server, "a")) },
			"patch":         func() error { return c.Patch(t.Context(), pod("a"), tierPatch("ours")) },
			"delete":        func() error { return c.Delete(t.Context(), pod("b")) },
			"update status": func() error { return c.Status().Update(t.Context(), get(t, server, "a")) },
			"patch status":  func() error { return c.Status().Patch(t.Context(), pod("a"), tierPatch("ours")) },
		}
		for name, write := range writes {
			if err := write(); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
		if err := c.DeleteAllOf(t.Context(), pod(""), client.InNamespace("default")); !errors.Is(err, want) {
			t.Errorf("delete all: got %v, want %v", err, want)
		}
		same(t, "asked", 1, asked)
		if err := record.Unfenced().MayWrite(t.Context()); err != nil {
			t.Errorf("a write of the reconciled object: %v", err)
		}
	}
}

// A refused write is not noted as one.
func TestARefusedWrite(t *testing.T) {
	record := &Record{}
	c := NewClient(newServer(t), record)
	if err := c.Update(t.Context(), pod("missing")); err == nil {
		t.Fatal("it was not refused")
	}
	if !record.Refused() || len(record.Writes()) > 0 {
		t.Errorf("refused: %v, writes: %v", record.Refused(), record.Writes())
	}
}

// A write of the object of the request saves it, and reading it leaves it as it is.
func TestTheObjectOfTheRequest(t *testing.T) {
	readOnly := errors.New("the spec is not the operator's")
	server := newServer(t, "a")
	obj, saved := get(t, server, "a"), 0
	record := &Record{
		Object: obj, Save: func(context.Context) error { saved++; return nil },
		ReadOnly: func([]string) error { return readOnly },
	}
	c := NewClient(server, record)
	before := obj.DeepCopy()
	obj.Labels = map[string]string{"tier": "ours"}
	must(t, c.Get(t.Context(), key("a"), obj))
	same(t, "Labels", "ours", obj.Labels["tier"])
	must(t, c.Update(t.Context(), obj))
	must(t, c.Patch(t.Context(), obj, client.MergeFrom(before)))
	must(t, c.Status().Update(t.Context(), obj))
	if saved != 3 || len(record.Writes()) != 0 {
		t.Errorf("it was saved %d times, with %v", saved, record.Writes())
	}
	obj.Spec.Hostname = "new"
	if err := c.Patch(t.Context(), obj, client.MergeFrom(before)); !errors.Is(err, readOnly) {
		t.Errorf("a patch of the spec: %v", err)
	}
	must(t, c.Patch(t.Context(), pod("a"), tierPatch("theirs"))) // another Go object
	if saved != 3 || len(record.Writes()) != 1 {
		t.Errorf("it was saved %d times, with %v", saved, record.Writes())
	}
}

// Steps may run at the same time: their names come with the context.
func TestStepsOfContexts(t *testing.T) {
	ctx := WithStep(t.Context(), "A")
	if a, b, none := StepFrom(ctx), StepFrom(WithStep(ctx, "B")), StepFrom(t.Context()); a != "A" || b != "B" || none != "" {
		t.Errorf("got %q, %q and %q", a, b, none)
	}
}
