// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestCallStories(t *testing.T) { playStories(t, "calls.story", false) }

// A watch means the same for a plain handler and for one whose engine has it.
func TestRelatedStories(t *testing.T) {
	t.Run("plain", func(t *testing.T) { playStories(t, "related.story", false) })
	t.Run("steps", func(t *testing.T) { playStories(t, "related.story", true) })
}

func TestOnRemoveStories(t *testing.T) { playStories(t, "finalizers.story", false) }

func TestStopStories(t *testing.T) { playStories(t, "stops.story", false) }

// playStories plays the stories of a file in testdata: which handlers are called for what. A line
// shows the calls that it caused, as handler:object, and the error of what it does. Handlers that relate
// something have steps if asSteps says so.
func playStories(t *testing.T, file string, asSteps bool) {
	t.Helper()
	golden.Stories(t, file, func(story []string) (played []string) {
		inWorld(t, func(o *handlers.Options) {
			for _, line := range story {
				if period, ok := strings.CutPrefix(line, "resync "); ok {
					o.Default.Resync = duration(t, period)
				}
			}
		}, func(w *world) {
			s := &storyWorld{world: w, asSteps: asSteps, registered: make(map[string]*handlers.Registration)}
			played = golden.Play(story, s.do)
		})
		return played
	})
}

