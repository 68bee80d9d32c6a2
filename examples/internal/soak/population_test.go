// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	simplev1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
)

// perfect returns the objects of a perfect operator.
func (s *simples) perfect() (objects []client.Object) {
	for i, l := range s.lanes {
		if l.exists {
			obj, spec := s.object(i).(*simplev1.Simple), s.specs[i]
			obj.Status.ObservedGeneration = 3
			if spec.Divisor != 0 {
				obj.Status.Quotient, obj.Status.Remainder = new(spec.Dividend/spec.Divisor), new(spec.Dividend%spec.Divisor)
			}
			objects = append(objects, s.done(i, obj))
		}
	}
	return objects
}

func (r *rwExternals) perfect() (objects []client.Object) {
	for i, m := range r.model {
		if m.own != (input{}) {
			objects = append(objects, &corev1.Secret{ObjectMeta: name("input", i), Data: m.own.data()})
		}
		if m.foreign != "" {
			objects = append(objects, &corev1.Secret{ObjectMeta: outputName(i), Data: map[string][]byte{"foreign": []byte(m.foreign)}})
		}
		if !r.lanes[i].exists {
			continue
		}
		obj := r.object(i).(*v1.RWExternal)
		obj.Status.ObservedGeneration = 3
		objects = append(objects, r.done(i, obj))
		if output, reason := r.model[m.reads].own.divide(); reason == "" && m.foreign == "" {
			objects = append(objects, outputOf(i, i, output))
		}
	}
	return objects
}

func outputOf(i, owner int, data map[string][]byte) *corev1.Secret {
	output := &corev1.Secret{ObjectMeta: outputName(i), Data: data}
	output.Annotations = map[string]string{apply.OwnerAnnotation: ownerOf(owner)}
	return output
}

// done returns an object as an operator should leave it, of generation 3.
func (d *population) done(i int, obj client.Object) client.Object {
	obj.SetGeneration(3)
	if l := d.lanes[i]; l.label != "" {
		obj.SetLabels(map[string]string{coWriter: l.label})
	}
	ready := metav1.Condition{Type: condition.Ready, Status: "True", Reason: "Ready", ObservedGeneration: 3}
	if want := d.want(i); !want.ready {
		ready.Status, ready.Reason = "False", want.reason
	}
	if err := condition.Store(obj, []metav1.Condition{ready}); err != nil {
		panic(err) // it has conditions
	}
	return obj
}

func newTestedSimples(user client.WithWatch) subject {
	s := newSimples(user, &options{objects: 3}).(*simples)
	s.lanes = []lane{{exists: true, label: "5"}, {exists: true}, {}}
	s.specs = []simplev1.SimpleSpec{{Dividend: 7, Divisor: 2}, {Dividend: 7}, {}}
	return s
}

func newTestedRWExternals(user client.WithWatch) subject {
	good := input{dividend: "7", divisor: "2"}
	r := newRWExternals(user, &options{objects: 7}).(*rwExternals)
	r.lanes = []lane{{exists: true, label: "5"}, {exists: true}, {exists: true}, {exists: true}, {exists: true}, {}, {}}
	r.model = []rwExternal{
		{own: good},
		{own: input{dividend: "many", divisor: "2"}}, // reads the input of another one
		{reads: 1},      // its input is not valid, and its own does not exist
		{reads: 2},      // its input does not exist
		{foreign: "12"}, //
		{own: good},     // deleted
		{foreign: "13"}, // deleted, and its output is foreign
	}
	return r
}

// A world is what is compared.
type world struct{ objects []client.Object }

// of returns the object of a name.
func of[T client.Object](w *world, name string) T {
	i := slices.IndexFunc(w.objects, func(obj client.Object) bool { _, ok := obj.(T); return ok && obj.GetName() == name })
	return w.objects[i].(T)
}

func (w *world) remove(name string) {
	w.objects = slices.DeleteFunc(w.objects, func(obj client.Object) bool { return obj.GetName() == name })
}

