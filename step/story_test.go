// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A story is asked in these acts, with " | " between those of a line. A reconcile shows the calls, the writes, how it ended, and what it
// has changed of the object.
//
//	object CHANGES                the Thing a, before the engine is made; without the line it is a new one
//	no object                     there is none yet
//	engine OPTIONS STEPS          a new process: "live skip A/clean always(B/Found) group(C D/post)"
//	A does INSTRUCTIONS           also A cleans, posts, claims; from now on
//	edit CHANGES                  by a user; "status CHANGES" by another controller
//	delete, create CHANGES        by a user; "release CHANGES" has our finalizer off
//	gone CHANGES                  the event of the deletion, with the last state
//	replaced CHANGES              the event of an update that shows another object of the name
//	gone-unknown                  the event of a deletion of which the last state is not known
//	child create, update, delete  of the ConfigMap of a name, by a user
//	lag, catch up                 the cache shows the Thing as it is now, whatever happens; or as it is
//	fault PART ERROR, no fault    requests with this text in them fail
//	pass TIME, reconcile TIMES
//	undo LABEL TIMES              reconciles, and has the label changed after each; shows the last one
//	quietly TIMES                 reconciles, and shows the last one
//	settle TIME, poll TIMES       reconciles as requested, until it is ready; so many times, in no hot loop
func stories(t *testing.T, file string) {
	t.Helper()
	golden.Stories(t, file, func(story []string) (played []string) {
		bubble(t, func(t *testing.T) {
			s := &stage{t: t, obj: newThing(), does: make(map[string]string)}
			played = golden.Play(story, s.act)
		})
		return played
	})
}

func TestOrderStories(t *testing.T)      { stories(t, "order.story") }
func TestSaveStories(t *testing.T)       { stories(t, "save.story") }
func TestConditionsStories(t *testing.T) { stories(t, "conditions.story") }
func TestFinalizerStories(t *testing.T)  { stories(t, "finalizer.story") }
func TestClaimStories(t *testing.T)      { stories(t, "claim.story") }
func TestRemovedStories(t *testing.T)    { stories(t, "removed.story") }
func TestCacheStories(t *testing.T)      { stories(t, "cache.story") }
func TestSkipStories(t *testing.T)       { stories(t, "skip.story") }
func TestHotLoopStories(t *testing.T)    { stories(t, "hotloop.story") }
func TestPauseStories(t *testing.T)      { stories(t, "pause.story") }

// A stage is where a story is played.
type stage struct {
	*world
	t     *testing.T
	there []client.Object // beside the Thing, at the beginning
	obj   *Thing          // nil if there is none at the beginning
	e     *step.Engine[*Thing]
	does  map[string]string // instructions: "Do A"
	calls []string
	last  *Thing // as it was before the last change from outside
	shown []string

	spawned int // children
}

func (s *stage) act(line string) (shown []string) {
	for part := range strings.SplitSeq(line, " | ") {
		shown = append(shown, s.one(part)...)
	}
	return shown
}

func (s *stage) one(line string) []string {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "object":
		s.obj = thingWith(s.t, rest)
	case "no":
		if rest == "object" {
			s.obj = nil
		} else {
			s.fault = nil
		}
	case "engine":
		s.start(rest)
	case "fault":
		part, fault, _ := strings.Cut(rest, ": ")
		s.fault = failOn(part, errorOf(fault))
	case "lag":
		s.lag()
	case "catch":
		s.catchUp()
	case "pass":
		pass(s.duration(rest))
	case "undo":
		what, times, _ := strings.Cut(rest, " ")
		return s.undone("label "+what, number(times))
	case "quietly":
		return s.undone("", number(rest))
	case "settle":
		return s.settles(s.duration(rest))
	case "poll":
		for range number(rest) {
			pass(s.must().RequeueAfter)
		}
		none(s.t, "hot loops", recorded[journal.HotLoop](s.world))
	case "reconcile":
		return s.reconciles(max(1, number(rest)))
	case "child":
		s.child(strings.Fields(rest))
	case "replaced":
		changeAll(s.t, s.last, rest)
		s.e.EventFilter().Update(event.UpdateEvent{ObjectOld: s.last, ObjectNew: s.thing()})
	case "gone-unknown":
		s.e.EventFilter().Delete(event.DeleteEvent{Object: newThing(), DeleteStateUnknown: true})
	case "edit", "status", "delete", "create", "release", "gone":
		s.outside(verb, rest)
	default:
		how, instructions, _ := strings.Cut(rest, " ")
		kind, ok := map[string]string{"does": "Do ", "cleans": "Cleanup ", "posts": "Post ", "claims": "Claim "}[how]
		if !ok {
			s.t.Fatalf("what is %q?", line)
		}
		s.does[kind+verb] = instructions
	}
	return nil
}

