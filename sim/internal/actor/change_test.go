// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"strings"
	"testing"
	"time"

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

// Admission marks each object whose name the server generates from the same prefix, under the name
// that it has got.
func TestMutateWritesOfGeneratedNames(t *testing.T) {
	inWorld(t, func(w *world) {
		const body = `{"metadata":{"generateName":"y-"}}`
		w.MutateWritesOf(w.request("POST", configMaps, body))
		w.write("POST", configMaps, body)
		w.write("POST", configMaps, body)
		w.write("POST", configMaps, `{"metadata":{"generateName":"z-"}}`)
		var marked []string
		for _, o := range w.cluster.Server.Objects() {
			of := cluster.ObjectName(o.Resource, o.Namespace, o.Name)
			if text := w.object(of); strings.Contains(of, "y-") || strings.Contains(of, "z-") {
				marked = append(marked, of[:len("configmaps default/y-")]+" "+text)
			}
		}
		const mutated = `configmaps default/y- annotations{"mutated":"true"} labels{"mutated":"true"}`
		w.equal("objects", []string{mutated, mutated, "configmaps default/z- "}, marked)
	})
}

// Deleting the object of a request leaves the others alone, and needs no object.
func TestDeleteTarget(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("configmaps default/x")
		w.DeleteTarget(w.request("PUT", configMaps+"/x", "{}"))
		w.isObject("then", "configmaps default/x", "none")
		w.DeleteTarget(w.request("PUT", configMaps+"/x", "{}"))
		w.settle()
		w.pass(time.Hour)
		w.isObject("later", "configmaps default/x", "none")
		others()
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
			w.equal(name+" in the trace", test.want == 1, strings.Contains(strings.Join(strings.Fields(w.trace.String()), " "), "other call buckets update b1"))
			others()
		})
	}
}
