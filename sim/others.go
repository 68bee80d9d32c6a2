// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// What others do in the world: users, controllers, administrators. All of it goes straight to the server, in the driver, at once.

// marks is how the annotations and labels begin with which the simulator marks objects.
const marks = "sim.ctrlkit.dev/"

// foreign marks objects that belong to somebody else.
const foreign = "sim.ctrlkit.dev/foreign"

// disturbance is the annotation that others put on objects and take away.
const disturbance = "sim.ctrlkit.dev/touched"

// object is one that is in the cluster now.
type object struct {
	path    string // of the object
	content map[string]any
	obj     *unstructured.Unstructured
}

// lookUp finds an object by the text that plans use: "configmaps default/x", "backups.demo.example.com default/x".
func (w *World) lookUp(of string) (object, error) {
	kind, key, _ := strings.Cut(of, " ")
	namespace, name, _ := strings.Cut(key, "/")
	for _, o := range w.server.Objects() {
		if o.Resource.GroupResource().String() == kind && o.Namespace == namespace && o.Name == name {
			content := cloneJSON(o.Content)
			return object{collectionPath(o.Resource, namespace) + "/" + name, content, &unstructured.Unstructured{Object: content}}, nil
		}
	}
	return object{}, fmt.Errorf("%s: %w", of, errNoObject)
}

// targetOf returns the text by which plans name the object of a request.
func (w *World) targetOf(r *apiserver.Request) string {
	return objectName(r.Resource, r.Namespace, nameOf(r))
}

func objectName(r schemaResource, namespace, name string) string {
	return r.GroupResource().String() + " " + namespace + "/" + name
}

// nameOf returns the name of the object of a request, which a creation has in its body.
func nameOf(r *apiserver.Request) string {
	if r.Name != "" || r.Verb != "create" {
		return r.Name
	}
	var body struct {
		Metadata struct{ Name, GenerateName string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return ""
	}
	if body.Metadata.Name == "" && body.Metadata.GenerateName != "" {
		return body.Metadata.GenerateName + "*"
	}
	return body.Metadata.Name
}

// other does something on behalf of somebody else. That it does not work is noted and no more: the object may be gone.
func (w *World) other(method, path, contentType string, body any) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			w.trace.add("other", "write", "encoding: "+err.Error())
			return
		}
	}
	_, _ = w.ask("other", method, path, contentType, data) //nolint:errcheck // ask notes it in the trace
}

const mergePatch = "application/merge-patch+json"

func annotate(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

// touch changes something of an object that concerns nobody, so that its resource version is another. The trace of it goes at rest.
func (w *World) touch(r *apiserver.Request) {
	target, err := w.lookUp(w.targetOf(r))
	if err != nil {
		return
	}
	w.other(http.MethodPatch, target.path, mergePatch, annotate(disturbance, "true"))
	w.heals = append(w.heals, heal{"what touched an object is taken away", func() {
		w.other(http.MethodPatch, target.path, mergePatch, annotate(disturbance, nil))
	}})
}

// occupy creates the object that a request is about to create, in the name of somebody else, and removes it after some time.
func (w *World) occupy(r *apiserver.Request) {
	if r.Verb != "create" && r.Verb != "patch" {
		return
	}
	var content map[string]any
	if err := json.Unmarshal(r.Body, &content); err != nil {
		return
	}
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil || metadata["name"] == nil {
		return
	}
	content["metadata"] = map[string]any{
		"name": metadata["name"], "annotations": map[string]any{foreign: "true"}, "labels": metadata["labels"],
	}
	if r.Namespace != "" {
		content["metadata"].(map[string]any)["namespace"] = r.Namespace
	}
	collection := collectionPath(r.Resource, r.Namespace)
	w.other(http.MethodPost, collection, "application/json", content)
	path := collection + "/" + fmt.Sprint(metadata["name"])
	w.after(occupiedTime, func() {
		w.other(http.MethodDelete, path, "application/json", map[string]any{"propagationPolicy": "Background"})
		w.slowDown(occupiedTime)
	})
}

// mutate does what a mutating webhook does with an object: what is stored is not what was sent.
func (w *World) mutate(r *apiserver.Request) {
	target, err := w.lookUp(w.targetOf(r))
	if err != nil || r.Subresource != "" {
		return
	}
	annotations := target.obj.GetAnnotations()
	if annotations["sim.ctrlkit.dev/mutated"] != "" {
		return
	}
	w.other(http.MethodPatch, target.path, mergePatch, map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"sim.ctrlkit.dev/mutated": "true"}, "labels": map[string]any{"sim.ctrlkit.dev/mutated": "true"},
	}})
}

