// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

type (
	schemaResource      = schema.GroupVersionResource
	schemaGroupResource = schema.GroupResource
)

// A Result is what one run of a workload has shown.
type Result struct {
	Plan       fault.Plan
	Violations []oracle.Violation
	Fired      []bool // for each fault of the plan, whether the run came to its place
	Trace      *Trace
	Requests   int // of the operator

	checkpoints []snapshot
	world       *World
	leaked      bool // goroutines are left that do not end
}

// reference is what a run without faults has shown, by which the others are judged.
type reference struct {
	checkpoints  []snapshot
	mask         map[string]bool // fields that differ between runs without faults
	created      map[string]int
	deleted      map[string]int
	externals    map[string]int  // creations, by system and owner
	conditions   map[string]bool // objects that have conditions at one of the checkpoints
	requests     int
	catalog      catalog
	kinds        []string // that the operator watches
	withholdable []string
	usesClock    bool
}

// runPlan runs a workload once, in a bubble of its own.
func runPlan(t *testing.T, workload *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, r *reference, without oracleSet) (result *Result, err error) {
	before := runtime.NumGoroutine()
	defer func() {
		// Goroutines that nothing can wake end the bubble with a panic: they have been reported already.
		if r := recover(); r != nil && !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
			panic(r)
		}
	}()
	seedGlobals(t, plan.Seed)
	defer withoutErrorBackoff()()
	synctest.Test(t, func(t *testing.T) {
		seedCrypto(t, plan.Seed)
		var w *World
		w, err = newWorld(workload, crds, plan, r, without)
		if err != nil {
			return
		}
		result = w.run(before)
	})
	return result, err
}

// withoutErrorBackoff takes out of apimachinery's handlers of errors the one that sleeps: it remembers the time of the last error in a
// variable of the process, and times of different bubbles have nothing to do with each other. It returns what puts it back.
func withoutErrorBackoff() (restore func()) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	return func() { utilruntime.ErrorHandlers = handlers }
}

// run is the life of a world.
func (w *World) run(before int) *Result {
	told := make(chan struct{})
	go func() {
		defer close(told)
		w.tell()
	}()
	w.drive()
	w.release()
	<-told
	leaked := w.checkGoroutines(before)
	w.checkEnd()
	return &Result{
		leaked: leaked,
		Plan:   w.plan, Violations: w.violations, Fired: w.fired(), Trace: w.trace, Requests: w.requests, checkpoints: w.checkpoints, world: w,
	}
}

// release lets go whoever still waits.
func (w *World) release() {
	w.mu.Lock()
	for _, p := range w.processes {
		p.dead = true
	}
	left := w.parked
	w.parked = nil
	w.mu.Unlock()
	for _, p := range left {
		p.answers <- answer{err: errAborted}
	}
	for _, o := range w.watches {
		o.body.end(errAborted)
	}
}

// leakTime is how long, in virtual time, the goroutines of an operator may live on after it has returned.
const leakTime = 5 * time.Minute

// checkGoroutines looks for goroutines that the operator has left behind.
func (w *World) checkGoroutines(before int) (leaked bool) {
	for passed := time.Duration(0); ; passed += 30 * time.Second {
		synctest.Wait()
		// One more than before is this bubble's own.
		if runtime.NumGoroutine() <= before+1 {
			return false
		}
		left := goroutinesOfBubble()
		if len(left) == 0 {
			return false
		}
		if passed >= leakTime {
			w.violate(oracle.NoGoroutineLeft, fmt.Sprintf("%d goroutines are left after the operator has ended, they are:\n%s", len(left), strings.Join(left, "\n\n")))
			return true
		}
		time.Sleep(30 * time.Second)
	}
}

// goroutinesOfBubble returns the stacks of the other goroutines of this bubble.
func goroutinesOfBubble() []string {
	buffer := make([]byte, 1<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	stacks := bytes.Split(buffer, []byte("\n\n"))
	header, _, _ := bytes.Cut(stacks[0], []byte("\n"))
	_, bubble, ok := bytes.Cut(header, []byte("synctest bubble "))
	if !ok {
		return nil
	}
	label := append([]byte("synctest bubble "), bubble[:bytes.IndexAny(bubble, ",]")]...)
	var list []string
	for _, stack := range stacks[1:] {
		header, _, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(stack, []byte("testing/synctest.")) {
			continue // the goroutines of the bubble itself
		}
		if bytes.Contains(header, append(slices.Clone(label), ']')) || bytes.Contains(header, append(slices.Clone(label), ',')) {
			list = append(list, string(stack))
		}
	}
	return list
}

// asReference makes a run without faults the one by which others are judged.
func (r *Result) asReference() *reference {
	w := r.world
	ref := &reference{
		checkpoints: r.checkpoints[:w.ended+1], mask: map[string]bool{}, created: w.created, deleted: w.deleted, externals: map[string]int{},
		conditions: map[string]bool{}, requests: r.Requests, catalog: w.catalog, usesClock: w.usesClock, withholdable: w.withholdable(),
		kinds: w.watchedKinds(),
	}
	for name, s := range w.externals {
		for owner, n := range s.created {
			ref.externals[name+" "+w.uids[owner]] = n
		}
	}
	for _, checkpoint := range ref.checkpoints {
		for thing, fields := range checkpoint {
			for path := range fields {
				if strings.HasPrefix(path, ".status.conditions[") {
					ref.conditions[thing] = true
				}
			}
		}
	}
	return ref
}

// learn masks the fields that differ between this run without faults and another one.
func (r *reference) learn(other *Result) {
	for i, want := range r.checkpoints {
		if i >= len(other.checkpoints) {
			return
		}
		for _, d := range want.diff(other.checkpoints[i], r.mask) {
			if d.Path != "" {
				r.mask[maskKey(d)] = true
			}
		}
	}
}

// watchedKinds returns the kinds of which the operator was sent events, and those that it watches, ordered.
func (w *World) watchedKinds() []string {
	kinds := map[string]bool{}
	for kind := range w.watchedEver {
		kinds[kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// withholdable returns the Secrets and ConfigMaps that were there before the operator started.
func (w *World) withholdable() []string {
	var list []string
	for _, of := range w.prerequisites {
		if strings.HasPrefix(of, "secrets ") || strings.HasPrefix(of, "configmaps ") {
			list = append(list, of)
		}
	}
	return list
}

// describe says what a request asks for.
func describe(r *apiserver.Request) string {
	if r.Verb == "" {
		return r.Method + " " + r.Path
	}
	text := r.Verb
	if isApply(r) {
		text = "apply"
	}
	text += " " + r.Resource.GroupResource().String()
	name := nameOf(r)
	switch {
	case r.Namespace != "" && name != "":
		text += " " + r.Namespace + "/" + name
	case name != "":
		text += " " + name
	case r.Namespace != "":
		text += " in " + r.Namespace
	}
	if r.Subresource != "" {
		text += " " + r.Subresource
	}
	return text
}

var defaultScheme = sync.OnceValue(func() *k8sruntime.Scheme { return clientgoscheme.Scheme })

func schemeOf(w *Workload) *k8sruntime.Scheme {
	if w.Scheme != nil {
		return w.Scheme
	}
	return defaultScheme()
}

// zero empties an object, so that decoding into it leaves nothing of what it was.
func zero(obj client.Object) {
	v := reflect.ValueOf(obj).Elem()
	v.Set(reflect.Zero(v.Type()))
}

func rawExtension(v any) k8sruntime.RawExtension {
	return k8sruntime.RawExtension{Object: nil, Raw: mustJSON(v)}
}

// mustJSON encodes what can be encoded.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