// outside does what other clients do with the Thing.
func (s *stage) outside(verb, rest string) {
	if obj := s.thing(); obj != nil && verb != "gone" && !(verb == "delete" && len(obj.Finalizers) == 0 && s.last != nil) {
		s.last = obj
	}
	switch verb {
	case "edit":
		s.edit(func(obj *Thing) { changeAll(s.t, obj, rest) })
	case "status":
		s.editStatus(func(obj *Thing) { changeAll(s.t, obj, rest) })
	case "release":
		s.edit(func(obj *Thing) {
			obj.Finalizers = slices.DeleteFunc(obj.Finalizers, func(f string) bool { return f == finalizer })
			changeAll(s.t, obj, rest)
		})
	case "delete":
		s.remove(newThing())
	case "create":
		s.create(thingWith(s.t, rest))
	case "gone":
		last := s.last
		if rest != "" {
			last = thingWith(s.t, rest)
		}
		if !s.e.EventFilter().Delete(event.DeleteEvent{Object: last}) {
			s.t.Error("an event was filtered")
		}
	}
}

func (s *stage) child(words []string) {
	cm := configMap(words[1], nil)
	if strings.HasPrefix(cm.Name, "listed") {
		cm.Labels = map[string]string{"kind": "listed"}
	}
	if s.world == nil {
		s.there = append(s.there, cm)
		return
	}
	switch words[0] {
	case "create":
		s.create(cm)
	case "delete":
		s.remove(cm)
	case "update":
		must(s.t, s.server.Patch(s.t.Context(), cm, mergePatch(`{"data":{"new":"data"}}`)))
	}
}

// start makes an engine, and before the first one the world.
func (s *stage) start(text string) {
	if s.world == nil {
		if s.obj != nil {
			s.there = append(s.there, s.obj)
		}
		s.world = newWorld(s.t, s.there...)
		s.shown = s.describe()
	}
	options := s.options()
	for {
		word, rest, _ := strings.Cut(text, " ")
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "live":
			options.APIReader = s.liveReader()
		case "skip":
			options.SkipUnchanged = true
		case "finalizer":
			options.Finalizer = value
		case "retiredFinalizer":
			options.RetiredFinalizers = []string{value}
		case "retired":
			options.Retired = strings.Split(value, ",")
		default:
			steps, _ := s.steps(strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)))
			s.e = s.engineWith(options, steps...)
			return
		}
		text = rest
	}
}

// steps makes the steps up to the end or a closing bracket, and returns what follows it.
func (s *stage) steps(words []string) (all steps, rest []string) {
	for len(words) > 0 && words[0] != ")" {
		word := words[0]
		if words = words[1:]; len(words) == 0 || words[0] != "(" {
			all = append(all, s.step(word))
			continue
		}
		var inner steps
		inner, words = s.steps(words[1:])
		switch words = words[1:]; word {
		case "group":
			all = append(all, step.Group(word, inner...))
		case "ordered":
			all = append(all, step.GroupOrdered(word, inner...))
		default:
			when := map[string]func(*request) bool{
				"always": always, "never": never, "panics": func(*request) bool { panic(errFirst) },
				"sized":      func(req *request) bool { return req.Object.Spec.Size > 0 },
				"statusSize": func(req *request) bool { return req.Object.Status.Size > 0 },
			}[word]
			all = append(all, step.When(word, when, inner...))
		}
	}
	return all, words
}