func (w *world) add(objects ...client.Object) { w.objects = append(w.objects, objects...) }

func simpleOf(w *world, i int) *simplev1.SimpleStatus {
	return &of[*simplev1.Simple](w, name("soak", i).Name).Status
}

func externalOf(w *world, i int) *v1.RWExternal { return of[*v1.RWExternal](w, name("soak", i).Name) }

func secretOf(w *world, name string) *corev1.Secret { return of[*corev1.Secret](w, name) }

var stale = map[string][]byte{"quotient": []byte("old")}

const results = "quotients and remainders"

// plants are what is wrong in a cluster, and the check that finds it.
type plants map[string]struct {
	plant func(w *world)
	want  string
}

var plantsInAll = plants{
	"all is well": {func(*world) {}, ""},
	"an object is missing": {func(w *world) {
		first := of[client.Object](w, "soak-00") // what it owns may have its name
		w.objects = slices.DeleteFunc(w.objects, func(obj client.Object) bool { return obj == first })
	}, checkExistence},
	"a co-writer's label is removed": {func(w *world) { of[client.Object](w, "soak-00").SetLabels(nil) }, checkLabels},
}

var plantsInSimples = plants{
	"a wrong quotient":                 {func(w *world) { simpleOf(w, 0).Quotient = new(int64(4)) }, results},
	"no remainder":                     {func(w *world) { simpleOf(w, 0).Remainder = nil }, results},
	"a quotient of a division by zero": {func(w *world) { simpleOf(w, 1).Quotient = new(int64(0)) }, results},
	"an old status":                    {func(w *world) { simpleOf(w, 0).ObservedGeneration = 2 }, results},
	"another spec":                     {func(w *world) { of[*simplev1.Simple](w, "soak-00").Spec.Dividend = 8 }, results},
	"not ready":                        {func(w *world) { simpleOf(w, 0).Conditions = simpleOf(w, 1).Conditions }, checkReady},
	"ready all the same":               {func(w *world) { simpleOf(w, 1).Conditions = simpleOf(w, 0).Conditions }, checkReady},
	"an object that was deleted":       {func(w *world) { w.add(&simplev1.Simple{ObjectMeta: name("soak", 2)}) }, checkExistence},
	"an object that was never made":    {func(w *world) { w.add(&simplev1.Simple{ObjectMeta: name("x", 0)}) }, checkExistence},
}

var plantsInRWExternals = plants{
	"a wrong output":                               {func(w *world) { secretOf(w, "output-00").Data["quotient"] = []byte("4") }, checkOutputs},
	"too much in an output":                        {func(w *world) { secretOf(w, "output-01").Data["x"] = nil }, checkOutputs},
	"an output is missing":                         {func(w *world) { w.remove("output-00") }, checkOutputs},
	"another owner is named":                       {func(w *world) { secretOf(w, "output-00").Annotations[apply.OwnerAnnotation] = ownerOf(1) }, checkOutputs},
	"an old status":                                {func(w *world) { externalOf(w, 0).Status.ObservedGeneration = 1 }, checkOutputs},
	"what was written from an earlier input stays": {func(w *world) { w.add(outputOf(3, 3, stale)) }, ""},
	"an orphan":                                    {func(w *world) { w.add(outputOf(5, 5, stale)) }, checkOrphans},
	"a Secret under no known name": {func(w *world) {
		w.add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: outputsNamespace, Name: "output-00"}, Data: stale})
	}, checkOrphans},
	"an input that was deleted is there":         {func(w *world) { w.add(&corev1.Secret{ObjectMeta: name("input", 2)}) }, checkOrphans},
	"a foreign Secret is overwritten":            {func(w *world) { secretOf(w, "output-04").Data = stale }, checkForeign},
	"a foreign Secret is deleted with the owner": {func(w *world) { w.remove("output-06") }, checkForeign},
	"an input is deleted":                        {func(w *world) { w.remove("input-05") }, checkForeign},
	"ready without an input":                     {func(w *world) { externalOf(w, 3).Status.Conditions = externalOf(w, 0).Status.Conditions }, checkReady},
	"the wrong reason":                           {func(w *world) { externalOf(w, 3).Status.Conditions = externalOf(w, 2).Status.Conditions }, checkReady},
	"a finalizer is stuck": {func(w *world) {
		stuck := &v1.RWExternal{ObjectMeta: name("soak", 5)}
		stuck.DeletionTimestamp, stuck.Finalizers = &metav1.Time{Time: epoch}, []string{"demo.ctrlkit.dev/rwexternal"}
		w.add(stuck)
	}, checkExistence},
}