// recreate deletes an object, and creates it anew with another UID: as soon as its name is free, or when everything is at rest.
func (w *World) recreate(of string, atRest bool) {
	target, err := w.lookUp(of)
	if err != nil || target.obj.GetDeletionTimestamp() != nil {
		return
	}
	again := w.asWritten(of, target)
	w.disturbed(target.obj.GetUID())
	collection, _, _ := cutLast(target.path, "/")
	create := func() { w.other(http.MethodPost, collection, "application/json", again) }
	if atRest {
		w.heals = append(w.heals, heal{"the deleted object is created again", func() {
			if _, err := w.lookUp(of); err == nil { // its clean-up waits for another heal
				w.recreations[of] = create
				w.slowDown(w.quiet)
				return
			}
			create()
		}})
	} else {
		w.recreations[of] = create // as soon as the name is free
	}
	w.other(http.MethodDelete, target.path, "application/json", map[string]any{"propagationPolicy": "Background"})
}

// recreateNow creates an object again whose name is free now, if that is wanted.
func (w *World) recreateNow(of string) {
	if create, ok := w.recreations[of]; ok {
		delete(w.recreations, of)
		w.after(0, create)
	}
}

// asWritten returns an object as a user would create it again: as he has written it, with nothing that others have put there.
func (w *World) asWritten(of string, target object) map[string]any {
	metadata := map[string]any{"name": target.obj.GetName()}
	if ns := target.obj.GetNamespace(); ns != "" {
		metadata["namespace"] = ns
	}
	again := map[string]any{}
	written, ok := w.written[of]
	if !ok {
		written = target.content
	}
	for k, v := range target.content { // users may have changed it since they created it
		if k != "status" && k != "metadata" {
			again[k] = v
		}
	}
	if m, ok := written["metadata"].(map[string]any); ok {
		for _, k := range []string{"labels", "annotations", "ownerReferences"} {
			if v, ok := m[k]; ok {
				metadata[k] = v
			}
		}
	}
	again["metadata"] = metadata
	return again
}

// vanish takes away the object of a request for good, as a deletion does that came at the same instant as the finalizer.
func (w *World) vanish(r *apiserver.Request) {
	of := w.targetOf(r)
	target, err := w.lookUp(of)
	if err != nil {
		return
	}
	again := w.asWritten(of, target)
	w.disturbed(target.obj.GetUID())
	w.server.Remove("user", r.Resource, r.Namespace, r.Name)
	w.trace.add("user", "write", "delete "+of+", at the same instant as the finalizer")
	collection, _, _ := cutLast(target.path, "/")
	w.heals = append(w.heals, heal{"the object that was lost is created again", func() {
		w.other(http.MethodPost, collection, "application/json", again)
	}})
}

func (w *World) wipeStatus(of string) {
	target, err := w.lookUp(of)
	if err != nil || target.content["status"] == nil {
		return
	}
	delete(target.content, "status")
	w.forgetConditions(target.obj.GetUID())
	w.other(http.MethodPut, target.path+"/status", "application/json", target.content)
}

// stripAnnotations removes the annotations and labels that were not there when a user created the object.
func (w *World) stripAnnotations(of string) {
	target, err := w.lookUp(of)
	if err != nil {
		return
	}
	var written map[string]any
	if m, ok := w.written[of]["metadata"].(map[string]any); ok {
		written = m
	}
	remove := func(field string, has map[string]string) map[string]any {
		own, _ := written[field].(map[string]any)
		gone := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(has)) {
			if _, ok := own[key]; !ok {
				gone[key] = nil
			}
		}
		return gone
	}
	w.other(http.MethodPatch, target.path, mergePatch, map[string]any{"metadata": map[string]any{
		"annotations": remove("annotations", target.obj.GetAnnotations()), "labels": remove("labels", target.obj.GetLabels()),
	}})
}

// withhold takes an object away, and brings it back when everything is at rest.
func (w *World) withhold(of string) {
	target, err := w.lookUp(of)
	if err != nil {
		return
	}
	again := w.asWritten(of, target)
	w.other(http.MethodDelete, target.path, "application/json", map[string]any{})
	collection, _, _ := cutLast(target.path, "/")
	w.heals = append(w.heals, heal{"the object that was withheld is there again", func() {
		w.checkSaysWhy("the object " + of + " is missing")
		w.other(http.MethodPost, collection, "application/json", again)
		w.slowDown(w.quiet)
	}})
}

// fight is a quarrel over one object.
type fight struct {
	target string
	before []byte
	rounds int
}

