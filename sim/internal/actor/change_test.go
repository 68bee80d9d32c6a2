// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

const x = `{"a":"1"} annotations{"own":"1"} labels{"own":"1"}`

// A touched object has one more annotation and another resource version, until everything is idle.
func TestTouch(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("configmaps default/x")
		w.isObject("before", "configmaps default/x", x)
		w.Touch(w.request("PUT", configMaps+"/x", "{}"))
		w.isObject("then", "configmaps default/x", `{"a":"1"} annotations{"own":"1","touched":"true"} labels{"own":"1"}`)
		w.pass(time.Hour)
		w.isObject("later", "configmaps default/x", `{"a":"1"} annotations{"own":"1","touched":"true"} labels{"own":"1"}`)
		w.settle()
		w.isObject("when idle", "configmaps default/x", x)
		others()
		w.noted()
	})
}

// What isn't there can't be touched, and is not created when everything is idle.
func TestTouchLeavesWhatIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Touch(w.request("PUT", configMaps+"/missing", "{}"))
		w.equal("heals", 0, len(w.idle))
		w.Touch(w.request("PUT", configMaps+"/x", "{}"))
		w.ask("user", "DELETE", configMaps+"/x", "{}")
		w.settle()
		w.isObject("when idle", "configmaps default/x", "none")
	})
}

// An occupant has the name and the labels of the object that is about to be created, another owner,
// and no finalizers. It leaves after ten minutes.
func TestOccupy(t *testing.T) {
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","labels":{"app":"1"},"annotations":{"own":"1"},"finalizers":["f.example.com/f"],
		"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}]},"data":{"a":"2"}}`
	tests := map[string]struct{ method, path string }{"a creation": {"POST", configMaps}, "an apply": {"PATCH", configMaps + "/y"}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				others := w.unchanged("configmaps default/y")
				w.Occupy(w.request(test.method, test.path, body))
				const occupant = `{"a":"2"} annotations{"foreign":"true"} labels{"app":"1"}`
				w.isObject("then", "configmaps default/y", occupant)
				o, err := w.cluster.LookUp("configmaps default/y")
				w.equal("its owners", true, err == nil && len(o.GetOwnerReferences()) == 0)
				w.equal("a creation", 409, w.write("POST", configMaps, body))
				w.pass(10*time.Minute - time.Nanosecond)
				w.isObject("just before its end", "configmaps default/y", occupant)
				w.noted()
				w.pass(time.Nanosecond)
				w.isObject("at its end", "configmaps default/y", "none")
				w.noted("slow down by 10m0s")
				others()
				w.equal("a creation then", 201, w.write("POST", configMaps, body))
			})
		})
	}
}

// Only a creation whose name is known can find its name occupied.
func TestOccupyLeaves(t *testing.T) {
	for name, test := range map[string]struct{ method, path, body string }{
		"a generated name": {"POST", configMaps, `{"metadata":{"generateName":"y-"}}`},
		"an update":        {"PUT", configMaps + "/y", `{"metadata":{"name":"y"}}`},
		"a deletion":       {"DELETE", configMaps + "/y", `{"metadata":{"name":"y"}}`},
		"no object":        {"POST", configMaps, `[]`},
		"no metadata":      {"POST", configMaps, `{}`},
	} {
		inWorld(t, func(w *world) {
			others := w.unchanged("")
			w.Occupy(w.request(test.method, test.path, test.body))
			w.pass(time.Hour)
			others()
			w.equal(name, "", strings.Join(w.notes, "; "))
		})
	}
}

// An object outside of namespaces can be occupied too.
func TestOccupyWithoutNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Occupy(w.request("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`))
		o, err := w.cluster.LookUp("namespaces /n")
		w.equal("occupied", true, err == nil && o.GetAnnotations()[cluster.Foreign] == "true")
	})
}

