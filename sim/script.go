// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// Acts of a script on objects of a type. These would be methods of World, if methods could have
// type parameters.

// Get reads the object of that kind and name as it is in the cluster, and reports whether it is
// there.
func Get[T client.Object](w *World, obj T) (T, bool) {
	current := obj.DeepCopyObject().(T)
	found := true
	w.must("get "+w.run.describeObject(obj), func() error {
		w.run.actors.BringBack(w.run.nameInPlans(obj))
		err := w.run.getObject(current)
		if apierrors.IsNotFound(err) {
			found = false
			return nil
		}
		return err
	})
	return current, found
}

// Update changes an object as a user: it reads the object of that kind and name, lets change change
// it, and writes it. It waits for an object that is not there or is being deleted, as a fault may
// have it.
func Update[T client.Object](w *World, obj T, change func(T)) {
	updateObject(w, obj, "", change)
}

// UpdateStatus changes the status of an object, as a controller does for which the workload has no
// player. Where it has one, that one writes the status again.
func UpdateStatus[T client.Object](w *World, obj T, change func(T)) {
	updateObject(w, obj, "status", change)
}

func updateObject[T client.Object](w *World, obj T, subresource string, change func(T)) {
	if subresource == "" {
		w.endBeginning()
	}
	text := "update " + w.run.describeObject(obj)
	for started := time.Now(); ; time.Sleep(time.Second) {
		err := w.try(text, func() error {
			w.run.actors.BringBack(w.run.nameInPlans(obj))
			current := obj.DeepCopyObject().(T)
			if err := w.run.getObject(current); err != nil {
				return err
			}
			if !current.GetDeletionTimestamp().IsZero() {
				return apierrors.NewNotFound(w.run.kindOfObject(obj), obj.GetName())
			}
			change(current)
			_, err := w.run.askAbout("user", http.MethodPut, current, subresource)
			return err
		})
		switch {
		case err == nil:
			return
		// A conflict can't be: the driver reads and writes in one turn.
		case !apierrors.IsNotFound(err) || time.Since(started) > w.run.workload.patience():
			w.fail(fmt.Errorf("%s: %w", text, err))
		}
	}
}

// List reads the objects of a kind in a namespace, or in all if it is empty, as they are in the
// cluster, ordered by name.
func List[T client.ObjectList](w *World, list T, namespace string) T {
	w.must(fmt.Sprintf("list %T", list), func() error {
		gvk, err := apiutil.GVKForObject(list, w.run.scheme)
		if err != nil {
			return fmt.Errorf("%T is not in Workload.Scheme: %w", list, err)
		}
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		resource, _, err := w.run.cluster.Server.ResourceFor(gvk)
		if err != nil {
			return err
		}
		body, err := w.run.cluster.Ask("user", http.MethodGet, cluster.CollectionPath(resource, namespace), "", nil)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, list)
	})
	return list
}

// Detour marks a place at which users could change their minds: in some runs the object is changed
// here, and, when everything is idle, is changed back, which has to lead to the same end. In the
// run without faults it does nothing.
func Detour[T client.Object](w *World, obj T, change func(T)) {
	w.detours++
	takes := false
	w.must("look at the plan", func() error {
		takes = w.run.injector.Detour(w.detours)
		return nil
	})
	if !takes {
		return
	}
	before, ok := Get(w, obj)
	if !ok {
		return
	}
	Update(w, obj, change)
	w.becomeIdle()
	Update(w, obj, func(current T) {
		// The user changes back the fields that users write; the finalizers are the operator's.
		resourceVersion, finalizers := current.GetResourceVersion(), current.GetFinalizers()
		restored := before.DeepCopyObject().(T)
		restored.SetResourceVersion(resourceVersion)
		restored.SetFinalizers(finalizers)
		restoreInto(current, restored)
	})
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
