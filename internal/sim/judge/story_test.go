// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// A story is what a judge sees, in lines, and below each what it says. It begins with a line that names the
// oracle that it is about, and whether the operator is right. Options of the judge come first.
type story struct {
	t       *testing.T
	options Options
	judge   *Judge                    // nil as long as there are options
	now     map[string]map[string]any // the objects
	said    []string
}

// Each oracle accuses only what is wrong, in its own name, in the words of the golden file, and nothing
// when it is switched off. Each has stories of both kinds: without a right one it could accuse everything,
// without a wrong one nothing.
func TestOracles(t *testing.T) {
	kinds := map[oracle.Name]map[string]bool{}
	golden.Stories(t, "oracles.txt", func(lines []string) (played []string) {
		fields := strings.Fields(lines[0])
		name, kind := oracle.Name(fields[1]), strings.TrimSuffix(fields[2], ":")
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t)
			played = golden.Play(lines, s.play)
			right := kind == "right" && len(s.said) == 0
			wrong := kind == "wrong" && len(s.said) > 0 && strings.HasPrefix(s.said[0], string(name)+": ")
			if !right && !wrong {
				t.Errorf("%s: got %q", lines[0], s.said)
			}
			s = newStory(t)
			s.options.Without[name] = "it is switched off"
			if golden.Play(lines, s.play); len(s.said) > 0 {
				t.Errorf("accused although it is off: %s: got %q", lines[0], s.said)
			}
		})
		if kinds[name] == nil {
			kinds[name] = map[string]bool{}
		}
		kinds[name][kind] = true
		return played
	})
	for _, r := range oracles() {
		if !kinds[r.name]["right"] || !kinds[r.name]["wrong"] || len(kinds[r.name]) != 2 {
			t.Errorf("%s has only stories that are %v, want right and wrong ones", r.name, kinds[r.name])
		}
	}
}

func newStory(t *testing.T) *story {
	s := &story{t: t, now: map[string]map[string]any{}}
	s.options = Options{Without: map[oracle.Name]string{}, Systems: map[string]external.System{}, Noticed: func(name oracle.Name, text string) int {
		s.said = append(s.said, string(name)+": "+text)
		return 0
	}}
	return s
}

// play shows the judge what a line says, and returns what it says.
func (s *story) play(line string) []string {
	before := len(s.said)
	if !s.option(line) {
		if s.judge == nil {
			s.judge = New(s.options)
		}
		s.do(line)
	}
	return s.said[before:]
}

func (s *story) decode(text string, into any) {
	s.t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
}

