// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

// worked is what the operator has made of the ConfigMap: its user has written only part of it.
const worked = `{"data":{"a":"2"},"metadata":{"annotations":{"added":"1"},"labels":{"added":"1"}}}`

// again is the ConfigMap as its user would create it again: with the data of now, and without what
// others have added.
const again = `{"a":"2"} annotations{"own":"1"} labels{"own":"1"} new UID`

// release removes the finalizers of the ConfigMap, as an operator does at the end of its cleanup.
func (w *world) release() {
	w.t.Helper()
	w.ask("operator", "PATCH", configMaps+"/x", `{"metadata":{"finalizers":null}}`)
	w.pass(0)
}

// An object that is recreated is there again at once, with another UID.
func TestRecreate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", worked)
		others := w.unchanged("configmaps default/x")
		w.Recreate("configmaps default/x")
		w.isObject("at first", "configmaps default/x", "none")
		w.pass(0)
		w.isObject("then", "configmaps default/x", again)
		w.noted("disturbed configmaps default/x")
		w.ask("user", "DELETE", configMaps+"/x", "{}")
		w.settle()
		w.pass(time.Hour)
		w.isObject("after a deletion by its user", "configmaps default/x", "none")
		others()
	})
}

// An object with a finalizer is created again once its cleanup is done, not before.
func TestRecreateWaitsForTheCleanup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", `{"metadata":{"finalizers":["e.example.com/f"]}}`)
		w.Recreate("configmaps default/x")
		w.settle()
		w.pass(time.Hour)
		w.isObject("during the cleanup", "configmaps default/x", x+` finalizers["e.example.com/f"] being deleted`)
		w.ask("user", "DELETE", pods+"/p", "{}")
		w.isObject("when another object goes", "configmaps default/x", x+` finalizers["e.example.com/f"] being deleted`)
		w.release()
		w.isObject("after the cleanup", "configmaps default/x", x+" new UID")
		w.isObject("another object that went", "pods default/p", "none")
		w.noted("disturbed configmaps default/x")
	})
}

// An object that its user deletes, or that is not there, stays as it is.
func TestRecreateLeavesWhatGoes(t *testing.T) {
	for name, recreate := range map[string]func(*world, string){
		"recreate":         func(w *world, of string) { w.Recreate(of) },
		"delete and later": func(w *world, of string) { w.DeleteAndCreate(of) },
	} {
		inWorld(t, func(w *world) {
			w.write("PATCH", configMaps+"/x", `{"metadata":{"finalizers":["e.example.com/f"]}}`)
			w.ask("user", "DELETE", configMaps+"/x", "{}")
			recreate(w, "configmaps default/x")
			recreate(w, "configmaps default/missing")
			w.release()
			w.settle()
			w.pass(time.Hour)
			w.isObject(name, "configmaps default/x", "none")
			w.isObject(name, "configmaps default/missing", "none")
			w.noted()
		})
	}
}

// An object that is created later is there again when everything is idle.
func TestDeleteAndCreate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", worked)
		others := w.unchanged("configmaps default/x")
		w.DeleteAndCreate("configmaps default/x")
		w.pass(time.Hour)
		w.isObject("later", "configmaps default/x", "none")
		w.settle()
		w.isObject("when idle", "configmaps default/x", again)
		w.noted("disturbed configmaps default/x")
		others()
	})
}

// If its cleanup waits for something else that is healed at the same time, it is created after the
// cleanup, which may take as long as something that was tried again.
func TestDeleteAndCreateWaitsForTheCleanup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", `{"metadata":{"finalizers":["e.example.com/f"]}}`)
		w.DeleteAndCreate("configmaps default/x")
		w.settle()
		w.isObject("when idle", "configmaps default/x", x+` finalizers["e.example.com/f"] being deleted`)
		w.noted("disturbed configmaps default/x", "slow down by 1m0s")
		w.release()
		w.isObject("after the cleanup", "configmaps default/x", x+" new UID")
	})
}

// An object that vanishes goes in spite of its finalizer, without a cleanup, and comes back as its
// user has written it.
func TestVanish(t *testing.T) {
	inWorld(t, func(w *world) {
		const body = `{"metadata":{"finalizers":["e.example.com/f"],"annotations":{"added":"1"}}}`
		w.write("PATCH", configMaps+"/x", body)
		others := w.unchanged("configmaps default/x")
		w.Vanish(w.request(http.MethodPatch, configMaps+"/x", body))
		w.isObject("then", "configmaps default/x", "none")
		w.noted("disturbed configmaps default/x")
		w.pass(time.Hour)
		w.isObject("later", "configmaps default/x", "none")
		w.settle()
		w.isObject("when idle", "configmaps default/x", x+" new UID")
		w.Vanish(w.request(http.MethodPatch, configMaps+"/missing", body))
		w.equal("heals", 0, len(w.idle))
		w.noted()
		others()
	})
}