// goOnFighting undoes what the operator has written to an object that somebody else wants otherwise.
func (w *World) goOnFighting(r *apiserver.Request) {
	f, ok := w.fights[w.targetOf(r)]
	if !ok || f.rounds == 0 || r.Subresource == "status" {
		return
	}
	f.rounds--
	w.after(fightInterval, func() {
		target, err := w.lookUp(f.target)
		if err != nil || target.obj.GetDeletionTimestamp() != nil {
			return
		}
		undone := w.undo(f.before, target)
		w.other(http.MethodPut, target.path, "application/json", undone)
	})
}

// undo is an object with everything but its metadata and status as it was before.
func (w *World) undo(before []byte, target object) map[string]any {
	var old map[string]any
	if err := json.Unmarshal(before, &old); err != nil {
		return target.content
	}
	undone := map[string]any{"apiVersion": target.content["apiVersion"], "kind": target.content["kind"], "metadata": target.content["metadata"]}
	for k, v := range old {
		switch k {
		case "metadata", "apiVersion", "kind", "status":
		default:
			undone[k] = v
		}
	}
	if status, ok := target.content["status"]; ok {
		undone["status"] = status
	}
	return undone
}

// contentBefore is the object of a request before it, when a fight is planned about it.
func (w *World) contentBefore(r *apiserver.Request) []byte {
	for _, f := range w.faults {
		if f.Kind == fault.Fight && !f.fired && f.At == w.writes {
			if target, err := w.lookUp(w.targetOf(r)); err == nil {
				data, err := json.Marshal(target.content)
				if err == nil {
					return data
				}
			}
		}
	}
	return nil
}

// drift changes what a call has made or looked at.
func (w *World) drift(call *Call) {
	s, ok := w.externals[call.System]
	if !ok {
		return
	}
	for _, e := range s.sorted() {
		if e.owner == "" || len(e.Spec) == 0 {
			continue
		}
		if call.Owner != "" && e.owner != call.Owner {
			continue
		}
		key := slices.Sorted(maps.Keys(e.Spec))[0]
		spec := maps.Clone(e.Spec)
		spec[key] += " (drifted)"
		if err := s.update(e.ID, spec); err == nil {
			w.trace.add("other", "call", call.System+" update "+e.ID)
		}
		return
	}
}

// heal ends what faults broke until rest, and reports whether there was something.
func (w *World) heal() bool {
	if len(w.heals) == 0 {
		return false
	}
	heals := w.heals
	w.heals = nil
	for _, h := range heals {
		w.trace.add("sim", "heal", h.name)
		h.do()
	}
	return true
}

// applyPast makes a watch stay behind that begins after a list of the past.
func (w *World) applyPast(o *watch) {
	for i := range w.pasts {
		if p := &w.pasts[i]; p.used && p.kind == o.resource.GroupResource().String() {
			o.lag, o.lagEnds = 1<<30, time.Now().Add(lagTime)
			w.after(lagTime, func() { o.lag = 0 })
			w.pasts = slices.Delete(w.pasts, i, i+1)
			return
		}
	}
}

// startsInPast reports whether a watch wants the initial events of a kind that is to be seen as it was.
func (w *World) startsInPast(r *apiserver.Request) bool {
	return r.Query.Get("sendInitialEvents") == "true" && slices.ContainsFunc(w.pasts, func(p past) bool {
		return !p.used && p.kind == r.Resource.GroupResource().String()
	})
}

// pastList answers the first list of a kind after a restart in the past with what there was some events ago.
func (w *World) pastList(p *parked) *apiserver.Response {
	if p.request.Verb != "list" {
		return nil
	}
	for i := range w.pasts {
		past := &w.pasts[i]
		if past.used || past.kind != p.request.Resource.GroupResource().String() {
			continue
		}
		past.used = true
		old := w.history[past.kind]
		version := "1"
		if n := len(old) - past.by - 1; n >= 0 {
			version = old[n]
		}
		r := *p.request
		r.Query = maps.Clone(r.Query)
		r.Query.Set("resourceVersion", version)
		r.Query.Set("resourceVersionMatch", "Exact")
		return w.execute(&r, describe(&r)+" of the past", "read")
	}
	return nil
}

// takesDetour reports whether the plan has this detour.
func (w *World) takesDetour(n int) bool {
	takes := false
	w.must("look at the plan", func() error {
		w.catalog.detours = max(w.catalog.detours, n)
		for _, f := range w.due(fault.AtDetour, n, "") {
			w.fire(f, "user")
			takes = true
		}
		return nil
	})
	return takes
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