// A storyWorld is the world of a story.
type storyWorld struct {
	*world
	asSteps    bool
	registered map[string]*handlers.Registration
	healed     atomic.Bool // handlers that fail do not any more
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// do does what a line says.
func (s *storyWorld) do(line string) (shown []string) {
	words := strings.Fields(line)
	verb, words := words[0], words[1:]
	if last := len(words) - 1; last >= 0 && words[last] == "quietly" { // how often is not promised
		words = words[:last]
		defer func() { shown = nil }()
	}
	var err error
	switch verb {
	case "create", "change", "delete":
		s.write(verb, s.object(words[0], words[1]), words[2:])
	case "finalizers":
		return []string{fmt.Sprintf("%q", s.finalizers(words[0]))}
	case "kinds":
		for _, k := range s.registry.Kinds() {
			shown = append(shown, k.Kind.Kind+" "+string(k.State))
		}
		return shown
	case "handle":
		err = s.handle(words)
	case "retire":
		err = s.registered[words[0]].Retire(s.ctx)
	case "stop":
		err = s.stopHandler(words)
	case "enqueue":
		maps := handlers.KindOf[*corev1.ConfigMap](s.registry)
		if len(words) == 2 {
			err = maps.EnqueueAfter(duration(s.t, words[1]), key(words[0]))
		} else {
			err = maps.Enqueue(key(words[0]), key(words[0]))
		}
	case "wait":
		time.Sleep(duration(s.t, words[0]))
		return s.shown(nil)
	default:
		s.set(verb, words)
	}
	if s.stop != nil {
		s.settle()
	}
	return s.shown(err)
}

// set does what a line says of the world, and not of objects or handlers.
func (s *storyWorld) set(verb string, words []string) {
	switch verb {
	case "start":
		s.start()
	case "end":
		s.world.stop()
	case "heal":
		s.healed.Store(true)
	case "install":
		s.must(s.server.Install(definitionOf(words[0])))
	case "resync": // an option of the registry
	case "informer": // another one uses the informer of ConfigMaps
		_, err := s.mgr.GetCache().GetInformer(s.ctx, &corev1.ConfigMap{})
		s.must(err)
	case "slow": // requests that read a resource
		s.faulty(func(r *http.Request) error {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/"+words[0]) {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
	default:
		s.t.Fatalf("unknown line: %s %v", verb, words)
	}
}

func (s *storyWorld) shown(err error) (shown []string) {
	if calls := s.takeCalls(); calls != "" {
		shown = append(shown, calls)
	}
	if errors.Is(err, handlers.ErrNoHandler) {
		shown = append(shown, "ErrNoHandler")
	} else if err != nil {
		shown = append(shown, "error: "+err.Error())
	}
	return shown
}

func (s *storyWorld) object(kind, name string) client.Object {
	switch kind {
	case "map":
		return newConfigMap(name, nil)
	case "secret":
		return newSecret(name)
	case "project":
		return newProject(name)
	}
	s.t.Fatalf("unknown kind %q", kind)
	return nil
}

// write creates, changes or deletes an object. A change without a field is one of a label.
func (s *storyWorld) write(verb string, obj client.Object, fields []string) {
	if verb == "delete" {
		s.must(s.user.Delete(s.ctx, obj))
		return
	}
	if verb == "change" {
		s.must(s.user.Get(s.ctx, client.ObjectKeyFromObject(obj), obj))
		if len(fields) == 0 {
			fields = []string{"label=touched:" + obj.GetResourceVersion()}
		}
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		s.setField(obj, name, value)
	}
	if verb == "create" {
		s.create(obj)
	} else {
		s.must(s.user.Update(s.ctx, obj))
	}
}

func (s *storyWorld) setField(obj client.Object, name, value string) {
	pairs := map[string]string{}
	if k, v, ok := strings.Cut(value, ":"); ok {
		pairs[k] = v
	}
	switch name {
	case "label":
		obj.SetLabels(pairs)
	case "annotation":
		obj.SetAnnotations(pairs)
	case "finalizers":
		obj.SetFinalizers(strings.FieldsFunc(value, func(r rune) bool { return r == ',' }))
	case "secret":
		obj.(*Project).Spec.Secret = value
	case "size":
		obj.(*Project).Spec.Size = int64(len(value))
	case "owner": // with the version of its kind
		owner, version, _ := strings.Cut(value, "@")
		ownedBy(obj, s.project(owner), "example.com/"+version)
	default:
		s.t.Fatalf("unknown field %q", name)
	}
}

// handle registers a handler: its name, its kind and its options.
func (s *storyWorld) handle(words []string) (err error) {
	var entry handlers.Entry
	if words[1] == "map" {
		entry = handlerOf[*corev1.ConfigMap](s, words[0], words[2:])
	} else {
		entry = handlerOf[*Project](s, words[0], words[2:])
	}
	s.registered[words[0]], err = s.registry.Register(entry)
	return err
}

func handlerOf[T client.Object](s *storyWorld, name string, options []string) handlers.Entry {
	var every, takes time.Duration
	fails := false
	call := func(verb string) func(context.Context, T) error {
		return func(ctx context.Context, obj T) error {
			time.Sleep(takes)
			s.must(ctx.Err())
			if fails && !s.healed.Load() {
				return errors.New("refused")
			}
			s.call(name + verb + ":" + obj.GetName())
			if every > 0 {
				return ctrlkit.RequeueWithin(every)
			}
			return nil
		}
	}
	h := handlers.Handler[T]{Name: name, OnChange: call("")}
	for _, option := range options {
		option, value, _ := strings.Cut(option, "=")
		switch option {
		case "every":
			every = duration(s.t, value)
		case "takes":
			takes = duration(s.t, value)
		case "fails":
			fails = true
		case "resync":
			h.Resync = true
		case "gone":
			h.OnGone = func(_ context.Context, name client.ObjectKey) error {
				s.call(h.Name + " gone:" + name.Name)
				return nil
			}
		case "removes":
			h.Finalizer, h.OnRemove = "example.com/"+name, call(" remove")
		case "selects": // objects with this label, or of a size
			h.Selects = func(obj T) bool {
				p, ok := any(obj).(*Project)
				return obj.GetLabels()[value] != "" || ok && value == "size" && big(p)
			}
		default:
			h.Related = append(h.Related, s.watch(option, value))
		}
	}
	if s.asSteps && len(h.Related) > 0 {
		return handlers.Steps(name, handlers.StepsOptions[T]{Related: h.Related},
			step.Step[T]{Name: name, Do: func(ctx context.Context, req *step.Request[T]) error { return h.OnChange(ctx, req.Object) }})
	}
	return h
}

func (s *storyWorld) watch(option, value string) step.Watch {
	switch option {
	case "owns":
		return step.WatchOwned(s.object(value, ""))
	case "labeled":
		kind, label, _ := strings.Cut(value, ":")
		return step.WatchLabeled(s.object(kind, ""), label)
	case "related": // each Secret is to a, b, a again and nothing
		return step.WatchMapped(&corev1.Secret{}, func(*corev1.Secret) []client.ObjectKey {
			return []client.ObjectKey{key("a"), key("b"), key("a"), {}}
		})
	case "names":
		return step.WatchNamed(&corev1.Secret{}, func(p *Project) []client.ObjectKey { return []client.ObjectKey{{Name: p.Spec.Secret}} })
	}
	s.t.Fatalf("unknown option %q", option)
	return step.Watch{}
}

// stopHandler stops a handler, and may wait for it only so long.
func (s *storyWorld) stopHandler(words []string) error {
	ctx, cancel := s.ctx, func() {}
	if len(words) > 1 {
		ctx, cancel = context.WithTimeout(ctx, duration(s.t, words[1]))
	}
	defer cancel()
	return s.registered[words[0]].Stop(ctx)
}
