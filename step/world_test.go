// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A world is an API server, what the engine sees of it, and what the engine has recorded.
type world struct {
	tb     tester
	server client.WithWatch // past the interceptors: to arrange, and to look at
	client client.Client    // for the engine: it is counted, may fail, and reads may be stale

	mu        sync.Mutex // for all below
	writes    []string   // that came to the server, refused ones too: "patch Thing a", "patch status of Thing a"
	live      []string   // reads past the cache
	reads     []string   // from the cache
	entries   []journal.Entry
	events    []string
	fault     func(request string) error // asked before each write and each read
	onRead    func(read string)          // called after a read of an object from the cache: "Secret a"
	cache     map[client.ObjectKey]*Thing
	managers  []metav1.ManagedFieldsEntry      // of what is read from the cache; the fake client keeps none
	reconcile func() (reconcile.Result, error) // of the Thing a, by the engine that was made last
}

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newWorld(tb tester, objects ...client.Object) *world {
	tb.Helper()
	w := &world{tb: tb, cache: make(map[client.ObjectKey]*Thing)}
	w.server = fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).
		WithGlobalResourceVersionCounter().WithStatusSubresource(&Thing{}).WithObjects(objects...).Build()
	w.client = interceptor.NewClient(w.server, w.intercept(&w.reads))
	return w
}