// option reads a line with an option of the judge.
func (s *story) option(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	widget := snapshot.Snapshot{"widgets default/w": {}}
	switch verb {
	case "plan":
		plan, err := fault.ParsePlan(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.options.Plan = plan
	case "without":
		s.options.Without[oracle.Name(rest)] = "it is tested alone"
	case "rules":
		s.decode(rest, &s.options.Rules)
	case "buckets": // how many were created for each object, and those that there are with their owners
		fields := strings.Fields(rest)
		b := system{}
		s.decode(fields[0], &b.created)
		for _, field := range fields[1:] {
			id, owner, _ := strings.Cut(field, ":")
			b.resources = append(b.resources, external.Resource{ID: id, Owner: types.UID(owner)})
		}
		s.options.Systems["buckets"] = b
	case "clock": // the operator creates ConfigMaps by the clock, and is idle after an hour
		s.options.Reference = &Reference{
			Checkpoints: []snapshot.Snapshot{widget}, times: []time.Duration{time.Hour}, said: map[string]bool{"widgets default/w Active=True": true},
			periodic: map[string]bool{"create configmaps ": true, "update widgets status": true},
		}
	case "history":
		s.options.Reference = historyOptions(0).Reference
	case "reference":
		var r struct {
			Checkpoints                 []snapshot.Snapshot
			Requests                    int
			Created, Deleted, Externals map[string]int
			Mask, Conditions, Periodic  map[string]bool
			Reconciled                  map[string]bool
			Slots                       map[string]string // the times between them; the run ends after an hour
		}
		s.decode(rest, &r)
		s.options.Reference = &Reference{
			Checkpoints: r.Checkpoints, Requests: r.Requests, Mask: r.Mask, created: r.Created, deleted: r.Deleted, externals: r.Externals,
			conditions: r.Conditions, periodic: r.Periodic, reconciled: r.Reconciled, slots: map[string]*slots{},
		}
		for what, text := range r.Slots {
			every, err := time.ParseDuration(text)
			if err != nil {
				s.t.Fatal(err)
			}
			s.options.Reference.slots[what], s.options.Reference.times = &slots{least: every}, []time.Duration{time.Hour}
		}
	default:
		return false
	}
	return true
}

// do shows the judge what a line says.
func (s *story) do(line string) {
	j := s.judge
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	number := func(text string) (n int) { s.decode(text, &n); return n }
	switch verb {
	case "repeat":
		for range number(first) {
			for step := range strings.SplitSeq(more, "; ") {
				s.do(strings.ReplaceAll(step, ", ", "; "))
			}
		}
	case "asks": // as long as it is allowed
		for range number(rest) {
			j.Request()
		}
	case "requests": // of which only the last one may be too many
		n, allowed := number(rest), true
		for i := range n {
			if allowed = j.Request(); !allowed && i < n-1 {
				s.t.Errorf("request %d is not allowed", i+1)
			}
		}
		if allowed && (len(s.said) > 0 || j.ledger.aborted || j.ledger.endless) {
			s.t.Errorf("request %d is allowed", n)
		}
	case "call", "called":
		what, owner, _ := strings.Cut(rest, " for ")
		parts := append(strings.Fields(what), "")
		c := external.Call{System: "buckets", Verb: parts[0], What: parts[1], Owner: types.UID(owner), Mutates: true}
		if verb == "call" {
			j.BeforeCall(c)
		} else {
			j.AfterCall(c)
		}
	case "idle":
		i := Idle{}
		s.decode(more, &i)
		i.Checkpoint = number(first)
		j.Idle(i)
	case "log":
		j.End(End{Logs: []string{rest}})
	case "end":
		if path, ok := strings.CutPrefix(first, "."); ok {
			history("."+path, more)(trial{j, nil})
			return
		}
		e := End{}
		s.decode(rest, &e.Checkpoints)
		j.End(e)
	default:
		if !s.note(verb, rest) {
			s.act(verb, first, more)
		}
	}
}

// note plays the judge what others report to it.
func (s *story) note(verb, rest string) bool {
	j := s.judge
	switch verb {
	case "prepared":
		j.Prepared()
	case "abort":
		j.Abort()
	case "prove":
		j.Prove(rest)
	case "disturbed":
		j.Disturbed(types.UID(rest))
	case "wiped":
		j.StatusWiped(types.UID(rest))
	case "pass":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d)
	case "event":
		name := "x"
		if strings.Contains(rest, "metadata") {
			name = "" // it is in there
		}
		j.Event(&apiserver.Request{Verb: "create", Resource: configMaps, Name: name, Body: []byte(rest)})
	case "stuck":
		cause, owner, waits := strings.Cut(rest, " for ")
		var blocked []external.Blocked
		if waits {
			blocked = append(blocked, external.Blocked{System: "buckets", Owners: []types.UID{types.UID(owner)}})
		}
		j.Stuck(cause, blocked)
	default:
		return false
	}
	return true
}

// act shows the judge what an actor does: it creates, updates, marks, deletes or removes an object, or sends a
// write, which may change the object: "operator changes update/status x => observed=2".
func (s *story) act(actor, verb, rest string) {
	of, text, _ := strings.Cut(rest, " ")
	if verb == "writes" || verb == "changes" {
		of, more, _ := strings.Cut(text, " ")
		c := s.object(of)
		does, subresource, _ := strings.Cut(strings.Fields(rest)[0], "/")
		r := &apiserver.Request{Verb: does, Subresource: subresource, Resource: c.Resource, Namespace: "default", Name: c.Name, Actor: actor}
		s.judge.BeforeWrite(r)
		response := &apiserver.Response{Code: 200}
		if verb == "changes" {
			before, after, _ := strings.Cut(more, "=>")
			c.Type, c.Actor, c.Verb, c.Subresource, c.Old, c.New = "MODIFIED", actor, r.Verb, subresource, s.content(of, before), s.content(of, after)
			s.judge.Changed(c)
		} else {
			code, message, _ := strings.Cut(more, " ")
			s.decode(code, &response.Code)
			response.Body = []byte(message)
		}
		s.judge.AfterWrite(r, response)
		return
	}
	c := s.object(of)
	before, after, both := strings.Cut(text, "=>")
	c.Actor, c.Old = actor, s.now[of]
	if !both {
		before, after = "", text
	} else if before != "" || c.Old == nil {
		c.Old = s.content(of, before)
	}
	c.New = s.content(of, after)
	if c.Old == nil {
		c.Old = s.content(of, "")
	}
	change := map[string][2]string{
		"creates": {"ADDED", "create"}, "updates": {"MODIFIED", "update"}, "marks": {"MODIFIED", "delete"}, "deletes": {"DELETED", "delete"}, "removes": {"DELETED", "update"},
	}[verb]
	c.Type, c.Verb = change[0], change[1]
	s.now[of] = runtime.DeepCopyJSON(c.New)
	switch c.Type {
	case "ADDED":
		c.Old = nil
	case "DELETED":
		c.Old, c.New = c.New, nil
		delete(s.now, of)
	case "":
		s.t.Fatalf("%s %s", actor, verb)
	}
	s.judge.Changed(c)
}