// A prerequisite that is withheld comes back when everything is idle. Who waits for it is reported
// before.
func TestWithhold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write("PATCH", configMaps+"/x", worked)
		others := w.unchanged("configmaps default/x")
		w.Withhold("configmaps default/x")
		w.Begin("buckets", 0)
		w.Stops(external.Call{System: "buckets", Owner: "1"})
		w.pass(time.Hour)
		w.isObject("later", "configmaps default/x", "none")
		w.noted()
		w.settle()
		w.isObject("when idle", "configmaps default/x", again)
		w.noted(
			"stuck: the object configmaps default/x is missing, blocked [{buckets [1]}]", "slow down by 1m0s",
			"stuck: buckets does not answer, blocked [{buckets [1]}]", "slow down by 1m0s",
		)
		w.Withhold("configmaps default/missing")
		w.equal("heals", 0, len(w.idle))
		others()
	})
}

// What no user has created comes back with the metadata that it had.
func TestWithholdWhatNoUserHasCreated(t *testing.T) {
	inWorld(t, func(w *world) {
		pod, err := w.cluster.LookUp("pods default/p")
		if err != nil {
			t.Fatal(err)
		}
		owner := `[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"` + string(pod.GetUID()) + `"}]`
		w.write("POST", configMaps, `{"metadata":{"name":"child","labels":{"b":"1"},"ownerReferences":`+owner+`},"data":{"a":"1"}}`)
		w.Withhold("configmaps default/child")
		w.settle()
		w.isObject("when idle", "configmaps default/child", `{"a":"1"} labels{"b":"1"} new UID`)
		child, err := w.cluster.LookUp("configmaps default/child")
		w.equal("its owner", true, err == nil && len(child.GetOwnerReferences()) == 1 && child.GetOwnerReferences()[0].UID == pod.GetUID())
	})
}

// An object comes back without its status.
func TestRecreateHasNoStatus(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ask("user", "PATCH", pods+"/p/status", `{"status":{"message":"hello"}}`)
		before, err := w.cluster.LookUp("pods default/p")
		if err != nil {
			t.Fatal(err)
		}
		w.equal("a status to create it with", any(nil), w.asWritten("pods default/p", before)["status"])
		w.Recreate("pods default/p")
		for w.cluster.Server.Work() {
		}
		w.pass(time.Minute)
		o, err := w.cluster.LookUp("pods default/p")
		if err != nil {
			t.Fatal(err)
		}
		status, _ := o.Object["status"].(map[string]any)
		w.equal("new", true, o.GetUID() != w.first["pods default/p"] && o.GetUID() != types.UID(""))
		w.equal("the message", any(nil), status["message"])
		w.equal("the spec is there", true, o.Object["spec"] != nil)
	})
}

// An object that an actor has taken away is there again when its user needs it, once.
func TestBringBack(t *testing.T) {
	for name, take := range map[string]func(*world){
		"withhold":         func(w *world) { w.Withhold("configmaps default/x") },
		"delete and later": func(w *world) { w.DeleteAndCreate("configmaps default/x") },
		"vanish":           func(w *world) { w.Vanish(w.request(http.MethodPatch, configMaps+"/x", "{}")) },
	} {
		inWorld(t, func(w *world) {
			take(w)
			w.isObject(name, "configmaps default/x", "none")
			w.BringBack("pods default/p")
			w.isObject(name+", another object", "configmaps default/x", "none")
			w.BringBack("configmaps default/x")
			w.isObject(name+", brought back", "configmaps default/x", x+" new UID")
			w.ask("user", "PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
			others := w.unchanged("")
			w.BringBack("configmaps default/x")
			w.settle()
			others()
			if slices.ContainsFunc(w.notes, func(note string) bool { return strings.HasPrefix(note, "stuck") }) {
				t.Errorf("%s: reported %q, although its user did not wait for it", name, w.notes)
			}
		})
	}
}

// An object that its user deletes while an actor has taken it away does not come back.
func TestKeepAway(t *testing.T) {
	for name, take := range map[string]func(*world){
		"withhold":         func(w *world) { w.Withhold("configmaps default/x") },
		"delete and later": func(w *world) { w.DeleteAndCreate("configmaps default/x") },
		"recreate":         func(w *world) { w.Recreate("configmaps default/x") },
	} {
		inWorld(t, func(w *world) {
			if name == "recreate" {
				w.write("PATCH", configMaps+"/x", `{"metadata":{"finalizers":["e.example.com/f"]}}`)
			}
			take(w)
			w.KeepAway("configmaps default/x")
			if name == "recreate" {
				w.release()
			}
			w.settle()
			w.pass(time.Hour)
			w.isObject(name, "configmaps default/x", "none")
		})
	}
}
