// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// Bugs that were found in the field, each with a scenario in which a naive floor has it and a
// registry has not. Some have no scenario:
//
//   - Events of a replica that is not the leader were kept in a list that only grew. A registry has
//     no informer before its Start, which the leader calls.
//   - Keys that stand for "all" or for a trigger were in the queue of a kind, and looked like
//     deletions. Enqueue takes names of objects; there are no others.
//   - Options that did the reverse of their names, and identities without separators, are those of
//     package apply, which has a test for each.
//   - Conditions of the type of the API machinery ended the process: the conditions of TestStatus
//     are of that type.
//   - Handlers and clients had no context: the functions of a handler have one.

// A handling is called for an object, which is nil if it is gone.
type handling func(ctx context.Context, name string, obj client.Object) error

// A scene is a handler of a scenario.
type scene struct {
	name  string
	like  client.Object // of the kind
	owned client.Object // objects of this kind lead to their owner; may be nil
	call  handling
}

// A floor has handlers: a registry or a naive one.
type floor interface {
	handle(h scene) (stop func(), err error)
	handleAll(all ...scene) error
	enqueue(like client.Object, name string)
	start()
}

// ours is the floor that a registry is.
type ours struct{ *world }

func (o ours) handle(h scene) (stop func(), err error) {
	r, err := o.registry.Register(entryOf(h))
	return func() { o.must(r.Stop(o.ctx)) }, err
}

func (o ours) handleAll(all ...scene) error {
	entries := make([]handlers.Entry, len(all))
	for i, h := range all {
		entries[i] = entryOf(h)
	}
	_, err := o.registry.Register(entries...)
	return err
}

func (o ours) enqueue(like client.Object, name string) {
	switch like.(type) {
	case *corev1.Secret:
		o.must(handlers.KindOf[*corev1.Secret](o.registry).Enqueue(key(name)))
	case *Project:
		o.must(handlers.KindOf[*Project](o.registry).Enqueue(key(name)))
	default:
		o.must(handlers.KindOf[*corev1.ConfigMap](o.registry).Enqueue(key(name)))
	}
}

func entryOf(h scene) handlers.Entry {
	switch h.like.(type) {
	case *corev1.Secret:
		return typedEntry[*corev1.Secret](h)
	case *Project:
		return typedEntry[*Project](h)
	}
	return typedEntry[*corev1.ConfigMap](h)
}

func typedEntry[T client.Object](h scene) handlers.Entry {
	entry := handlers.Handler[T]{Name: h.name}
	if h.call != nil {
		entry.OnChange = func(ctx context.Context, obj T) error {
			return h.call(ctx, obj.GetName(), obj)
		}
		entry.OnGone = func(ctx context.Context, name client.ObjectKey) error {
			return h.call(ctx, name.Name, nil)
		}
	}
	if h.owned != nil {
		entry.Related = []step.Watch{step.WatchOwned(h.owned)}
	}
	return entry
}

// inTheField runs a scenario with a registry, in which it must find nothing, and with a naive floor,
// in which it must find the bug.
func inTheField(t *testing.T, scenario func(w *world, f floor) (bug string)) {
	t.Helper()
	inWorld(t, nil, func(w *world) {
		if bug := scenario(w, ours{w}); bug != "" {
			t.Errorf("a registry: %s", bug)
		}
	})
	inWorld(t, nil, func(w *world) {
		bug := scenario(w, newNaive(w))
		if bug == "" {
			t.Error("a naive floor ends well: the scenario shows nothing")
		}
		t.Logf("a naive floor: %s", bug)
	})
}

// mustHandle registers handlers that note their calls as name:object, one after the other.
func (w *world) mustHandle(f floor, all ...scene) (stops []func()) {
	w.t.Helper()
	for _, h := range all {
		stop, err := f.handle(h)
		w.must(err)
		stops = append(stops, stop)
	}
	return stops
}

