// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
)

// removingProjects returns a handler of Projects with a finalizer that notes what it is called for.
func (w *world) removingProjects(name string) handlers.Handler[*Project] {
	note := func(verb string) func(context.Context, *Project) error {
		return func(_ context.Context, obj *Project) error {
			w.call(name + " " + verb + ":" + obj.Name)
			return nil
		}
	}
	return handlers.Handler[*Project]{Name: name, Finalizer: "example.com/" + name, OnChange: note("change"), OnRemove: note("remove")}
}

// finalizers returns those of a Project in order, "-" if there is none of that name.
func (w *world) finalizers(name string) string {
	w.t.Helper()
	obj := newProject(name)
	if err := w.user.Get(w.ctx, key(name), obj); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	} else if err != nil {
		return "-"
	}
	slices.Sort(obj.Finalizers)
	return strings.Join(obj.Finalizers, " ")
}

// Others change the objects at the same time: what they write stays.
func TestRetireRetriesConflicts(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		r := w.register(w.removingProjects("one"))
		w.start()
		changes := 0
		w.faulty(func(req *http.Request) error {
			if req.Method == http.MethodPatch && changes < 3 {
				changes++
				obj := newProject("a")
				w.must(w.user.Get(w.ctx, key("a"), obj))
				obj.Finalizers = append(obj.Finalizers, fmt.Sprint("example.com/other-", changes))
				w.must(w.user.Update(w.ctx, obj))
			}
			return nil
		})
		w.must(r.Retire(w.ctx))
		if got := w.finalizers("a"); got != "example.com/other-1 example.com/other-2 example.com/other-3" {
			t.Errorf("it has %q", got)
		}
	})
}

// An object that was created again under the name of a listed one is another one: it is left alone.
func TestRetireLeavesANewObjectOfTheName(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		r := w.register(w.removingProjects("one"))
		w.start()
		replaced := false
		w.faulty(func(req *http.Request) error {
			if req.Method == http.MethodPatch && !replaced {
				replaced = true
				old := newProject("a")
				w.must(w.user.Get(w.ctx, key("a"), old))
				old.Finalizers = nil
				w.must(w.user.Update(w.ctx, old))
				w.must(w.user.Delete(w.ctx, old))
				restored := newProject("a")
				restored.Finalizers = []string{"example.com/one"}
				w.create(restored)
			}
			return nil
		})
		w.must(r.Retire(w.ctx))
		if got := w.finalizers("a"); !replaced || got != "example.com/one" {
			t.Errorf("replaced %v, and the new object has %q, want its own finalizer", replaced, got)
		}
	})
}

func TestRetireNamesWhatRemains(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		for i := range 14 {
			w.create(newProject(fmt.Sprintf("a%02d", i)))
		}
		w.create(newProject("b"))
		r := w.register(w.removingProjects("one"))
		w.start()
		w.faulty(func(req *http.Request) error {
			if req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/projects/a") {
				return errors.New("connection refused")
			}
			return nil
		})
		err := r.Retire(w.ctx)
		for _, want := range []string{`handler "one": finalizer "example.com/one" stays on Project.example.com default/a00: `, "connection refused", `finalizer "example.com/one" stays on 4 more`} {
			if err == nil || !contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		if got := w.finalizers("b"); got != "" {
			t.Errorf("the other one has %q", got)
		}
		w.faulty(nil)
		w.must(r.Retire(w.ctx))
		if got := w.finalizers("a00"); got != "" {
			t.Errorf("after the second try: %q", got)
		}
	})
}

// A call that is running might put the finalizer on its object.
func TestRetireWaitsForCalls(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		var r *handlers.Registration
		one := w.removingProjects("one")
		one.OnChange = func(ctx context.Context, _ *Project) error {
			if err := r.Retire(ctx); err == nil || !contains(err.Error(), "can't be retired by a call of its own") {
				w.t.Errorf("Retire by the handler: %v", err)
			}
			time.Sleep(time.Minute)
			return nil
		}
		r = w.register(one)
		w.start()
		soon, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := r.Retire(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Retire did not wait: %v", err)
		}
		if got := w.finalizers("a"); got != "example.com/one" {
			t.Errorf("while it runs: %q", got)
		}
		w.must(r.Retire(w.ctx))
		if got := w.finalizers("a"); got != "" {
			t.Errorf("after Retire: %q", got)
		}
	})
}
