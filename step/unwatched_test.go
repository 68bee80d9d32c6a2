// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

type unwatchedDo = func(ctx context.Context, req *request) error

// then returns a Do that reads, and ends with an outcome.
func then(read func(ctx context.Context, req *request) error, end func() error) unwatchedDo {
	return func(ctx context.Context, req *request) error {
		if err := client.IgnoreNotFound(read(ctx, req)); err != nil {
			return err
		}
		return end()
	}
}

// gets returns what reads the object default/x into a new object.
func gets(obj func() client.Object) func(ctx context.Context, req *request) error {
	return func(ctx context.Context, req *request) error {
		return req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "x"}, obj())
	}
}

// getsOwned reads the Secret that the object owns.
func getsOwned(ctx context.Context, req *request) error {
	return req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "of-" + req.Object.Name}, aSecret())
}

func aSecret() client.Object { return &corev1.Secret{} }

func unstructuredSecret() client.Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("Secret")
	return u
}

func secretMetadata() client.Object {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

// toNothing is a handler that requests nothing: what is watched counts, not for which objects.
var toNothing = handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })

// sourceOf returns a source of Secrets in the cache of the cluster, which is not started: nothing of
// it is read but its kind.
func sourceOf(c cache.Cache) source.Source {
	return source.Kind(c, aSecret(), handler.EventHandler(toNothing))
}

// typedSourceOf is the same with a handler of Secrets.
func typedSourceOf(c cache.Cache) source.Source {
	return source.Kind(c, &corev1.Secret{}, handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *corev1.Secret) []reconcile.Request { return nil }))
}

// An unwatchedCase is an operator that reads, and what it is accused of.
type unwatchedCase struct {
	name  string
	do    unwatchedDo
	watch func(e *step.Engine[*Thing], b *builder.Builder, c cache.Cache) *builder.Builder
	extra step.Step[*Thing]
	// declared is read on purpose.
	declared []client.Object
	// unstarted has the manager not start, and the engine read without a cache: in a bubble, a watch
	// of metadata does not end.
	unstarted bool
	want      []string // in the journal: each time
}

// hourly is the Do of what is outside the cluster.
func hourly(context.Context, *request) error {
	return ctrlkit.RequeueWithin(time.Hour)
}