// step makes a step of a name and what it is beside that: "A/clean/Found" has a Cleanup and a
// condition.
func (s *stage) step(text string) step.Step[*Thing] {
	parts := strings.Split(text, "/")
	name := parts[0]
	do := func(verb string) doFunc {
		return func(ctx context.Context, req *request) error {
			call := verb + name
			if verb != "Post " && len(parts) > 1 && !s.protected(req) && s.e.Finalizer() != "" {
				call += " without the finalizer"
			}
			addTo(&s.calls, call)
			return s.run(ctx, req, s.does[verb+name])
		}
	}
	post := func(ctx context.Context, req *request) error {
		if err := req.Failure(); err != nil {
			addTo(&s.calls, "(failed)")
		}
		return do("Post ")(ctx, req)
	}
	made := doing(name, do("Do "))
	has := func(part string) bool { return slices.Contains(parts[1:], part) }
	for _, part := range parts[1:] {
		if part[0] < 'a' {
			d := condition.Declaration{Type: part}
			if part == "Degraded" {
				d.AbnormalTrue = true
			}
			made.Conditions = append(made.Conditions, d)
		}
	}
	if has("claim") || has("external") || has("gate") || has("select") || has("clean") {
		made.Cleanup = do("Cleanup ")
	}
	if has("claim") {
		made.Claim = func(_ context.Context, req *request) error { return s.run(s.t.Context(), req, s.does["Claim "+name]) }
	}
	if has("external") {
		made.Do = outside(made.Do)
	}
	if has("gate") {
		made.Gate = gateOf
	}
	if has("select") {
		made.Cleans = annotated
	}
	if has("post") {
		made.Post = post
	}
	return made
}

// protected reports whether the server and the snapshot of a request have our finalizer.
func (s *stage) protected(req *request) bool {
	obj := s.thing()
	return obj != nil && slices.Contains(obj.Finalizers, s.e.Finalizer()) && slices.Contains(req.Snapshot().Finalizers, s.e.Finalizer())
}

// reconciles reconciles some times, and returns what is shown. What is the same again is shown once.
func (s *stage) reconciles(times int) (shown []string) {
	var before []string
	same := 0
	for i := range times {
		now := s.reconcileOnce()
		if same++; i > 0 && !slices.Equal(before, now) {
			shown = append(append(shown, often(same-1)+before[0]), before[1:]...)
			same = 1
		}
		before = now
	}
	return append(append(shown, often(same)+before[0]), before[1:]...)
}

func often(times int) string {
	if times == 1 {
		return ""
	}
	return fmt.Sprintf("%d times ", times)
}

func (s *stage) reconcileOnce() []string {
	s.calls, s.live, s.entries = nil, nil, nil
	result, err := s.world.reconcile()
	requests := append(s.live, s.takeWrites()...)
	for i := range requests {
		requests[i] = strings.NewReplacer(" status of Thing a", " status", " Thing a", "", "ConfigMap ", "").Replace(requests[i])
	}
	line := strings.Join(s.calls, ", ")
	if len(requests) > 0 {
		line += " -> " + strings.Join(requests, ", ")
	}
	if finished := recorded[journal.Finished](s.world); len(finished) > 0 {
		line += " => " + string(finished[0].Result)
	}
	if gated := recorded[journal.Gated](s.world); len(gated) > 0 {
		line += " by " + gated[0].Reason
	}
	changed := s.describe()
	if i := slices.Index(changed, "Ready True Ready"); i >= 0 {
		line, changed = line+", Ready", slices.Delete(changed, i, i+1)
	}
	switch silent := s.silent(err); {
	case silent:
		line += ", silently, again soon"
		changed = append(changed, "error: "+strings.ReplaceAll(recorded[journal.Finished](s.world)[0].Outcome.Err.Error(), "\n", "; "))
	case result.RequeueAfter > 0:
		line += fmt.Sprint(", again after ", result.RequeueAfter)
	}
	for _, text := range s.takeEvents() {
		if i := slices.IndexFunc(changed, func(line string) bool { return strings.HasPrefix(line, "Ready False "+text) }); i >= 0 {
			changed[i] += " (event)"
		} else {
			changed = append(changed, "event "+text)
		}
	}
	if err != nil && !strings.Contains(strings.Join(changed, "|"), err.Error()) {
		changed = append(changed, "error: "+err.Error())
	}
	if len(changed) > 0 && changed[0] == isGoneText {
		line, changed = line+", it is gone", changed[1:]
	}
	return append([]string{strings.TrimSpace(line)}, changed...)
}

