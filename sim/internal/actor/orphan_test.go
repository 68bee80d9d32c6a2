// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An orphan is the object that is about to be created, without an owner and its finalizers, and with
// another UID where that of the owner was.
const (
	orphanBody = `{"metadata":{"name":"y","labels":{"app":"1","owner":"OWNER"},"finalizers":["f.example.com/f"],
		"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"OWNER"}]},"data":{"a":"2"}}`
	orphanText = `{"a":"2"} labels{"app":"1","owner":"` + formerUID + `"}`
)

func (w *world) leaveOrphan(body string) {
	w.t.Helper()
	w.LeaveOrphan(w.request("POST", configMaps, w.ofPod(body)))
}

// An orphan that the operator refuses is removed after ten minutes.
func TestLeaveOrphan(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("configmaps default/y")
		w.leaveOrphan(orphanBody)
		w.isObject("then", "configmaps default/y", orphanText)
		w.equal("a creation", 409, w.write("POST", configMaps, w.ofPod(orphanBody)))
		w.pass(10*time.Minute - time.Nanosecond)
		w.isObject("just before its end", "configmaps default/y", orphanText)
		w.noted()
		w.pass(time.Nanosecond)
		w.isObject("at its end", "configmaps default/y", "none")
		w.noted("slow down by 10m0s")
		others()
	})
}

// What the operator has adopted or deleted is not touched, and neither is what it has put in its
// place.
func TestAnAdoptedOrphanStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leaveOrphan(orphanBody)
		w.write("PATCH", configMaps+"/y", w.ofPod(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"OWNER"}]}}`))
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/y", orphanText)
		w.noted()
	})
	inWorld(t, func(w *world) {
		w.leaveOrphan(orphanBody)
		w.write("DELETE", configMaps+"/y", "{}")
		w.write("POST", configMaps, `{"metadata":{"name":"y"}}`)
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/y", "new UID")
		w.noted()
	})
}

// An orphan that the operator uses without becoming its owner stays, so that the world differs: one
// that it has changed, and one for which no condition says why the work can't continue.
func TestAUsedOrphanStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leaveOrphan(orphanBody)
		w.write("PATCH", configMaps+"/y", `{"data":{"a":"3"}}`)
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/y", `{"a":"3"} labels{"app":"1","owner":"`+formerUID+`"}`)
	})
	inWorld(t, func(w *world) {
		w.silent = true
		w.leaveOrphan(orphanBody)
		w.pass(time.Hour)
		w.isObject("in the end", "configmaps default/y", orphanText)
		w.noted()
	})
}

// An orphan with a generated name is in the way of none: it is removed when no owner has adopted it.
func TestAnOrphanWithAGeneratedName(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("")
		w.silent = true
		w.leaveOrphan(`{"metadata":{"generateName":"y-","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"OWNER"}]}}`)
		w.equal("orphans", 1, len(w.orphans))
		w.pass(time.Hour)
		others()
		w.noted("slow down by 10m0s")
	})
}

// There is no orphan of what has no owner, nor of what has a name that only this owner can have.
func TestWhatLeavesNoOrphan(t *testing.T) {
	const owner = `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"OWNER"}]`
	for name, test := range map[string]struct{ method, path, body string }{
		"no owner":              {"POST", configMaps, `{"metadata":{"name":"y"}}`},
		"the UID in the name":   {"POST", configMaps, `{"metadata":{"name":"y-OWNER",` + owner + `}}`},
		"the UID in the prefix": {"POST", configMaps, `{"metadata":{"generateName":"OWNER-",` + owner + `}}`},
		"an update":             {"PUT", configMaps + "/y", `{"metadata":{"name":"y",` + owner + `}}`},
		"an object that exists": {"POST", configMaps, `{"metadata":{"name":"x",` + owner + `}}`},
	} {
		inWorld(t, func(w *world) {
			others := w.unchanged("")
			w.LeaveOrphan(w.request(test.method, test.path, w.ofPod(test.body)))
			w.pass(time.Hour)
			others()
			w.equal(name, map[types.UID]*orphan{}, w.orphans)
		})
	}
}