func unwatchedCases() []unwatchedCase {
	get, done := gets(aSecret), func() error { return nil }
	const accused = "read Secret default/x, which nothing watches"
	type on = func(e *step.Engine[*Thing], b *builder.Builder, c cache.Cache) *builder.Builder
	watched := func(watch func(b *builder.Builder)) on {
		return func(_ *step.Engine[*Thing], b *builder.Builder, _ cache.Cache) *builder.Builder {
			watch(b)
			return b
		}
	}
	from := func(src func(c cache.Cache) source.Source) on {
		return func(_ *step.Engine[*Thing], b *builder.Builder, c cache.Cache) *builder.Builder {
			return b.WatchesRawSource(src(c))
		}
	}
	wrong := []unwatchedCase{
		{name: "a cached read", do: then(get, done), want: []string{accused}},
		{name: "a wait", do: then(get, func() error { return ctrlkit.Wait("Secret default/x") }), want: []string{accused}},
		{name: "an exit", do: then(get, func() error { return ctrlkit.ErrExit }), want: []string{accused}},
		{name: "a read of what is not there", do: then(func(ctx context.Context, req *request) error {
			return errors.Join(get(ctx, req), client.IgnoreNotFound(req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "y"}, aSecret())))
		}, done), want: []string{"read Secret default/y, which nothing watches"}},
		{name: "a list", do: then(func(ctx context.Context, req *request) error {
			return req.Client.List(ctx, &corev1.SecretList{}, client.InNamespace("default"))
		}, done), want: []string{"read a list of Secret in default, which nothing watches"}},
		{name: "a live read", do: then(func(ctx context.Context, req *request) error {
			return req.APIReader.Get(ctx, client.ObjectKey{Namespace: "default", Name: "x"}, aSecret())
		}, done), want: []string{accused}},
		{name: "a live list", do: then(func(ctx context.Context, req *request) error {
			return req.APIReader.List(ctx, &corev1.SecretList{})
		}, done), want: []string{"read a list of Secret, which nothing watches"}},
		{name: "an unstructured read", do: then(gets(unstructuredSecret), done), want: []string{accused}},
		{name: "a read of metadata", unstarted: true, do: then(gets(secretMetadata), done), want: []string{accused}},
		{name: "two kinds, of which one is watched", do: then(func(ctx context.Context, req *request) error {
			return errors.Join(get(ctx, req), client.IgnoreNotFound(gets(func() client.Object { return &corev1.ConfigMap{} })(ctx, req)))
		}, done), watch: watched(func(b *builder.Builder) { b.Owns(&corev1.ConfigMap{}) }), want: []string{accused}},
		{name: "another kind is declared", do: then(get, done), declared: []client.Object{&corev1.ConfigMap{}}, want: []string{accused}},
		{name: "a wait beside the time of another step", extra: doing("External", hourly), want: []string{accused},
			do: then(get, func() error { return ctrlkit.Wait("Secret default/x") })},
		{name: "others of the kind are owned", do: then(get, done), want: []string{accused}, watch: watched(func(b *builder.Builder) { b.Owns(&corev1.Secret{}) })},
		{name: "a step watches others, which it owns", do: then(get, done), want: []string{accused}, extra: watching(doing("Watch", passes), step.Watch{Object: &corev1.Secret{}, Owned: true})},
		{name: "a source of another kind", do: then(get, done), want: []string{accused}, watch: from(func(c cache.Cache) source.Source {
			return source.Kind(c, client.Object(&corev1.ConfigMap{}), handler.EventHandler(toNothing))
		})},
	}
	right := []unwatchedCase{
		{name: "owned", do: then(getsOwned, done), watch: watched(func(b *builder.Builder) { b.Owns(&corev1.Secret{}) })},
		{name: "a child that is not there yet", do: then(func(ctx context.Context, req *request) error {
			return req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "y"}, aSecret())
		}, done), watch: watched(func(b *builder.Builder) { b.Owns(&corev1.Secret{}) })},
		{name: "watched", do: then(get, done), watch: func(e *step.Engine[*Thing], b *builder.Builder, _ cache.Cache) *builder.Builder {
			return b.Watches(&corev1.Secret{}, e.WrapHandler(toNothing))
		}},
		{name: "named", do: then(get, done), extra: watching(doing("Watch", passes), step.WatchNamed(&corev1.Secret{}, func(*Thing) []client.ObjectKey { return []client.ObjectKey{{Name: "x"}} }))},
		{name: "its metadata is watched", unstarted: true, do: then(get, done), watch: watched(func(b *builder.Builder) { b.WatchesMetadata(&corev1.Secret{}, toNothing) })},
		{name: "watched unstructured", do: then(get, done), watch: watched(func(b *builder.Builder) { b.Watches(unstructuredSecret(), toNothing) })},
		{name: "partial metadata is watched", unstarted: true, do: then(get, done), watch: watched(func(b *builder.Builder) { b.Watches(secretMetadata(), toNothing) })},
		{name: "watched, and listed live", do: then(func(ctx context.Context, req *request) error {
			return req.APIReader.List(ctx, &corev1.SecretList{})
		}, done), watch: watched(func(b *builder.Builder) { b.Owns(&corev1.Secret{}) })},
		{name: "a source of the kind", do: then(get, done), watch: from(sourceOf)},
		{name: "a typed source of the kind", do: then(get, done), watch: from(typedSourceOf)},
		{name: "a source that does not say its kind", do: then(get, done), watch: from(func(cache.Cache) source.Source {
			return source.Channel(make(chan event.GenericEvent), handler.EventHandler(&handler.EnqueueRequestForObject{}))
		})},
		{name: "a step watches it", do: then(get, done), extra: watching(doing("Watch", passes), step.Watch{Object: &corev1.Secret{}, Read: true, Owned: true})},
		{name: "a step watches what it owns", do: then(getsOwned, done), extra: watching(doing("Watch", passes), step.Watch{Object: &corev1.Secret{}, Owned: true})},
		{name: "declared", do: then(get, done), declared: []client.Object{&corev1.Secret{}}},
		{name: "a time", do: then(get, func() error { return ctrlkit.AsError(ctrlkit.RequeueAfter(time.Hour)) })},
		{name: "a time, and it continues", do: then(get, func() error { return ctrlkit.RequeueWithin(time.Hour) })},
		{name: "a read beside the time of another step", extra: doing("External", hourly), do: then(get, done)},
		{name: "a wait beside a poll", extra: doing("External", func(context.Context, *request) error {
			return ctrlkit.RequeueWithin(time.Minute)
		}), do: then(get, func() error { return ctrlkit.Wait("Secret default/x") })},
		{name: "a poll beside the time of another step", extra: doing("External", hourly),
			do: then(get, func() error { return ctrlkit.Poll("Secret default/x", time.Hour) })},
		{name: "a poll", do: then(get, func() error { return ctrlkit.Poll("Secret default/x", time.Hour) })},
		{name: "a failure", do: then(get, func() error { return errors.New("broken") })},
		{name: "another object of its own kind", do: then(gets(func() client.Object { return &Thing{} }), done)},
		{name: "the answer to a write", do: func(ctx context.Context, req *request) error {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
			return req.Client.Patch(ctx, secret, mergePatch(`{"data":{"a":"Yg=="}}`))
		}},
		{name: "a kind that the server does not have", do: then(func(ctx context.Context, req *request) error {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("absent.example.com/v1")
			u.SetKind("Absent")
			if err := req.APIReader.Get(ctx, client.ObjectKey{Namespace: "default", Name: "x"}, u); err == nil {
				return errors.New("it is there")
			}
			return nil
		}, done)},
	}
	return append(wrong, right...)
}

