// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// fill sets all that a value has to something that is not zero, different each time.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n%40)) // some are there twice
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n * -1_000_003)
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(time.Unix(1_700_000_000, *n)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint("key ", *n): "value", "other": ""}))
	case reflect.Interface:
		v.Set(reflect.ValueOf(textOf(errors.Join(fmt.Errorf("a %d", *n), errors.New("b")))))
	default:
		panic(v.Kind())
	}
}

var packedKey = ringKey{"databases", Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}}

// A segment can have every event that the ring keeps: of an object with another one, nothing would
// ever be encoded.
func TestSegmentKnowsEveryEvent(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "event" {
				all = append(all, f.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	known := []string{"WorkflowBegan"} // the ring does not keep it
	for _, eventType := range packedTypes {
		known = append(known, eventType.Name())
	}
	slices.Sort(all)
	slices.Sort(known)
	if diff := cmp.Diff(all, known); diff != "" {
		t.Errorf("(-events +encoded):\n%s", diff)
	}
}

// Every event with all that it can have, and with nothing, comes out of a segment as it was.
func TestSegmentKeepsEveryEvent(t *testing.T) {
	var entries []kept
	n := int64(0)
	runs := []*Run{nil, {ID: "1", Controller: "databases", Object: packedKey.object, UID: types.UID("u")}, {ID: "2", Object: Object{Kind: "Other"}}}
	for i, eventType := range packedTypes {
		full := reflect.New(eventType).Elem()
		fill(full, &n)
		for _, v := range []reflect.Value{full, reflect.Zero(eventType)} {
			entries = append(entries, kept{when: time.Unix(1_800_000_000, -n), run: runs[i%3], event: v.Interface().(Event), number: uint64(10 + n)})
		}
	}
	entries = append(entries, kept{event: Finished{}, number: uint64(11 + n)}) // without a time
	s, ok := pack(packedKey, entries)
	if !ok {
		t.Fatal("it can't be encoded")
	}
	got := s.unpack(packedKey)
	if diff := cmp.Diff(entries, got, cmp.AllowUnexported(kept{}, errorText{}), cmp.Comparer(func(a, b *Run) bool {
		return a == b || a != nil && b != nil && *a == *b
	})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[2].run != got[3].run || got[2].run != got[8].run || got[2].run == got[4].run {
		t.Error("entries of the same run have different ones")
	}
}

// What the encoding can't keep stays as it is.
func TestSegmentRefusesWhatItCannotKeep(t *testing.T) {
	for name, k := range map[string]kept{
		"an error with more than a text": {event: Finished{Outcome: Outcome{Err: errors.New("x")}}},
		"a time elsewhere":               {event: Finished{Stalled: time.Unix(1, 0).UTC().In(time.FixedZone("X", 60))}},
		"an event of another type":       {event: newEvent{}},
	} {
		if _, ok := pack(packedKey, []kept{k}); ok {
			t.Errorf("%s was encoded", name)
		}
	}
}

type newEvent struct{ Finished }

// Objects that are well take a fraction of the memory; what others show does not change.
func TestRingPacksWhatIsWell(t *testing.T) {
	r := NewRing(RingOptions{})
	ctx := context.Background()
	reconcile := func(name string, result Result) {
		run := NewRun(r, types.UID("run of "+name), "databases", Object{Kind: "Database", Name: name})
		run.Note(ctx, Started{Causes: []Cause{{Kind: CauseStart}}, ResourceVersion: "7"})
		run.Note(ctx, StepEnded{Step: "Write", Phase: PhaseDo, Duration: time.Second})
		run.Note(ctx, Finished{Result: result})
	}
	reconcile("well", ResultDone)
	reconcile("waits", ResultWaiting)
	for name, packed := range map[string]int{"well": 1, "waits": 0} {
		h := r.objects[ringKey{"databases", Object{Kind: "Database", Name: name}}]
		if len(h.packed) != packed {
			t.Errorf("%s: %d segments, want %d", name, len(h.packed), packed)
		}
	}
	before := r.Entries(Object{Kind: "Database", Name: "well"})
	reconcile("well", ResultConverged)
	reconcile("well", ResultConverged)
	reconcile("well", ResultDone)
	after := r.Entries(Object{Kind: "Database", Name: "well"})
	if len(before) != 3 || len(after) != 12 {
		t.Fatalf("%d entries, and %d later, want 3 and 12", len(before), len(after))
	}
	if diff := cmp.Diff(before, after[:3], cmp.Comparer(func(a, b *Run) bool { return *a == *b })); diff != "" {
		t.Errorf("the first ones have changed:\n%s", diff)
	}
	if !slices.IsSortedFunc(after, func(a, b Entry) int { return a.Time.Compare(b.Time) }) {
		t.Error("they are not in the order in which they happened")
	}
}

// Of an object that is reconciled again and again, the oldest segments are dropped.
func TestRingDropsOldSegments(t *testing.T) {
	r := NewRing(RingOptions{Entries: 10})
	object := Object{Kind: "Database", Name: "db"}
	for i := range 100 {
		for _, e := range []Event{Started{Generation: int64(i)}, StepBegan{Step: "A"}, Finished{Result: ResultDone}} {
			r.Observe(context.Background(), Entry{Object: object, Event: e})
		}
	}
	entries := r.Entries(object)
	if last := entries[len(entries)-3].Event.(Started).Generation; len(entries) != 10 || last != 99 {
		t.Errorf("%d entries, the last reconcile is %d, want 10 and 99", len(entries), last)
	}
	if count := r.objects[ringKey{object: object}].count(); count > 12 {
		t.Errorf("%d entries are kept, want 12 at most", count)
	}
	h := r.objects[ringKey{object: object}]
	h.shorten(0)
	if h.count() != 0 || h.segments != (segments{}) {
		t.Errorf("after all were dropped, there are %d entries, and %v", h.count(), h.segments)
	}
}

// The most that the journal may take of the heap for an object that is idle, with three children.
func TestHeapOfTheRingPerObject(t *testing.T) {
	rings.Test(t, "takes a second")
	const objects, most = 2000, 1100
	ctx := context.Background()
	before := heapInUse()
	r := NewRing(RingOptions{Objects: objects})
	for i := range objects {
		object := Object{Group: "example.com", Kind: "Widget", Namespace: "default", Name: fmt.Sprint("widget-", i)}
		run := NewRun(r, types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), "widgets", object)
		child := func(kind string) Object { return Object{Kind: kind, Namespace: "default", Name: object.Name} }
		causes := []Cause{{Kind: CauseStart}}
		var children []Child
		for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
			causes = append(causes, Cause{Kind: CauseChildChange, Verb: "created", Object: child(kind)})
			children = append(children, Child{Object: child(kind), State: ChildReady})
		}
		run.Note(ctx, Started{Causes: causes, Generation: 1, ResourceVersion: fmt.Sprint(i), Finalizer: "example.com/widget"})
		for _, step := range []string{"Cleanup", "Children"} {
			run.Note(ctx, StepBegan{Step: step, Phase: PhaseDo})
			run.Note(ctx, StepEnded{Step: step, Phase: PhaseDo, Duration: time.Millisecond})
		}
		run.Note(ctx, Kept{Step: "Children", Children: children})
		run.Note(ctx, ConditionChanged{Type: "Ready", Status: "True", Reason: "Ready"})
		run.Note(ctx, Finished{Result: ResultDone, Duration: time.Millisecond})
	}
	took := (heapInUse() - before) / objects
	t.Logf("%d bytes of heap for each object, %d by its own estimate", took, r.bytes/objects)
	if took > most || took > r.bytes/objects {
		t.Errorf("%d bytes for each object, may take %d, and %d by the estimate of the ring", took, most, r.bytes/objects)
	}
	runtime.KeepAlive(r)
}

func heapInUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
