// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

var typeOfPod = reflect.TypeFor[*corev1.Pod]()

// labelled is the state of a Pod in a version with labels, each a key and a value.
func labelled(version string, labels ...string) *track.Snapshot {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, labels[i], labels[i+1])
	}
	return track.SnapshotOf(obj)
}

func patched(before, after *track.Snapshot, fields ...string) *track.Write {
	return &track.Write{Verb: "patch", Object: self, Sent: track.SentPaths(fields...), Before: before, After: after}
}

// A fact counts how often the same was written because it was undone.
func TestFacts(t *testing.T) {
	var target target
	write := func(value uint64, changed bool, after time.Duration, want int) {
		t.Helper()
		if _, got := target.wrote(1, value, changed, start.Add(after), time.Minute); got != want {
			t.Errorf("after %v: got %d, want %d", after, got, want)
		}
	}
	write(1, true, 0, 1)
	write(1, false, time.Second, 1)      // it was as we had written it
	write(1, true, 2*time.Second, 2)     // it was undone
	write(1, true, 3*time.Second, 3)     //
	write(1, true, 62*time.Second, 4)    // the first one is a minute ago
	write(1, true, 63*time.Second+1, 3)  // and now too old
	write(2, true, 64*time.Second, 1)    // we have changed it ourselves
	write(1, true, 65*time.Second, 1)    //
	write(1, true, 66*time.Second, 2)    //
	write(1, true, 10*time.Minute, 1+1)  // the count of one undone write
	write(1, false, 11*time.Minute, 1+1) // which is only dropped by the next one, or by the history
}

func TestATargetIsBounded(t *testing.T) {
	var target target
	for i := range uint64(10 * mostFacts) {
		target.wrote(i+1, 1, true, start, loopWindow)
		if len(target.facts) > mostFacts {
			t.Fatalf("it has %d facts", len(target.facts))
		}
	}
	for range 100 {
		target.wrote(1, 1, true, start, loopWindow)
	}
	for _, f := range target.facts {
		if len(f.undone) > 2*sameWrites {
			t.Errorf("a fact has %d times", len(f.undone))
		}
	}
}

func TestFieldsAreCompared(t *testing.T) {
	const tier, other = ".metadata.labels.tier", ".metadata.labels.other"
	undone := func(version string, extra ...string) *track.Snapshot {
		return labelled(version, append(extra, "tier", "theirs")...)
	}
	tests := []struct {
		name   string
		second *track.Write // after one that sets the label tier to "ours" as version 2
		count  int
		paths  []string
	}{
		{"undone", patched(undone("3"), labelled("4", "tier", "ours"), tier), 2, []string{tier}},
		{"removed", patched(labelled("3"), labelled("4", "tier", "ours"), tier), 2, []string{tier}},
		{"not undone", patched(labelled("3", "tier", "ours"), labelled("4", "tier", "ours", "other", "1"), tier, other), 0, nil},
		{"another value of ours", patched(undone("3"), labelled("4", "tier", "new"), tier), 0, nil},
		{"not sent", patched(undone("3"), labelled("4", "tier", "ours"), other), 0, nil},
		{"a state that is not known", patched(nil, labelled("4", "tier", "ours"), tier), 0, nil},
		{"no answer", patched(undone("3"), nil, tier), 0, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var target target
			target.compare(patched(labelled("1", "tier", "old"), labelled("2", "tier", "ours"), tier), Reconcile{Now: start}, loopWindow)
			paths, count := target.compare(test.second, Reconcile{Now: start.Add(time.Second)}, loopWindow)
			equal(t, "count", test.count, count)
			equal(t, "paths", test.paths, paths)
		})
	}
}

// All fields that were undone equally often are reported.
func TestSeveralFieldsAreUndone(t *testing.T) {
	var target target
	ours, theirs := []string{"a", "1", "b", "1"}, []string{"a", "2", "b", "2"}
	var paths []string
	for i := range 3 {
		w := patched(labelled(fmt.Sprint(2*i+1), theirs...), labelled(fmt.Sprint(2*i+2), ours...), ".metadata.labels")
		paths, _ = target.compare(w, Reconcile{Now: start}, loopWindow)
	}
	equal(t, "paths", []string{".metadata.labels.a", ".metadata.labels.b"}, paths)
}