// notes returns a handler of ConfigMaps that notes its calls.
func (w *world) notes(name string) scene {
	return scene{name: name, like: &corev1.ConfigMap{}, call: func(_ context.Context, object string, obj client.Object) error {
		if obj == nil {
			object += " gone"
		}
		w.call(name + ":" + object)
		return nil
	}}
}

// called returns what is wrong if the calls since the last time are not these.
func (w *world) called(want string) (bug string) {
	if got := w.takeCalls(); got != want {
		return fmt.Sprintf("called %q, want %q", got, want)
	}
	return ""
}

// A handler was unregistered during a pass: the next one was skipped, and the last one ran twice.
func TestFieldUnregisteredDuringAPass(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		var stops []func()
		first := w.notes("1")
		first.call = func(_ context.Context, _ string, obj client.Object) error {
			w.call("1")
			if obj.GetLabels() != nil {
				stops[1]()
			}
			return nil
		}
		stops = w.mustHandle(f, first, w.notes("2"), w.notes("3"), w.notes("4"))
		f.start()
		w.takeCalls()
		w.touch(newConfigMap("a", nil))
		w.settle()
		return w.called("1, 3:a, 4:a")
	})
}

// All handlers got the object of the cache.
func TestFieldObjectOfTheCache(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", map[string]string{"app": "x"}))
		writes := w.notes("writes")
		writes.call = func(_ context.Context, _ string, obj client.Object) error {
			obj.GetLabels()["app"] = "changed"
			return nil
		}
		reads := w.notes("reads")
		reads.call = func(_ context.Context, _ string, obj client.Object) error {
			w.call(obj.GetLabels()["app"])
			return nil
		}
		w.mustHandle(f, writes, reads)
		f.start()
		return w.called("x")
	})
}

// A panic of one handler ended the process.
func TestFieldPanic(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		panics := w.notes("panics")
		panics.call = func(context.Context, string, client.Object) error { panic("nil pointer") }
		w.mustHandle(f, panics, w.notes("other"))
		f.start()
		return w.called("other:a")
	})
}

// One error had all handlers called again.
func TestFieldOneErrorRerunsAll(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		fails := w.notes("fails")
		fails.call = func(context.Context, string, client.Object) error { return errors.New("refused") }
		w.mustHandle(f, fails, w.notes("other"))
		f.start()
		time.Sleep(time.Minute)
		return w.called("other:a")
	})
}

// What had healed a failure waited for the rest of the backoff.
func TestFieldEnqueueWaitsForTheBackoff(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		var healed atomic.Bool
		heals := w.notes("heals")
		heals.call = func(context.Context, string, client.Object) error {
			if !healed.Load() {
				return errors.New("not yet")
			}
			w.call("done")
			return nil
		}
		w.mustHandle(f, heals)
		f.start()
		time.Sleep(time.Hour)
		healed.Store(true)
		f.enqueue(&corev1.ConfigMap{}, "a")
		w.settle()
		return w.called("done")
	})
}

// Objects of one name, of two kinds, had one backoff.
func TestFieldOneBackoffForAllKinds(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil), newSecret("a"))
		fails := scene{name: "fails", like: &corev1.Secret{}, call: func(context.Context, string, client.Object) error { return errors.New("refused") }}
		tries := 0
		second := w.notes("second")
		second.call = func(context.Context, string, client.Object) error {
			if tries++; tries == 1 {
				time.Sleep(10 * time.Minute) // meanwhile the other one fails again and again
				return errors.New("once")
			}
			w.call("done")
			return nil
		}
		w.mustHandle(f, fails, second)
		f.start()
		time.Sleep(10*time.Minute + 10*time.Second)
		return w.called("done")
	})
}

// A kind that was missing kept all others from starting.
func TestFieldMissingKindBlocksOthers(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		project := w.notes("project")
		project.like = &Project{}
		w.mustHandle(f, project, w.notes("map"))
		f.start()
		time.Sleep(time.Minute)
		return w.called("map:a")
	})
}

