// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

// What a script does. Every method waits until it is done. What can't be done ends the run, as a mistake of the script, so that scripts
// need no error handling.

// scriptError ends a script.
type scriptError struct{ err error }

func (w *World) fail(err error) {
	panic(scriptError{err})
}

// story lets the driver do something at its turn, and waits for it.
func (w *World) story(key string, do func() error) error {
	a := w.park(&parked{ctx: context.Background(), kind: parkedStory, key: key, do: func() error {
		if w.aborted {
			return errAborted
		}
		return do()
	}})
	if errors.Is(a.err, errAborted) {
		panic(scriptError{errAborted})
	}
	return a.err
}

// must is story for what has to work.
func (w *World) must(key string, do func() error) {
	if err := w.story(key, do); err != nil {
		w.fail(fmt.Errorf("%s: %w", key, err))
	}
}

// Create creates objects as a user.
func (w *World) Create(objs ...client.Object) {
	for _, obj := range objs {
		w.must("create "+w.describeObject(obj), func() error { return w.createObject("user", obj) })
	}
}

// Delete deletes objects as a user, in the way that kubectl does: in the background. Objects that are gone already are no mistake.
func (w *World) Delete(objs ...client.Object) {
	for _, obj := range objs {
		w.must("delete "+w.describeObject(obj), func() error {
			w.injectDeletion()
			return client.IgnoreNotFound(w.deleteObject("user", obj))
		})
	}
}

// Get reads the object of that kind and name as it is in the cluster, and reports whether it is there.
func Get[T client.Object](w *World, obj T) (T, bool) {
	current := obj.DeepCopyObject().(T)
	found := true
	w.must("get "+w.describeObject(obj), func() error {
		err := w.getObject("user", current)
		if apierrors.IsNotFound(err) {
			found = false
			return nil
		}
		return err
	})
	return current, found
}

// Update changes an object as a user: it reads the object of that kind and name, lets change change it, and writes it. It waits for an
// object that is not there or is being deleted, as a fault may have it.
func Update[T client.Object](w *World, obj T, change func(T)) {
	updateObject(w, obj, "", change)
}

// UpdateStatus changes the status of an object, for the controllers that the simulator does not run: of a Job that completes, of a Pod
// that becomes ready.
func UpdateStatus[T client.Object](w *World, obj T, change func(T)) {
	updateObject(w, obj, "status", change)
}

func updateObject[T client.Object](w *World, obj T, subresource string, change func(T)) {
	text := "update " + w.describeObject(obj)
	for started := time.Now(); ; time.Sleep(time.Second) {
		err := w.story(text, func() error {
			current := obj.DeepCopyObject().(T)
			if err := w.getObject("user", current); err != nil {
				return err
			}
			if !current.GetDeletionTimestamp().IsZero() {
				return apierrors.NewNotFound(runtimeResource(obj), obj.GetName())
			}
			change(current)
			return w.putObject("user", current, subresource)
		})
		switch {
		case err == nil:
			return
		case !apierrors.IsNotFound(err) || time.Since(started) > w.workload.patience():
			w.fail(fmt.Errorf("%s: %w", text, err))
		}
	}
}

// Settle waits until the operator is at rest: nothing was written for the time that the workload says. What faults hold back or break for
// a time is healed before Settle returns.
func (w *World) Settle() {
	w.settleOnly()
	proves := false
	w.must("look at the world", func() error {
		w.checkpoints = append(w.checkpoints, w.snapshot())
		proves = w.restsWith(len(w.checkpoints))
		return nil
	})
	if proves {
		w.proveRest()
	}
}

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) { time.Sleep(d) }

// SleepUntil lets virtual time pass until so long after the beginning of the run, which is at midnight UTC of the first of January 2000: for
// operators that do something at certain times. It is a mistake of the script to wait for what is past.
func (w *World) SleepUntil(sinceStart time.Duration) {
	left := time.Until(w.trace.start.Add(sinceStart))
	if left < 0 {
		w.fail(fmt.Errorf("sleeping until %s: that was %s ago, leave more time", sinceStart, -left))
	}
	time.Sleep(left)
}

// List reads the objects of a kind in a namespace, or in all if it is empty, as they are in the cluster, ordered by name.
func List[T client.ObjectList](w *World, list T, namespace string) T {
	w.must(fmt.Sprintf("list %T", list), func() error {
		gvk, err := apiutil.GVKForObject(list, w.scheme)
		if err != nil {
			return fmt.Errorf("%T is not in Workload.Scheme: %w", list, err)
		}
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		resource, _, err := w.server.ResourceFor(gvk)
		if err != nil {
			return err
		}
		body, err := w.ask("user", http.MethodGet, collectionPath(resource, namespace), "", nil)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, list)
	})
	return list
}

// Log writes a line into the trace.
func (w *World) Log(text string) { w.trace.add("user", "script", text) }