// Another object of the same name has another history.
func TestAnotherObjectOfTheSameName(t *testing.T) {
	var target target
	for _, uid := range []types.UID{"1", "2"} {
		before, after := labelled("1", "tier", "theirs"), labelled("2", "tier", "ours")
		before.UID, after.UID = uid, uid
		if _, count := target.compare(patched(before, after, ".metadata.labels"), Reconcile{Now: start}, loopWindow); count > 1 {
			t.Errorf("the object %s is fought over", uid)
		}
	}
}

// A target knows whether a state is older than the answer to our last write.
func TestVersionsOfATarget(t *testing.T) {
	target := &target{version: "10"}
	tests := []struct {
		state *track.Snapshot
		want  bool
	}{
		{labelled("9"), true}, {labelled("10"), false}, {labelled("11"), false}, {labelled("no number"), false},
		{nil, false}, {&track.Snapshot{Absent: true}, false},
	}
	for _, test := range tests {
		equal(t, "is older", test.want, target.newerThan(test.state))
	}
	if !target.is("10") || target.is("11") {
		t.Error("it does not know its version")
	}
	unknown := history(nil).known(self)
	if unknown.is("") || unknown.newerThan(labelled("1")) || unknown.suspected(nil) {
		t.Error("an object that was never written has a version")
	}
}

// A suspicion that comes to nothing doubles how many writes the next one takes, up to a limit.
func TestSuspicions(t *testing.T) {
	target := &target{version: "1"}
	blindly := patched(nil, labelled("2"), ".metadata.labels")
	for _, need := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		for i := range need {
			if target.suspected(nil) {
				t.Fatalf("suspected after %d writes, want %d", i, need)
			}
			target.compare(blindly, Reconcile{Now: start}, loopWindow)
		}
		if !target.suspected(nil) || target.suspected(labelled("2")) {
			t.Fatalf("not suspected after %d writes whose effect is not known", need)
		}
		target.found(labelled("3")) // another client has written something else
	}
}

// Three writes in a row that found our last one as it was end a suspicion, without a doubt.
func TestASuspicionEnds(t *testing.T) {
	target := &target{version: "2", blind: 1}
	for i := range mostQuiet {
		if !target.suspected(nil) {
			t.Fatalf("it has ended after %d writes", i)
		}
		target.found(labelled("2"))
	}
	if target.suspected(nil) || target.need != 0 {
		t.Errorf("it has not ended: %+v", target)
	}
}

// The write that may prove a fight needs the field managers, which some caches leave out.
func TestTheLastWriteIsSuspected(t *testing.T) {
	managed := labelled("1")
	managed.Managers = []metav1.ManagedFieldsEntry{{Manager: "helm", Time: &metav1.Time{}}}
	var target target
	for i := range sameWrites - 1 {
		if target.suspected(labelled("1")) {
			t.Errorf("suspected after %d writes", i)
		}
		target.wrote(1, 1, true, start, loopWindow)
	}
	if !target.suspected(labelled("1")) || !target.suspected(nil) {
		t.Error("the last write is not suspected")
	}
	if target.suspected(managed) || target.suspected(&track.Snapshot{Absent: true}) {
		t.Error("a state that names the managers, or none, is suspected")
	}
}

// A write in between starts the count of quiet writes anew.
func TestAWriteIsNotQuiet(t *testing.T) {
	target := &target{version: "2", uid: "1", blind: 1}
	for range mostQuiet - 1 {
		target.found(labelled("2"))
	}
	target.compare(patched(labelled("2"), labelled("3", "tier", "ours"), ".metadata.labels"), Reconcile{Now: start}, loopWindow)
	target.found(labelled("3"))
	if !target.suspected(nil) {
		t.Error("the suspicion has ended too early")
	}
}

// A deletion of an object whose state is not known proves nothing, and is suspected.
func TestUnknownDeletions(t *testing.T) {
	var target target
	for range 2 * sameWrites {
		if _, count := target.compare(&track.Write{Verb: "delete", Object: self}, Reconcile{Now: start}, loopWindow); count > 1 {
			t.Fatalf("it is counted %d times", count)
		}
	}
	if !target.suspected(nil) {
		t.Error("it is not suspected")
	}
}

// An object that is being deleted is as good as gone.
func TestATerminatingObjectIsGone(t *testing.T) {
	for _, state := range []*track.Snapshot{{Terminating: true}, {Absent: true}} {
		equal(t, "existence", gone, factsIn(state).of(existence))
	}
}