// A kind that is read, that nothing watches, and for which no time is requested is reported: once in
// the log, and for each object in the journal. Whatever reconciles the object again is no mistake.
func TestUnwatchedReads(t *testing.T) {
	for _, test := range unwatchedCases() {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
			c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
			for _, name := range []string{"a", "b"} {
				owner := &Thing{}
				c.must(c.user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, owner))
				of := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-" + name}}
				c.must(controllerutil.SetControllerReference(owner, of, c.user.Scheme()))
				c.create(of)
			}
			logged := &logLines{}
			o := operator{name: "things", steps: []step.Step[*Thing]{doing("Read", test.do)}, unwatched: test.declared, logger: funcr.New(logged.add, funcr.Options{})}
			if test.extra.Name != "" {
				o.steps = slices.Insert(o.steps, 0, test.extra)
			}
			if test.watch != nil {
				o.watchIn = test.watch
			}
			if o.unstarted = test.unstarted; o.unstarted {
				e := c.start(o)
				for _, name := range []string{"a", "b", "a", "b"} { // the first reconcile of each writes
					_, err := e.Reconcile(log.IntoContext(t.Context(), o.logger.WithValues("controller", "things")), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}})
					c.must(err)
				}
			} else {
				c.start(o)
				pass(30 * time.Second)
			}
			if c.ran("things") == 0 {
				t.Fatal("the steps have not run")
			}
			got := c.unwatchedOf("things")
			slices.Sort(got)
			same(t, "in the journal", test.want, slices.Compact(got))
			for _, name := range []string{"a", "b"} {
				if len(test.want) > 0 && !c.isAccused("things", name) {
					t.Errorf("Thing %s is not accused", name)
				}
			}
			lines := logged.with("Reading a kind that nothing watches")
			if len(lines) != len(test.want) {
				t.Errorf("%d lines in the log, want %d:\n%s", len(lines), len(test.want), strings.Join(lines, "\n"))
			}
			for _, line := range lines {
				for _, want := range []string{`"readKind"="Secret"`, `"step"="Read"`, `"controller"="things"`, "WatchNamed", "RequeueWithin", "Options.Unwatched"} {
					if !strings.Contains(line, want) {
						t.Errorf("the log does not say %s: %s", want, line)
					}
				}
			}
		})
	}
}

