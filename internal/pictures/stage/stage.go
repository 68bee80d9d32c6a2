// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stage serves the page of an operator that does not run, about as many objects as one
// wants: for tests and measurements of the page in a browser.
package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Canary is in values of every object, and must be in nothing that is sent.
const Canary = "canary-9b1c"

var kind = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Database"}

// A Stage is an operator as its page sees it.
type Stage struct {
	activity *view.Activity
	ring     *journal.Ring
	observer journal.Observer

	mu       sync.Mutex
	objects  []*unstructured.Unstructured
	byName   map[string]int
	handlers map[int]toolscache.ResourceEventHandler
	follows  int
	runs     int
}

// New returns a stage with some objects: most are ready, and of the others most wait.
func New(objects int) *Stage {
	s := &Stage{
		activity: view.NewActivity(), ring: journal.NewRing(journal.RingOptions{}),
		handlers: map[int]toolscache.ResourceEventHandler{}, byName: map[string]int{},
	}
	s.observer = journal.Observers(s.ring, s.activity)
	now := time.Now()
	for i := range objects {
		name := fmt.Sprintf("db-%d", i)
		s.byName[name] = i
		s.objects = append(s.objects, object(name, i, 0, now))
	}
	for i := range min(objects, 60) {
		for _, as := range []int{0, 1, i} { // it was ready, has waited, and is as it is now
			s.reconcile(i, as)
		}
	}
	return s
}

// stateOf is how objects are, by their number.
func stateOf(i int) (status, reason, message string) {
	switch i % 12 {
	case 1, 2:
		return "False", "Waiting", "waits for Secret shop/db-password"
	case 3:
		return "False", "Forbidden", "creating Service shop/db: services is forbidden: User \"system:serviceaccount:shop:operator\" cannot create resource \"services\" in API group \"\" in the namespace \"shop\""
	case 4:
		return "False", "QuotaExceeded", fmt.Sprintf("the system allows 10 databases and has %d", 10+i)
	default:
		return "True", "Ready", ""
	}
}