// liveReader returns a reader that is never stale, and counted by itself.
func (w *world) liveReader() client.Reader {
	return interceptor.NewClient(w.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := w.ask(&w.live, "live get "+kindOf(obj)+" "+key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

func kindOf(obj runtime.Object) string {
	gvk, err := apiutil.GVKForObject(obj, newScheme())
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return gvk.Kind
}

// ask notes a request, and returns the fault that it meets.
func (w *world) ask(in *[]string, request string) error {
	w.mu.Lock()
	*in = append(*in, request)
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		return fault(request)
	}
	return nil
}

func (w *world) intercept(reads *[]string) interceptor.Funcs {
	write := func(verb string, obj client.Object) error {
		return w.ask(&w.writes, verb+" "+kindOf(obj)+" "+obj.GetName())
	}
	return interceptor.Funcs{
		Get: w.interceptGet(reads),
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return unless(w.ask(reads, "list "+kindOf(list)), func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return unless(write("create", obj), func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return unless(write("update", obj), func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return unless(write("patch", obj), func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return unless(write("delete", obj), func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return unless(write("patch "+sub+" of", obj), func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return unless(write("update "+sub+" of", obj), func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
	}
}

// unless calls call, if there is no error before it.
func unless(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

// interceptGet reads from the world's stale cache where it has one.
func (w *world) interceptGet(reads *[]string) func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
	return func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if err := w.ask(reads, "get "+kindOf(obj)+" "+key.Name); err != nil {
			return err
		}
		w.mu.Lock()
		old, stale := w.cache[key]
		w.mu.Unlock()
		if thing, ok := obj.(*Thing); ok && stale {
			if old == nil {
				return apierrors.NewNotFound(schema.GroupResource{Group: thingVersion.Group, Resource: "things"}, key.Name)
			}
			*thing = *old.DeepCopyObject().(*Thing)
			return nil
		}
		if _, ok := obj.(*corev1.Node); ok {
			key.Namespace = "" // as the cache does
		}
		err := c.Get(ctx, key, obj, opts...)
		if w.managers != nil && err == nil {
			obj.SetManagedFields(w.managers)
		}
		if w.onRead != nil {
			w.onRead(kindOf(obj) + " " + key.Name)
		}
		return err
	}
}

// Observe makes a world an observer of its engine.
func (w *world) Observe(_ context.Context, entry journal.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, entry)
}

// Eventf makes a world the recorder of its engine.
func (w *world) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, reason+": "+fmt.Sprintf(note, args...))
}

// options are those of an engine that the world observes.
func (w *world) options() step.Options[*Thing] {
	return step.Options[*Thing]{Name: "things", Client: w.client, Recorder: w, Observers: []journal.Observer{w}}
}

// engine makes an engine with the options of the world.
func (w *world) engine(steps ...step.Step[*Thing]) *step.Engine[*Thing] {
	w.tb.Helper()
	return w.engineWith(w.options(), steps...)
}

func (w *world) engineWith(options step.Options[*Thing], steps ...step.Step[*Thing]) *step.Engine[*Thing] {
	w.tb.Helper()
	e, err := step.New(options, steps...)
	must(w.tb, err)
	w.reconcile = func() (reconcile.Result, error) { return e.Reconcile(context.Background(), thingRequest) }
	return e
}

// must reconciles, and fails the test if that fails.
func (w *world) must() reconcile.Result {
	w.tb.Helper()
	result, err := w.reconcile()
	if err != nil {
		w.tb.Fatalf("reconcile: %v", err)
	}
	return result
}

// fails reconciles, and fails the test if that does not fail.
func (w *world) fails() error {
	w.tb.Helper()
	_, err := w.reconcile()
	if err == nil {
		w.tb.Fatal("the reconcile did not fail")
	}
	return err
}

// thing returns the Thing a as the server has it, nil if it has none.
func (w *world) thing() *Thing {
	w.tb.Helper()
	obj := &Thing{}
	err := w.server.Get(context.Background(), thingRequest.NamespacedName, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w.tb, err)
	return obj
}

// edit changes the Thing a as its user would. A change of the spec is a new generation.
func (w *world) edit(change func(*Thing)) {
	w.tb.Helper()
	obj := w.thing()
	spec := obj.Spec
	change(obj)
	if obj.Spec != spec {
		obj.Generation++
	}
	must(w.tb, w.server.Update(context.Background(), obj))
}

// editStatus changes the status of the Thing a as another controller would.
func (w *world) editStatus(change func(*Thing)) {
	w.tb.Helper()
	obj := w.thing()
	change(obj)
	must(w.tb, w.server.Status().Update(context.Background(), obj))
}

func (w *world) create(obj client.Object) {
	w.tb.Helper()
	must(w.tb, w.server.Create(context.Background(), obj))
}

func (w *world) remove(obj client.Object) {
	w.tb.Helper()
	must(w.tb, w.server.Delete(context.Background(), obj))
}

// takeWrites returns the writes since it was called last.
func (w *world) takeWrites() []string { return w.take(&w.writes) }

// takeEvents returns the events since it was called last.
func (w *world) takeEvents() []string { return w.take(&w.events) }

func (w *world) take(from *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := *from
	*from = nil
	return all
}

// recorded returns the entries of a type of event.
func recorded[E journal.Event](w *world) []E {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []E
	for _, entry := range w.entries {
		if e, ok := entry.Event.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// lastResult returns how the last reconcile ended, as the journal has it.
func (w *world) lastResult() journal.Result {
	w.tb.Helper()
	all := recorded[journal.Finished](w)
	if len(all) == 0 {
		w.tb.Fatal("no reconcile has finished")
	}
	return all[len(all)-1].Result
}

// conditionOf describes a condition of the Thing a as "False TemporaryError: text", empty if there
// is none.
func (w *world) conditionOf(kind string) string {
	w.tb.Helper()
	obj := w.thing()
	if obj == nil {
		return "no object"
	}
	return describe(obj, kind)
}

// liveEngine makes an engine that can also read past the cache.
func liveEngine(w *world, steps ...step.Step[*Thing]) *step.Engine[*Thing] {
	w.tb.Helper()
	options := w.options()
	options.APIReader = w.liveReader()
	return w.engineWith(options, steps...)
}

// is checks a condition of the Thing a.
func (w *world) is(kind, want string) {
	w.tb.Helper()
	same(w.tb, kind, want, w.conditionOf(kind))
}

// begins checks how a condition of the Thing a begins.
func (w *world) begins(kind, want string) {
	w.tb.Helper()
	if got := w.conditionOf(kind); !strings.HasPrefix(got, want) {
		w.tb.Errorf("%s: got %q, want it to begin with %q", kind, got, want)
	}
}

// wrote checks the writes since it was called last, and said the events.
func (w *world) wrote(want ...string) {
	w.tb.Helper()
	same(w.tb, "writes", want, w.takeWrites(), cmpopts.EquateEmpty())
}

func (w *world) said(want ...string) {
	w.tb.Helper()
	same(w.tb, "events", want, w.takeEvents(), cmpopts.EquateEmpty())
}

// ended checks how the last reconcile ended.
func (w *world) ended(want journal.Result) {
	w.tb.Helper()
	same(w.tb, "finished", want, w.lastResult())
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](tb tester, what string, want, got T, options ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// none checks that there are none of what.
func none[E any](tb tester, what string, got []E) {
	tb.Helper()
	if len(got) > 0 {
		tb.Errorf("%s: %v, want none", what, got)
	}
}

func must(tb tester, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func describe(obj *Thing, kind string) string {
	c := meta.FindStatusCondition(obj.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	text := string(c.Status) + " " + c.Reason
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// failOn returns a fault for the requests that contain text.
func failOn(text string, err error) func(string) error {
	return func(request string) error {
		if strings.Contains(request, text) {
			return err
		}
		return nil
	}
}

func conflictError() error { return apierrors.NewConflict(things, "a", errors.New("it was changed")) }
func forbiddenError() error {
	return apierrors.NewForbidden(things, "a", errors.New("no permission"))
}

// bubble runs a test in a time of its own, which stands still while it works.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func runInBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d) }

// mergePatch is what another client sends.
func mergePatch(format string, args ...any) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// newHiddenClient returns a server that has obj.
func newHiddenClient(obj *Hidden) client.Client {
	return fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).WithStatusSubresource(&Hidden{}).WithObjects(obj).Build()
}