// A kind that was registered after the start never ran.
func TestFieldRegisteredAfterTheStart(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		f.start()
		w.mustHandle(f, w.notes("late"))
		time.Sleep(time.Minute)
		return w.called("late:a")
	})
}

// A new handler had all handlers of the kind called for all objects.
func TestFieldNewHandlerRerunsAll(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		w.mustHandle(f, w.notes("one"))
		f.start()
		w.takeCalls()
		w.mustHandle(f, w.notes("two"))
		w.settle()
		return w.called("two:a")
	})
}

// A kind whose handlers were stopped and registered again was not watched any more.
func TestFieldRegisteredAgain(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		stops := w.mustHandle(f, w.notes("one"))
		f.start()
		stops[0]()
		w.takeCalls()
		w.mustHandle(f, w.notes("two"))
		w.settle()
		w.takeCalls()
		w.touch(newConfigMap("a", nil))
		w.settle()
		return w.called("two:a")
	})
}

// The informer of a kind stayed after its last handler.
func TestFieldNothingIsReleased(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		secret := w.notes("other")
		secret.like = &corev1.Secret{}
		w.mustHandle(f, secret)
		if o, ok := f.(ours); ok {
			o.world.start()
		}
		before, _ := goroutines()
		stops := w.mustHandle(f, w.notes("one"))
		started(f)
		w.settle()
		stops[0]()
		w.settle()
		if now, _ := goroutines(); now > before {
			return fmt.Sprintf("%d goroutines are left", now-before)
		}
		return ""
	})
}

// started starts a floor that is not started yet.
func started(f floor) floor {
	if _, ok := f.(ours); !ok {
		f.start()
	}
	return f
}

// Of a registration with a mistake in it, a part stayed.
func TestFieldPartOfARegistration(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		if err := f.handleAll(w.notes("one"), scene{name: "two", like: &corev1.ConfigMap{}}); err == nil {
			return "no error"
		}
		f.start()
		return w.called("")
	})
}

// The error of one handler vanished beside the conflict of another one, and its type in a text.
func TestFieldConflictHidesErrors(t *testing.T) {
	cause := errors.New("refused")
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		conflicts, fails := w.notes("conflicts"), w.notes("fails")
		conflicts.call = func(context.Context, string, client.Object) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("please apply your changes to the latest version"))
		}
		fails.call = func(context.Context, string, client.Object) error { return cause }
		w.mustHandle(f, conflicts, fails)
		f.start()
		w.mu.Lock()
		defer w.mu.Unlock()
		var failed []error
		if n, ok := f.(*naive); ok {
			failed = n.failed
		}
		for _, e := range w.entries {
			if finished, ok := e.Event.(journal.Finished); ok {
				failed = append(failed, finished.Outcome.Err)
			}
		}
		for _, err := range failed {
			if errors.Is(err, cause) {
				return ""
			}
		}
		return "the error is not reported"
	})
}

// A handler that was stopped was still running after that.
func TestFieldStopDoesNotWait(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.create(newConfigMap("a", nil))
		var running atomic.Bool
		slow := w.notes("slow")
		slow.call = func(context.Context, string, client.Object) error {
			running.Store(true)
			time.Sleep(time.Minute)
			running.Store(false)
			return nil
		}
		stops := w.mustHandle(f, slow, w.notes("other"))
		f.start()
		stops[0]()
		defer time.Sleep(2 * time.Minute)
		if running.Load() {
			return "it is running"
		}
		return ""
	})
}

// An object that had lost its finalizers was left alone for some time.
func TestFieldFinalizersRemoved(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		a := newConfigMap("a", nil)
		a.Finalizers = []string{"example.com/other"}
		w.create(a)
		w.mustHandle(f, w.notes("one"))
		f.start()
		w.takeCalls()
		a.Finalizers = nil
		w.must(w.user.Update(w.ctx, a))
		w.settle()
		return w.called("one:a")
	})
}