// Admission marks what the operator writes to an object from then on, but not its status, no other
// object, and not twice.
func TestMutateWrites(t *testing.T) {
	const changed = `{"metadata":{"annotations":{"n":"2"}}}`
	inWorld(t, func(w *world) {
		w.equal("a write before", 200, w.write("PATCH", pods+"/p", `{"metadata":{"annotations":{"n":"1"}}}`))
		w.MutateWritesOf(w.request("PATCH", pods+"/p", "{}"))
		w.isObject("before", "pods default/p", `annotations{"n":"1"}`)
		w.write("PATCH", pods+"/p/status", `{"status":{"message":"hello"}}`)
		w.isObject("after a write of the status", "pods default/p", `annotations{"n":"1"}`)
		w.write("PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
		w.isObject("another object", "configmaps default/x", strings.Replace(x, "1", "2", 1))
		w.write("PATCH", pods+"/p", changed)
		const mutated = `annotations{"n":"2","mutated":"true"} labels{"mutated":"true"}`
		w.isObject("after a write", "pods default/p", mutated)
		before := w.trace.Len()
		w.Admit(w.request("PATCH", pods+"/p", changed))
		w.equal("writes to what is marked already", before, w.trace.Len())
		w.write("PATCH", pods+"/p", `{"metadata":{"annotations":null,"labels":null}}`)
		w.isObject("after a write that removes the marks", "pods default/p", `annotations{"mutated":"true"} labels{"mutated":"true"}`)
		w.write("DELETE", pods+"/p", "{}")
		w.noted()
	})
}

// The status of an object is wiped and nothing else, and that is reported, once there is one.
func TestWipeStatus(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ask("user", "PATCH", pods+"/p/status", `{"status":{"message":"hello"}}`)
		others := w.unchanged("pods default/p")
		status := func() (message any, spec bool) {
			o, err := w.cluster.LookUp("pods default/p")
			if err != nil {
				t.Fatal(err)
			}
			content, _ := o.Object["status"].(map[string]any)
			return content["message"], o.Object["spec"] != nil
		}
		before, _ := status()
		w.equal("the message before", any("hello"), before)
		w.WipeStatus("pods default/p")
		after, spec := status()
		w.equal("the message", any(nil), after)
		w.equal("the spec is there", true, spec)
		w.noted("status wiped of pods default/p")
		w.WipeStatus("configmaps default/x") // which has none
		w.WipeStatus("pods default/missing")
		w.noted()
		others()
	})
}

// Stripping an object leaves it what its user has written, its finalizers and its data.
func TestStripAnnotations(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", `{"metadata":{"annotations":{"added":"1"},"labels":{"added":"1"},"finalizers":["e.example.com/f"]}}`)
		w.isObject("before", "configmaps default/x",
			`{"a":"1"} annotations{"added":"1","own":"1"} labels{"added":"1","own":"1"} finalizers["e.example.com/f"]`)
		others := w.unchanged("configmaps default/x")
		w.StripAnnotations("configmaps default/x")
		w.isObject("then", "configmaps default/x", x+` finalizers["e.example.com/f"]`)
		w.StripAnnotations("configmaps default/missing")
		others()
		w.settle()
		w.isObject("when idle", "configmaps default/x", x+` finalizers["e.example.com/f"]`)
		w.noted()
	})
}

// What a user has not created has nothing of a user.
func TestStripAnnotationsOfTheOperator(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("POST", configMaps, `{"metadata":{"name":"child","annotations":{"a":"1"},"labels":{"b":"1"}}}`)
		w.StripAnnotations("configmaps default/child")
		w.isObject("then", "configmaps default/child", "")
	})
}

// The drift of a resource that belongs to the object of the call is in the trace.
func TestDrift(t *testing.T) {
	tests := map[string]struct {
		call external.Call
		want int
	}{
		"the owner's":       {external.Call{System: "buckets", Owner: "1"}, 1},
		"any":               {external.Call{System: "buckets"}, 1},
		"another owner's":   {external.Call{System: "buckets", Owner: "2"}, 0},
		"an unknown system": {external.Call{System: "queues", Owner: "1"}, 0},
	}
	for name, test := range tests {
		inWorld(t, func(w *world) {
			others := w.unchanged("")
			w.Drift(test.call)
			w.equal(name, test.want, w.systems["buckets"].(*system).drifted)
			w.equal(name+" in the trace", test.want == 1, strings.Contains(w.trace.String(), "other       call       buckets update b1"))
			others()
		})
	}
}