// What a watch that comes later reports is watched.
func TestALaterWatchIsOne(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := operator{name: "things", steps: []step.Step[*Thing]{doing("Read", then(gets(aSecret), func() error { return nil }))}}
		o.watchesLater = &corev1.Secret{}
		c.start(o)
		pass(30 * time.Second)
		if got := c.unwatchedOf("things"); c.ran("things") == 0 || len(got) > 0 {
			t.Errorf("it has run %d times, and is accused: %v", c.ran("things"), got)
		}
	})
}

// A reconcile whose own write triggers the next one is not judged: only that one ends.
func TestUnwatchedReadsBeforeAWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		reads := then(gets(aSecret), func() error { return nil })
		c.start(operator{name: "things", steps: []step.Step[*Thing]{doing("Read", func(ctx context.Context, req *request) error {
			if req.Object.Annotations["seen"] == "" {
				metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "seen", "yes")
				return reads(ctx, req)
			}
			return ctrlkit.AsError(ctrlkit.RequeueAfter(time.Hour))
		})}})
		pass(30 * time.Second)
		if got := c.unwatchedOf("things"); c.ran("things") < 2 || len(got) > 0 {
			t.Errorf("it has run %d times, and is accused: %v", c.ran("things"), got)
		}
	})
}

// A wait counts although its reconcile has written the status: a predicate may hide that write.
func TestAnUnwatchedWaitBehindAPredicate(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(operator{
			name: "things", steps: []step.Step[*Thing]{doing("Read", then(gets(aSecret), func() error { return ctrlkit.Wait("Secret default/x") }))},
			watch: func(b *builder.Builder) *builder.Builder {
				return b.WithEventFilter(predicate.GenerationChangedPredicate{})
			},
		})
		pass(30 * time.Second)
		if got := c.unwatchedOf("things"); c.ran("things") != 1 || len(got) != 1 {
			t.Errorf("it has run %d times, and is accused of %v", c.ran("things"), got)
		}
	})
}

// An engine that does not know what is watched accuses no one: one without a controller, and one
// whose program says nothing of its watches.
func TestUnwatchedReadsOfOtherPrograms(t *testing.T) {
	tests := []struct {
		name string
		wire func(e *step.Engine[*Thing]) error
		want int
	}{
		{"no controller", func(*step.Engine[*Thing]) error { return nil }, 0},
		{"wired, with watches that are not known", func(e *step.Engine[*Thing]) error { _, err := e.Wire(); return err }, 0},
		{"wired, with the watch", func(e *step.Engine[*Thing]) error { _, err := e.Wire(&Thing{}, &corev1.ConfigMap{}); return err }, 0},
		{"wired, without it", func(e *step.Engine[*Thing]) error { _, err := e.Wire(&Thing{}); return err }, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing(), configMap("x", nil))
			e := w.engine(doing("Read", then(gets(func() client.Object { return &corev1.ConfigMap{} }), func() error { return nil })))
			must(t, test.wire(e))
			w.must()
			w.must() // the first one has written
			if got := recorded[journal.Unwatched](w); len(got) != test.want {
				t.Errorf("accused of %v, want %d", got, test.want)
			}
		})
	}
}

// What is declared is checked.
func TestUnwatchedKindsThatAreNotKnown(t *testing.T) {
	for _, test := range []struct {
		declared client.Object
		want     string
	}{
		{nil, "Options.Unwatched: object 1 is nil"},
		{&metav1.PartialObjectMetadata{}, "Options.Unwatched: kind of *v1.PartialObjectMetadata"},
	} {
		w := newWorld(t, newThing())
		options := w.options()
		options.Unwatched = []client.Object{test.declared}
		if _, err := step.New(options, doing("A", passes)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: %v, want %q", test.declared, err, test.want)
		}
	}
}

// logLines are the lines that a logger has written.
type logLines struct {
	mu  sync.Mutex
	all []string
}

func (l *logLines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, prefix+" "+args)
}

// with returns the lines with a message.
func (l *logLines) with(message string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(line string) bool { return !strings.Contains(line, fmt.Sprintf("%q=%q", "msg", message)) })
}
