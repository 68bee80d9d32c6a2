// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/trial"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// describe returns what decides which faults can strike at a write.
func (r *runner) describe(request *apiserver.Request) *fault.Write {
	w := &fault.Write{
		Verb: request.Verb, Subresource: request.Subresource, Named: namesObject(request),
		Conditional: request.Verb == "update" || bytes.Contains(request.Body, []byte(`"resourceVersion"`)),
		Users:       r.history.ofUsers(),
	}
	if request.Name != "" {
		_, err := r.cluster.Do("sim", "ctrlkit", http.MethodGet, trial.PathOf(request.Resource, request.Namespace, request.Name), "", nil)
		w.Exists = err == nil
		w.Child = r.history.isChild(thing(request.Resource.GroupResource().String(), request.Namespace, request.Name))
	}
	return w
}

// occupies reports whether a stranger takes a name that the operator needs.
func (r *runner) occupies() bool {
	return slices.ContainsFunc(r.plan.Faults, func(f fault.Fault) bool { return f.Kind == fault.OccupyName })
}

// other does what another client does at a write.
func (r *runner) other(f fault.Fault, request *apiserver.Request) {
	path := trial.PathOf(request.Resource, request.Namespace, request.Name)
	switch f.Kind {
	case fault.TouchBeforeWrite:
		r.ask(http.MethodPatch, path, "application/merge-patch+json", map[string]any{"metadata": map[string]any{"annotations": map[string]any{touched: "true"}}})
	case fault.DeleteBeforeWrite:
		r.ask(http.MethodDelete, path, "", nil)
	case fault.OccupyName:
		if occupant := occupantOf(request); occupant != nil {
			r.ask(http.MethodPost, trial.PathOf(request.Resource, request.Namespace, ""), "application/json", occupant)
		}
	case fault.Recreate:
		r.recreate(f.Of)
	}
}

// ask sends a request of another client, whose effect is in the trace.
func (r *runner) ask(method, path, contentType string, body any) {
	if _, err := r.cluster.Do(otherActor, "other", method, path, contentType, body); err != nil {
		r.trace.add("sim", "refused", method+" "+path+": "+err.Error())
	}
}

// recreate lets a user delete an object, and create it again when it is gone.
func (r *runner) recreate(what string) {
	content := r.history.created(what)
	if content == nil {
		return // it is not there any more
	}
	u := &unstructured.Unstructured{Object: trial.Essential(content)}
	u.SetAPIVersion(fmt.Sprint(content["apiVersion"]))
	u.SetKind(fmt.Sprint(content["kind"]))
	delete(u.Object, "status")
	resource, _, err := r.cluster.ResourceFor(u.GroupVersionKind())
	if err != nil {
		r.trace.add("sim", "refused", err.Error())
		return
	}
	path := trial.PathOf(resource, u.GetNamespace(), u.GetName())
	if _, err := r.cluster.Do(trial.UserActor, "kubectl", http.MethodDelete, path, "", nil); err != nil {
		r.trace.add("sim", "refused", err.Error())
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returning = append(r.returning, u)
}

// createdAgain creates what a user wants to create again and what is gone by now. It reports whether all is
// there again.
func (r *runner) createdAgain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returning = slices.DeleteFunc(r.returning, func(u *unstructured.Unstructured) bool {
		resource, _, err := r.cluster.ResourceFor(u.GroupVersionKind())
		if err != nil {
			return true // its kind is gone
		}
		_, err = r.cluster.Do(trial.UserActor, "kubectl", http.MethodPost, trial.PathOf(resource, u.GetNamespace(), ""), "application/json", u.Object)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			r.trace.add("sim", "refused", "creating it again: "+err.Error())
		}
		return !apierrors.IsAlreadyExists(err)
	})
	return len(r.returning) == 0
}

// namesObject reports whether a write creates an object whose name the operator has chosen, if the
// object is not there.
func namesObject(r *apiserver.Request) bool {
	if r.Subresource != "" {
		return false
	}
	name := cluster.NameOf(r)
	return name != "" && (r.Verb == "create" && !strings.HasSuffix(name, "*") || cluster.IsApply(r))
}

// occupantOf returns the object of a stranger with the name of the one that a request creates: the
// same without anything that says that it is the operator's, and with other data. It is nil if the
// request can't be read.
func occupantOf(r *apiserver.Request) map[string]any {
	obj, ok := cluster.CreatedBy(r)
	if !ok {
		return nil
	}
	content := obj.Object
	metadata := map[string]any{"name": cluster.NameOf(r), "annotations": map[string]any{cluster.Foreign: "true"}}
	if r.Namespace != "" {
		metadata["namespace"] = r.Namespace
	}
	content["metadata"] = metadata
	delete(content, "status")
	switch fmt.Sprint(content["kind"]) {
	case "ConfigMap":
		delete(content, "binaryData")
		content["data"] = map[string]any{"another": "value"}
	case "Secret":
		delete(content, "stringData")
		content["data"] = map[string]any{"another": "dmFsdWU="}
		delete(content, "type") // it may ask for keys
	}
	return content
}