// Another controller undoes a write after a second, three times, and gives up then.
func TestFight(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.request("PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
		before := w.ContentOf(r)
		others := w.unchanged("configmaps default/x")
		w.Fight(r, before)
		theirs, ours := x, strings.Replace(x, "1", "2", 1)
		for _, want := range []string{theirs, theirs, theirs, ours} {
			w.write("PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
			w.pass(time.Second - time.Nanosecond)
			w.isObject("just before the answer", "configmaps default/x", ours)
			w.pass(time.Nanosecond)
			w.isObject("at the answer", "configmaps default/x", want)
		}
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/x", ours)
		others()
		w.noted()
	})
}

// A fight is about what was written, not about metadata or the status of the object, nor about
// other objects, nor about one that is gone or about to go.
func TestFightLeaves(t *testing.T) {
	fight := func(t *testing.T, test func(w *world)) {
		t.Helper()
		inWorld(t, func(w *world) {
			r := w.request("PATCH", configMaps+"/x", "{}")
			w.Fight(r, w.ContentOf(r))
			test(w)
		})
	}
	fight(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", `{"metadata":{"labels":{"own":"2"},"finalizers":["e.example.com/f"]},"data":{"b":"2"}}`)
		w.pass(time.Second)
		w.isObject("metadata", "configmaps default/x", `{"a":"1"} annotations{"own":"1"} labels{"own":"2"} finalizers["e.example.com/f"]`)
		w.write("DELETE", configMaps+"/x", "{}")
		w.write("PATCH", configMaps+"/x", `{"data":{"a":"3"}}`)
		w.pass(time.Second)
		w.isObject("one that is being deleted", "configmaps default/x",
			`{"a":"3"} annotations{"own":"1"} labels{"own":"2"} finalizers["e.example.com/f"] being deleted`)
	})
	fight(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
		w.ask("user", "DELETE", configMaps+"/x", "{}")
		w.pass(time.Second)
		w.isObject("one that is gone", "configmaps default/x", "none")
		w.ask("user", "POST", configMaps, `{"metadata":{"name":"other"}}`)
		w.write("PATCH", configMaps+"/other", `{"data":{"a":"2"}}`)
		w.pass(time.Second)
		w.isObject("another one", "configmaps default/other", `{"a":"2"}`)
	})
	inWorld(t, func(w *world) {
		w.equal("the content of what is missing", 0, len(w.ContentOf(w.request("PATCH", pods+"/missing", "{}"))))
		r := w.request("PATCH", pods+"/p", "{}")
		w.Fight(r, w.ContentOf(r))
		others := w.unchanged("pods default/p")
		w.write("PATCH", pods+"/p/status", `{"status":{"message":"hello"}}`)
		w.equal("rounds after a write of the status", fightRounds, w.fights["pods default/p"].rounds)
		w.write("PATCH", pods+"/p", `{"spec":{"activeDeadlineSeconds":5}}`)
		w.pass(time.Second)
		o, err := w.cluster.LookUp("pods default/p")
		status, _ := o.Object["status"].(map[string]any)
		w.equal("the status", true, err == nil && status["message"] == "hello")
		others()
	})
}

// What is undone is everything but metadata and status, also of kinds in which any write can change
// the status. What was not there before is not there then.
func TestUndo(t *testing.T) {
	now := map[string]any{
		"apiVersion": "v2", "kind": "Now", "metadata": "now", "status": "now", "spec": "now", "added": "now",
	}
	for before, want := range map[string]map[string]any{
		`{"apiVersion":"v1","kind":"Then","metadata":"then","status":"then","spec":"then","removed":"then"}`: {
			"apiVersion": "v2", "kind": "Now", "metadata": "now", "status": "now", "spec": "then", "removed": "then",
		},
		"unreadable": now,
	} {
		if diff := cmp.Diff(want, (&fight{before: []byte(before)}).undo(now)); diff != "" {
			t.Errorf("%s: %s", before, diff)
		}
	}
}