// Detour marks a place at which a user could change his mind: in some runs the object is changed here, and, when everything is at rest, is
// changed back, which has to lead to the same end. In the run without faults it does nothing.
func Detour[T client.Object](w *World, obj T, change func(T)) {
	w.detours++
	if !w.takesDetour(w.detours) {
		return
	}
	before, ok := Get(w, obj)
	if !ok {
		return
	}
	Update(w, obj, change)
	w.settleOnly()
	Update(w, obj, func(current T) {
		resourceVersion, finalizers := current.GetResourceVersion(), current.GetFinalizers()
		restored := before.DeepCopyObject().(T)
		restored.SetResourceVersion(resourceVersion)
		restored.SetFinalizers(finalizers)
		restoreInto(current, restored)
	})
}

// settleOnly waits for rest without a look at the world for the comparison.
func (w *World) settleOnly() {
	done := make(chan error, 1)
	w.must("settle", func() error {
		w.settling = &settle{since: time.Now(), done: done}
		return nil
	})
	if err := <-done; err != nil {
		panic(scriptError{err})
	}
}

// restoreInto makes *to what from is.
func restoreInto(to, from client.Object) {
	data, err := json.Marshal(from)
	if err != nil {
		panic(scriptError{fmt.Errorf("encoding %s: %w", from.GetName(), err)})
	}
	zero(to)
	if err := json.Unmarshal(data, to); err != nil {
		panic(scriptError{fmt.Errorf("decoding %s: %w", from.GetName(), err)})
	}
}

// Resources returns what is in the inventory of an external system, ordered by id.
func (w *World) Resources(system string) []Resource {
	var list []Resource
	w.must("look into "+system, func() error {
		s, ok := w.externals[system]
		if !ok {
			return fmt.Errorf("the workload has no external system %q", system)
		}
		for _, e := range s.sorted() {
			list = append(list, e.clone())
		}
		return nil
	})
	return list
}

// Config returns a configuration with which the script can act through any client, as a user.
func (w *World) Config() *rest.Config {
	w.clients++
	p := &Process{world: w, name: fmt.Sprintf("user-%d", w.clients), cancel: func(error) {}}
	config := p.Config()
	config.UserAgent = "user"
	return config
}

// Requests about single objects, on behalf of users and others. They go to the server at once, in the driver.

func runtimeResource(obj client.Object) (r schemaGroupResource) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return schemaGroupResource{Group: gvk.Group, Resource: gvk.Kind}
}

func (w *World) describeObject(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := apiutil.GVKForObject(obj, w.scheme); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}

// path returns the path of the kind of an object, in its namespace, and the object encoded with its kind.
func (w *World) encode(obj client.Object) (collection string, body []byte, err error) {
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return "", nil, fmt.Errorf("%T is not in Workload.Scheme: %w", obj, err)
	}
	resource, namespaced, err := w.server.ResourceFor(gvk)
	if err != nil {
		return "", nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return "", nil, fmt.Errorf("encoding %s: %w", gvk.Kind, err)
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	body, err = json.Marshal(content)
	if err != nil {
		return "", nil, fmt.Errorf("encoding %s: %w", gvk.Kind, err)
	}
	namespace := obj.GetNamespace()
	if !namespaced {
		namespace = ""
	}
	return collectionPath(resource, namespace), body, nil
}

func collectionPath(r schemaResource, namespace string) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource
}

func (w *World) createObject(actor string, obj client.Object) error {
	collection, body, err := w.encode(obj)
	if err != nil {
		return err
	}
	_, err = w.ask(actor, http.MethodPost, collection, "application/json", body)
	return err
}

func (w *World) deleteObject(actor string, obj client.Object) error {
	collection, _, err := w.encode(obj)
	if err != nil {
		return err
	}
	_, err = w.ask(actor, http.MethodDelete, collection+"/"+obj.GetName(), "application/json", []byte(`{"propagationPolicy":"Background"}`))
	return err
}

func (w *World) getObject(actor string, into client.Object) error {
	collection, _, err := w.encode(into)
	if err != nil {
		return err
	}
	body, err := w.ask(actor, http.MethodGet, collection+"/"+into.GetName(), "", nil)
	if err != nil {
		return err
	}
	zero(into)
	return json.Unmarshal(body, into)
}

func (w *World) putObject(actor string, obj client.Object, subresource string) error {
	collection, body, err := w.encode(obj)
	if err != nil {
		return err
	}
	path := collection + "/" + obj.GetName()
	if subresource != "" {
		path += "/" + subresource
	}
	_, err = w.ask(actor, http.MethodPut, path, "application/json", body)
	return err
}

// ask sends a request of somebody who is not the operator, and returns the body of a good answer.
func (w *World) ask(actor, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := apiserver.NewRequest(method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	request.Actor, request.UserAgent = actor, actor
	response := w.server.Serve(request)
	if method != http.MethodGet {
		w.trace.add(actor, "write", describe(request)+" -> "+fmt.Sprint(response.Code)+reasonOf(response))
		w.active()
	}
	if response.Code >= 400 {
		status := metav1.Status{}
		if err := json.Unmarshal(response.Body, &status); err != nil {
			return nil, fmt.Errorf("%s %s: %d: %s", method, path, response.Code, response.Body)
		}
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return response.Body, nil
}