// silent reports whether the last reconcile has met a conflict that is no error yet.
func (s *stage) silent(err error) bool {
	finished := recorded[journal.Finished](s.world)
	return err == nil && len(finished) > 0 && failure.Classify(finished[0].Outcome.Err).Class == failure.ClassConflict
}

const isGoneText = "it is gone"

// undone reconciles, and undoes what that has written, so many times. It returns what the last one
// shows.
func (s *stage) undone(how string, times int) (shown []string) {
	for range times {
		shown = s.reconcileOnce()
		if how != "" {
			s.edit(func(obj *Thing) { changeAll(s.t, obj, how) })
		}
	}
	return shown
}

// settles reconciles whenever that is requested, until the object is ready or it takes too long.
func (s *stage) settles(most time.Duration) []string {
	for start := time.Now(); ; {
		result := s.must()
		switch {
		case s.conditionOf(condition.Ready) == "True Ready" && result.RequeueAfter == 0:
			return []string{"it is ready"}
		case result.RequeueAfter == 0:
			return []string{"nothing would requeue it"}
		case time.Since(start) > most:
			return []string{"it takes too long"}
		}
		pass(result.RequeueAfter)
	}
}

// describe returns what has changed of the object since it was called last.
func (s *stage) describe() []string {
	var all []string
	if obj := s.thing(); obj == nil {
		all = []string{isGoneText}
	} else {
		all = describeAll(obj)
	}
	changed := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return slices.Contains(s.shown, line) })
	for _, line := range s.shown { // what is not there any more
		name, _, _ := strings.Cut(line, " ")
		if line != isGoneText && all[0] != isGoneText && !slices.ContainsFunc(all, func(now string) bool { return strings.HasPrefix(now, name+" ") }) {
			changed = append(changed, "no "+name)
		}
	}
	s.shown = all
	return changed
}

func describeAll(obj *Thing) []string {
	status := obj.Status
	var owners []types.UID
	for _, o := range obj.OwnerReferences {
		owners = append(owners, o.UID)
	}
	text := fmt.Sprintf("object %v spec %d owners %v labels %v annotations %v status %d %q %v", obj.Finalizers, obj.Spec.Size, owners, obj.Labels, obj.Annotations, status.Size, status.Phase, status.Counters)
	if status.ObservedGeneration != obj.Generation && len(status.Conditions) > 0 {
		text += fmt.Sprint(" of generation ", status.ObservedGeneration)
	}
	all := []string{strings.NewReplacer(" spec 0 owners []", "", " spec 0", "", " owners []", "", " labels map[]", "", " annotations map[]", "", " status 0 \"\" map[]", "", ` "" map[]`, "",
		" map[", " [", finalizer, "ours", foreignFinalizer, "foreign").Replace(text)}
	_, why, _ := strings.Cut(describe(obj, condition.Ready), " ")
	for _, c := range status.Conditions {
		text := describe(obj, c.Type)
		switch {
		case c.Type == condition.Ready:
			for _, kind := range []string{condition.Reconciling, condition.Stalled, condition.Paused} {
				if describe(obj, kind) == "True "+why {
					text += " (" + kind + ")"
				}
			}
		case text == "True "+why && why != "Ready":
			continue
		}
		if c.ObservedGeneration != obj.Generation {
			text += fmt.Sprint(" (of generation ", c.ObservedGeneration, ")")
		}
		all = append(all, c.Type+" "+text)
	}
	return all
}
