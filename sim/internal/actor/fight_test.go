// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fight lets the operator write, which begins a fight over what the write changes.
func (w *world) fight(path, body string) {
	w.t.Helper()
	r := w.request("PATCH", path, body)
	before := w.ContentOf(r)
	w.cluster.Execute(r, "write")
	w.Fight(r, before)
	w.ContinueFights(r)
}

// Another controller undoes a write after a second, three times, and gives up then.
func TestFight(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("configmaps default/x")
		w.fight(configMaps+"/x", `{"data":{"a":"2"}}`)
		theirs, ours := x, strings.Replace(x, "1", "2", 1)
		for _, want := range []string{theirs, theirs, theirs, ours} {
			w.pass(time.Second - time.Nanosecond)
			w.isObject("just before the answer", "configmaps default/x", ours)
			w.pass(time.Nanosecond)
			w.isObject("at the answer", "configmaps default/x", want)
			w.write("PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
		}
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/x", ours)
		others()
		w.noted()
	})
}

// A fight is about what the write changed. A later change by the user stays, of another field and of
// the same one, and so does another value that the operator writes because of it.
func TestFightLeavesLaterChanges(t *testing.T) {
	const patched = `{"data":{"a":"2","b":"2"}}`
	rest := strings.TrimPrefix(x, `{"a":"1"}`)
	inWorld(t, func(w *world) {
		w.fight(configMaps+"/x", patched)
		w.ask("user", "PATCH", configMaps+"/x", `{"data":{"b":"user","c":"user"}}`)
		w.pass(time.Second)
		w.isObject("after the first round", "configmaps default/x", `{"a":"1","b":"user","c":"user"}`+rest)
		w.write("PATCH", configMaps+"/x", `{"data":{"a":"3"}}`)
		before := w.trace.Len()
		w.pass(time.Hour)
		w.isObject("after another value", "configmaps default/x", `{"a":"3","b":"user","c":"user"}`+rest)
		w.equal("writes of the other controller then", before, w.trace.Len())
	})
}

// A field that an apply has removed is given up: no fight brings it back. One that another write has
// removed is brought back.
func TestFightLeavesWhatIsGivenUp(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, data := range []string{`{"a":"1","b":"1"}`, `{"a":"1"}`} {
			r := w.request("PATCH", configMaps+"/y?fieldManager=operator&force=true", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"},"data":`+data+`}`)
			r.ContentType = "application/apply-patch+yaml"
			before := w.ContentOf(r)
			w.cluster.Execute(r, "write")
			if before != nil {
				w.Fight(r, before)
				w.ContinueFights(r)
			}
		}
		w.pass(time.Second)
		w.isObject("after an apply", "configmaps default/y", `{"a":"1"}`)
		w.fight(configMaps+"/x", `{"data":{"a":null,"b":"2"}}`)
		w.pass(time.Second)
		w.isObject("after a patch", "configmaps default/x", x)
	})
}

// A fight is not about metadata or the status of the object, nor about other objects, nor about one
// that is gone or about to go.
func TestFightLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fight(configMaps+"/x", `{"metadata":{"labels":{"own":"2"},"finalizers":["e.example.com/f"]},"data":{"b":"2"}}`)
		w.pass(time.Second)
		w.isObject("metadata", "configmaps default/x", `{"a":"1"} annotations{"own":"1"} labels{"own":"2"} finalizers["e.example.com/f"]`)
		w.write("DELETE", configMaps+"/x", "{}")
		w.write("PATCH", configMaps+"/x", `{"data":{"b":"2"}}`)
		w.pass(time.Second)
		w.isObject("one that is being deleted", "configmaps default/x",
			`{"a":"1","b":"2"} annotations{"own":"1"} labels{"own":"2"} finalizers["e.example.com/f"] being deleted`)
	})
	inWorld(t, func(w *world) {
		w.fight(configMaps+"/x", `{"data":{"a":"2"}}`)
		w.ask("user", "DELETE", configMaps+"/x", "{}")
		w.pass(time.Second)
		w.isObject("one that is gone", "configmaps default/x", "none")
		w.ask("user", "POST", configMaps, `{"metadata":{"name":"other"}}`)
		w.write("PATCH", configMaps+"/other", `{"data":{"a":"2"}}`)
		w.pass(time.Second)
		w.isObject("another one", "configmaps default/other", `{"a":"2"}`)
	})
	inWorld(t, func(w *world) {
		w.equal("the content of what is missing", true, w.ContentOf(w.request("PATCH", pods+"/missing", "{}")) == nil)
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

// What is undone is what the write has changed and nothing has changed since, however deep it is.
func TestUndo(t *testing.T) {
	tests := map[string]struct{ before, after, now, want string }{ // want "" stands for nothing undone
		"a change":            {`{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":2,"b":3}`, `{"a":1,"b":3}`},
		"an addition":         {`{}`, `{"a":2}`, `{"a":2,"b":3}`, `{"b":3}`},
		"a removal":           {`{"a":1}`, `{}`, `{"b":3}`, `{"a":1,"b":3}`},
		"changed since":       {`{"a":1}`, `{"a":2}`, `{"a":3}`, ""},
		"removed since":       {`{"a":1}`, `{"a":2}`, `{}`, ""},
		"added since":         {`{"a":1}`, `{}`, `{"a":3}`, ""},
		"undone already":      {`{"a":1}`, `{"a":2}`, `{"a":1}`, ""},
		"no change":           {`{"a":1}`, `{"a":1}`, `{"a":2}`, ""},
		"within a map":        {`{"s":{"a":1,"b":1}}`, `{"s":{"a":2,"b":1}}`, `{"s":{"a":2,"b":3}}`, `{"s":{"a":1,"b":3}}`},
		"within a list":       {`{"l":[{"a":1,"b":1}]}`, `{"l":[{"a":2,"b":1}]}`, `{"l":[{"a":2,"b":3}]}`, `{"l":[{"a":1,"b":3}]}`},
		"a list":              {`{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[1]}`},
		"a list, since":       {`{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2,3]}`, ""},
		"a map to a string":   {`{"a":{"b":1}}`, `{"a":"c"}`, `{"a":"c"}`, `{"a":{"b":1}}`},
		"metadata and status": {`{"metadata":1,"status":1,"kind":"a"}`, `{"metadata":2,"status":2,"kind":"b"}`, `{"metadata":2,"status":2,"kind":"b"}`, ""},
	}
	decode := func(text string) map[string]any {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, test := range tests {
		now := decode(test.now)
		undone := (&fight{before: decode(test.before), after: decode(test.after)}).undo(now)
		want := test.want
		if want == "" {
			want = test.now
		}
		if diff := cmp.Diff(decode(want), now); diff != "" || undone != (test.want != "") {
			t.Errorf("%s: undone %t: %s", name, undone, diff)
		}
	}
}