func object(name string, i, version int, now time.Time) *unstructured.Unstructured {
	status, reason, message := stateOf(i + version)
	since := now.Add(-time.Duration(i%600) * time.Second).UTC().Format(time.RFC3339)
	conditions := []any{
		map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": since},
		map[string]any{"type": "Available", "status": "True", "reason": "Available", "lastTransitionTime": since},
		map[string]any{"type": "Drifted", "status": "False", "reason": "None", "lastTransitionTime": since},
		map[string]any{"type": "Managed", "status": "True", "reason": "Full", "lastTransitionTime": since},
	}
	if reason == "QuotaExceeded" {
		conditions = append(conditions, map[string]any{"type": "Stalled", "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
	} else if status == "False" {
		conditions = append(conditions, map[string]any{"type": "Reconciling", "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"password": Canary}, "status": map[string]any{"conditions": conditions, "token": Canary},
	}}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace("shop")
	obj.SetName(name)
	obj.SetUID(types.UID(name))
	obj.SetResourceVersion(fmt.Sprint(version))
	obj.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	obj.SetFinalizers([]string{"shop.example.com/database"})
	obj.SetAnnotations(map[string]string{view.IDAnnotation: "pg-" + name, view.OperatorAnnotation: "shop-blue", "note": Canary})
	return obj
}

// Change changes an object: how it is, and with it a reconcile.
func (s *Stage) Change(i int) {
	s.mu.Lock()
	i %= len(s.objects)
	before := s.objects[i]
	var version int
	_, _ = fmt.Sscan(before.GetResourceVersion(), &version) // of object
	obj := object(before.GetName(), i, version+1, time.Now())
	s.objects[i] = obj
	for _, h := range s.handlers {
		h.OnUpdate(before, obj)
	}
	s.mu.Unlock()
	s.reconcile(i, i+version+1)
}

// Address is the query of the page of the i-th object.
func (s *Stage) Address(i int) string {
	return fmt.Sprintf("group=%s&kind=%s&namespace=shop&name=db-%d", kind.Group, kind.Kind, i)
}

// Serve serves the page until close is called, and returns its address.
func (s *Stage) Serve(done chan struct{}) (address string, closed func()) {
	server := httptest.NewServer(view.New(view.Options{
		Name: "shop-operator", Objects: s, Activity: s.activity, Entries: s.ring.Entries, Known: s.ring.Objects, Done: done,
		Queues: func() map[string]int { return map[string]int{"database": 3} },
	}))
	return server.URL + view.Path, func() { close(done); server.CloseClientConnections(); server.Close() }
}

// Kinds implements [view.Objects].
func (s *Stage) Kinds() []schema.GroupKind { return []schema.GroupKind{kind.GroupKind()} }

// Follow implements [view.Objects].
func (s *Stage) Follow(_ schema.GroupKind, handler func(schema.GroupVersionKind) toolscache.ResourceEventHandler) (func(), func() bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := handler(kind)
	s.follows++
	id := s.follows
	var synced atomic.Bool
	go func(all []*unstructured.Unstructured) { // as an informer does
		for _, obj := range all {
			h.OnAdd(obj, true)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handlers[id] = h
		synced.Store(true)
	}(slices.Clone(s.objects))
	return func() { s.mu.Lock(); defer s.mu.Unlock(); delete(s.handlers, id) }, synced.Load, nil
}

// Get implements [view.Objects].
func (s *Stage) Get(_ context.Context, o journal.Object) (*unstructured.Unstructured, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.byName[o.Name]; ok && o.Kind == kind.Kind {
		return s.objects[i], "databases.shop.example.com", nil
	}
	if o.Kind == kind.Kind {
		return nil, "databases.shop.example.com", nil
	}
	return nil, "", errors.New("this operator does not reconcile objects of the kind " + o.Kind)
}

// Children implements [view.Details].
func (s *Stage) Children(context.Context, *unstructured.Unstructured) []view.Child {
	child := func(kind, name string, state view.State, text string, within ...view.Child) view.Child {
		return view.Child{Object: journal.Object{Group: "apps", Kind: kind, Namespace: "shop", Name: name}, State: state, Text: text, Within: within}
	}
	pod := child("Pod", "data-1", view.Failing, "CrashLoopBackOff: back-off 5m0s restarting failed container")
	pod.Events = []view.Event{{At: time.Now().Add(-time.Minute), Warning: true, Reason: "BackOff", Text: "Back-off restarting failed container postgres", Count: 12}}
	return []view.Child{
		child("Deployment", "proxy", view.Ready, "", child("ReplicaSet", "proxy-6d4c", view.Ready, "", child("Pod", "proxy-6d4c-x2v", view.Ready, ""))),
		child("StatefulSet", "data", view.Waiting, "1 of 3 replicas are available", child("Pod", "data-0", view.Ready, ""), pod),
	}
}

// Events implements [view.Details].
func (s *Stage) Events(context.Context, *unstructured.Unstructured) []view.Event {
	return []view.Event{{At: time.Now().Add(-time.Minute), Warning: true, Reason: "QuotaExceeded", Text: "the system allows 10 databases", Count: 4}}
}

type workflow outline.Node

func (w workflow) Describe() outline.Node { return outline.Node(w) }

func action(label string) outline.Node { return outline.Node{Kind: outline.KindAction, Label: label} }

var shape = workflow{Kind: outline.KindSequential, Children: []outline.Node{
	action("ReadPassword"),
	{Kind: outline.KindParallelJoin, Children: []outline.Node{action("KeepVolume"), action("KeepService")}},
	{Kind: outline.KindIf, Label: "backups wanted", Children: []outline.Node{action("ScheduleBackups")}},
}}

// reconcile notes a reconcile of an object that ends as a number says: see stateOf.
func (s *Stage) reconcile(i, as int) {
	s.mu.Lock()
	s.runs++
	obj := s.objects[i]
	run := journal.NewRun(s.observer, types.UID(fmt.Sprint(s.runs)), "database", journal.ObjectOf(kind.GroupKind(), types.NamespacedName{Namespace: "shop", Name: obj.GetName()}))
	s.mu.Unlock()
	status, reason, message := stateOf(as)
	ctx := context.Background()
	outcome, result := journal.Outcome{}, journal.ResultDone
	switch {
	case reason == "Waiting":
		outcome, result = journal.Outcome{Waits: []journal.Wait{{For: "Secret shop/db-password"}}}, journal.ResultWaiting
	case status == "False":
		outcome, result = journal.Outcome{Err: errors.New(message), Class: reason, Remedy: "grant it, or ask the owner of the system for more"}, journal.ResultFailed
	}
	note := noting(ctx, run)
	note(journal.Started{Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Verb: "updated"}}, Finalizer: "shop.example.com/database"},
		journal.StepBegan{Step: "Base", Phase: journal.PhaseDo}, journal.Called{Step: "Base", What: "observe", Duration: time.Microsecond},
		journal.Changed{Step: "Base", Verb: "update", ID: "pg-" + obj.GetName(), Drift: []string{".size"}, After: journal.Seen{State: "up to date", Settings: map[string]string{"password": Canary}}},
		journal.StepEnded{Step: "Base", Phase: journal.PhaseDo},
		journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}, journal.WorkflowBegan{Step: "Run", Workflow: shape},
		journal.ActionBegan{Step: "Run", Action: "ReadPassword"}, journal.ActionEnded{Step: "Run", Action: "ReadPassword", Outcome: outcome})
	if result == journal.ResultDone {
		for _, name := range []string{"KeepVolume", "KeepService"} {
			note(journal.ActionBegan{Step: "Run", Action: name}, journal.ActionEnded{Step: "Run", Action: name})
		}
		note(journal.Wrote{Step: "Run", Verb: "apply", Object: journal.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "proxy"}, Fields: []string{".spec.replicas"}})
	}
	note(journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: outcome})
	if as%12 == 3 || as%12 == 4 {
		keep := func(kind, name string, state journal.ChildState, text string) journal.Child {
			return journal.Child{Object: journal.Object{Group: "apps", Kind: kind, Namespace: "shop", Name: name}, State: state, Text: text}
		}
		foreign := keep("ConfigMap", "settings", journal.ChildFailed, "ConfigMap shop/settings exists, has no owner and is not ours")
		foreign.Reason, foreign.Remedy = "OwnedByAnother", "delete it, or allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt"
		note(journal.StepBegan{Step: "Parts", Phase: journal.PhaseDo},
			journal.Kept{Step: "Parts", Children: []journal.Child{keep("Deployment", "proxy", journal.ChildReady, ""), foreign, keep("StatefulSet", "data", journal.ChildNotReady, "1 of 3 replicas are available")}},
			journal.StepEnded{Step: "Parts", Phase: journal.PhaseDo, Outcome: outcome})
	}
	note(journal.ConditionChanged{Type: "Ready", Status: status, Reason: reason},
		journal.Finished{Result: result, Outcome: outcome})
}

// noting returns what adds events to a run, with the time that steps and actions have taken.
func noting(ctx context.Context, run *journal.Run) func(events ...journal.Event) {
	began := map[string]time.Time{"": time.Now()} // by step and action
	return func(events ...journal.Event) {
		for _, event := range events {
			switch e := event.(type) {
			case journal.StepBegan:
				began[e.Step] = time.Now()
			case journal.ActionBegan:
				began[e.Step+"/"+e.Action] = time.Now()
			case journal.StepEnded:
				e.Duration = time.Since(began[e.Step])
				event = e
			case journal.ActionEnded:
				e.Duration = time.Since(began[e.Step+"/"+e.Action])
				event = e
			case journal.Finished:
				e.Duration = time.Since(began[""])
				event = e
			}
			run.Note(ctx, event)
		}
	}
}