// The checks find what is planted, and nothing else.
func TestChecksOfPopulations(t *testing.T) {
	for kind, subject := range map[string]func(client.WithWatch) subject{"Simple": newTestedSimples, "RWExternal": newTestedRWExternals, "Website": newTestedWebsites} {
		for _, tests := range []plants{plantsInAll, map[string]plants{"Simple": plantsInSimples, "RWExternal": plantsInRWExternals, "Website": plantsInWebsites}[kind]} {
			for name, test := range tests {
				t.Run(kind+"/"+name, func(t *testing.T) {
					w := &world{subject(nil).(interface{ perfect() []client.Object }).perfect()}
					test.plant(w)
					scheme, err := newScheme()
					must(t, err)
					checks, err := subject(fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).Build()).compare(t.Context(), time.Time{})
					must(t, err)
					var want []string
					if test.want != "" {
						want = []string{test.want}
					}
					if diff := cmp.Diff(want, violatedIn(checks)); diff != "" {
						t.Errorf("violated checks (-want +got):\n%s\n%+v", diff, checks)
					}
				})
			}
		}
	}
}

// violatedIn returns the names of the checks that do not hold.
func violatedIn(checks []check) []string {
	var names []string
	for _, c := range checks {
		if len(c.violations) > 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// When all edits are made, the cluster is what the model says, as far as no operator is needed for
// that.
func TestEditsMakeTheModel(t *testing.T) {
	scheme, err := newScheme()
	must(t, err)
	for seed := range uint64(3) {
		for _, e := range examples[1:] {
			user := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&simplev1.Simple{}).Build()
			soaking := &soaking{user: user, options: &options{objects: 5, seed: seed, chaos: 15 * time.Second, edits: span{100 * time.Millisecond, 400 * time.Millisecond}}}
			if e.startSystem != nil {
				soaking.system, err = e.startSystem()
				must(t, err)
				t.Cleanup(func() { must(t, soaking.system.close()) })
			}
			s := e.subject(soaking)
			must(t, s.create(t.Context()))
			for _, e := range s.edits() {
				if err := e.apply(t.Context(), user); err != nil {
					t.Fatalf("seed %d, object %d: %s: %v", seed, e.lane, e.what, err)
				}
			}
			checks, err := s.compare(t.Context(), time.Time{})
			must(t, err)
			for _, name := range violatedIn(checks) { // the operator is missing
				if name != checkReady && name != "quotients and remainders" && name != checkOutputs && name != checkAccounts && name != checkStreams && name != checkParts {
					t.Errorf("%s, seed %d: %s is violated: %+v", e.name, seed, name, checks)
				}
			}
		}
	}
}

// A division by zero is another reason than an input that can't be read.
func TestReasonsOfAnInput(t *testing.T) {
	for in, want := range map[input]string{
		{"7", "2"}: "", {"7", "0"}: "DivisorIsZero", {"seven", "0"}: "InvalidInput", {"7", "two"}: "InvalidInput", {}: "SecretNotFound",
	} {
		if _, got := in.divide(); got != want {
			t.Errorf("%s: reason %q, want %q", in, got, want)
		}
	}
}