// object returns a change of an object without what has changed: "x" is a ConfigMap, "pvc/c" a
// PersistentVolumeClaim, "x#9" one with the UID 9.
func (s *story) object(of string) apiserver.Change {
	kind, name, ok := strings.Cut(of, "/")
	if !ok {
		kind, name = "cm", of
	}
	name, uid, ok := strings.Cut(name, "#")
	if !ok {
		uid = map[string]string{"x": "1", "c": "2", "p": "4"}[name]
	}
	if uid == "" {
		uid = "uid-" + name
	}
	resource := map[string]schema.GroupVersionResource{
		"cm": configMaps, "pvc": {Version: "v1", Resource: "persistentvolumeclaims"}, "secret": {Version: "v1", Resource: "secrets"},
		"pod": {Version: "v1", Resource: "pods"}, "widget": {Version: "v1", Resource: "widgets"},
		"shop": {Group: "example.com", Version: "v1", Resource: "shops"},
		"rs":   {Group: "apps", Version: "v1", Resource: "replicasets"}, "deploy": {Group: "apps", Version: "v1", Resource: "deployments"},
	}[kind]
	return apiserver.Change{Resource: resource, Namespace: "default", Name: name, UID: types.UID(uid)}
}

// content returns the content of an object: metadata such as "deleted" and "finalizers=f", a status such as
// "observed=2" and "Ready=True#1@time:Reason", which is a condition with its observed generation, time and
// reason, and the rest as YAML.
func (s *story) content(of, text string) map[string]any {
	metadata := map[string]any{"name": s.object(of).Name, "namespace": "default"}
	content := map[string]any{"metadata": metadata}
	text, rest, hasRest := strings.Cut(text, "{")
	status := map[string]any{}
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		number, _ := strconv.ParseInt(value, 10, 64) //nolint:errcheck // not all are numbers
		switch key {
		case "deleted":
			metadata["deletionTimestamp"] = "2000-01-01T00:00:00Z"
		case "foreign":
			metadata["annotations"] = map[string]any{cluster.Foreign: "true"}
		case "finalizers":
			metadata["finalizers"] = []any{value}
		case "owner":
			metadata["generation"] = int64(1) // a child
			metadata["ownerReferences"] = []any{map[string]any{"uid": value}}
		case "generation":
			metadata["generation"] = number
		case "observed":
			status["observedGeneration"] = number
		case "available":
			status["observedGeneration"], status["availableReplicas"] = int64(1), number
		default:
			conditions, _ := status["conditions"].([]any)
			status["conditions"] = append(conditions, conditionOfText(key, value))
		}
	}
	if len(status) > 0 {
		content["status"] = status
	}
	if hasRest {
		data, err := yaml.YAMLToJSON([]byte("{" + rest))
		if err != nil {
			s.t.Fatal(err)
		}
		var other map[string]any
		if err := utiljson.Unmarshal(data, &other); err != nil {
			s.t.Fatal(err)
		}
		more, _ := other["metadata"].(map[string]any)
		delete(other, "metadata")
		maps.Copy(metadata, more)
		maps.Copy(content, other)
	}
	return content
}

func conditionOfText(kind, text string) map[string]any {
	c := map[string]any{"type": kind}
	text, reason, ok := strings.Cut(text, ":")
	if ok {
		c["reason"] = reason
	}
	text, at, ok := strings.Cut(text, "@")
	if ok {
		c["lastTransitionTime"] = strings.ReplaceAll(at, ".", ":")
	}
	status, observed, ok := strings.Cut(text, "#")
	if ok {
		c["observedGeneration"], _ = strconv.ParseInt(observed, 10, 64) //nolint:errcheck // a test
	}
	c["status"] = status
	return c
}
