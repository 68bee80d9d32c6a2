// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/transition"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
)

// endOfBeginning ends a script of which only the beginning is played.
type endOfBeginning struct{}

// endBeginning ends the script if only its beginning is played, which changes no object.
func (w *World) endBeginning() {
	if w.beginning {
		panic(endOfBeginning{})
	}
}

// playCourse plays the beginning of the script, and then the transition.
func (w *World) playCourse() {
	w.playBeginning()
	w.Settle()
	if c := w.run.workload.course; c.change != nil && !c.fresh {
		w.apply("change "+c.change.Name, c.change.Before, c.change.Changed)
		w.Settle()
		w.apply("change it back", c.change.Changed, c.change.Before)
		w.Settle()
	}
	w.must("note the end", func() error {
		w.run.ended, w.run.failing = len(w.run.checkpoints)-1, w.run.processes.failing()
		return nil
	})
}

func (w *World) playBeginning() {
	if w.run.workload.Script == nil {
		return
	}
	w.beginning = true
	defer func() {
		w.beginning = false
		if r := recover(); r != nil && r != any(endOfBeginning{}) {
			panic(r)
		}
	}()
	w.run.workload.Script(w)
}

// apply changes an object as "kubectl apply" does, from what was applied before.
func (w *World) apply(text string, from, to *unstructured.Unstructured) {
	w.must(text, func() error {
		path, err := w.run.pathOf(from)
		if err != nil {
			return err
		}
		current, err := w.run.cluster.Ask("user", http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		patch, err := patchOf(from, to, current)
		if err != nil {
			return err
		}
		_, err = w.run.cluster.Ask("user", http.MethodPatch, path, "application/merge-patch+json", patch)
		return w.run.unlessRefused(err)
	})
}

func patchOf(from, to *unstructured.Unstructured, current []byte) ([]byte, error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, current)
}

// unlessRefused returns the error of a request that makes a transition. It ends the run if the server
// finds the object invalid: then there is no such transition.
func (r *run) unlessRefused(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		r.invalid = true
		return errAborted
	}
	return err
}

func (r *run) pathOf(obj *unstructured.Unstructured) (string, error) {
	resource, namespaced, err := r.cluster.Server.ResourceFor(obj.GroupVersionKind())
	return cluster.CollectionPath(resource, namespaceOf(obj, namespaced)) + "/" + obj.GetName(), err
}

// createSample creates an object, as changed if the transition of the run is one of this object.
func (r *run) createSample(obj client.Object) error {
	collection, body, err := r.encode(obj)
	if err != nil {
		return err
	}
	sample := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &sample.Object); err != nil {
		return err
	}
	delete(sample.Object, "status") // the server does not take it
	unstructured.RemoveNestedField(sample.Object, "metadata", "creationTimestamp")
	r.samples = append(r.samples, sample)
	c := r.workload.course
	changed := c.fresh && idOf(sample) == idOf(c.change.Before)
	if changed {
		sample = c.change.Changed
	}
	if body, err = json.Marshal(sample); err != nil {
		return err
	}
	_, err = r.cluster.Ask("user", http.MethodPost, collection, "application/json", body)
	if changed {
		return r.unlessRefused(err)
	}
	return err
}

// fails reports whether the operator can't do what a transition asks for.
func (r *run) fails() bool {
	return r.workload.course != nil && r.workload.course.change != nil && len(r.processes.failing()) > 0
}

// idOf returns the kind and the name of an object.
func idOf(obj *unstructured.Unstructured) string {
	return obj.GroupVersionKind().GroupKind().String() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// noteWritten notes who has written an object.
func (r *run) noteWritten(c apiserver.Change) {
	if r.workload.course == nil {
		return
	}
	if r.written == nil {
		r.written = map[string]bool{}
	}
	content := c.New
	if content == nil {
		content = c.Old
	}
	if byUser := strings.HasPrefix(c.Actor, "user"); byUser || cluster.IsOperator(c.Actor) {
		of := cluster.ObjectName(c.Resource, c.Namespace, cluster.CanonicalName(c.Name, content))
		r.written[of] = r.written[of] || byUser
	}
}

// counts reports whether a thing of a snapshot is compared: the operator or a user has written it, or
// it is outside the cluster.
func (r *run) counts(thing string) bool {
	_, ok := r.things()[withoutNumber(thing)]
	return ok || strings.HasPrefix(thing, "external ")
}

// things returns what the operator or a user has written, as snapshots name it, and whether a user has.
func (r *run) things() map[string]bool {
	names := r.judge.Names()
	things := map[string]bool{}
	for of, byUser := range r.written {
		things[names.Replace(of)] = byUser
	}
	return things
}

// withoutNumber returns the name of a thing without the number of those that have the same one.
func withoutNumber(thing string) string {
	thing, _, _ = strings.Cut(thing, " #")
	return thing
}

// every matches the names of all transitions.
var every = regexp.MustCompile("")

// changes returns the changes of the objects that the script has created, whose names an expression
// matches, and how many of these an API server refuses: see [transition.Changes].
func (ref *reference) changes(crds []*apiextensionsv1.CustomResourceDefinition, expression *regexp.Regexp, apply func(*unstructured.Unstructured) error) (all []transition.Change, refused int, err error) {
	var lists [][]transition.Change
	known := map[string]bool{}
	for _, sample := range ref.first.run.samples {
		if sample.GetName() == "" {
			continue // each run has another one
		}
		list, n, err := transition.Changes(crds, sample, expression, apply)
		if err != nil {
			return nil, 0, err
		}
		for i, c := range list {
			if known[c.Name] { // an object of another namespace has its name
				list[i].Name = strings.Replace(c.Name, "/", "/"+sample.GetNamespace()+"/", 1)
			}
			known[list[i].Name] = true
		}
		lists = append(lists, list)
		refused += n
	}
	return transition.Alternate(lists...), refused, nil
}

// change returns the change that has a name.
func (ref *reference) change(crds []*apiextensionsv1.CustomResourceDefinition, name string) (*transition.Change, error) {
	if ref == nil || ref.first == nil || ref.first.run.workload.course == nil {
		return nil, fmt.Errorf("%q is a transition, and the test has no option WithTransitions", name)
	}
	all, _, err := ref.changes(crds, every, func(*unstructured.Unstructured) error { return nil })
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("the objects that the script creates have no transition %q", name)
}

// transitions returns the plans of the transitions that the API server accepts.
func (ref *reference) transitions(crds []*apiextensionsv1.CustomResourceDefinition, expression *regexp.Regexp) ([]fault.Plan, error) {
	server := apiserver.New(apiserver.Options{Now: time.Now})
	if err := server.InstallPrepared(prepared(crds)); err != nil {
		return nil, err
	}
	v := &validation{server, map[string]*unstructured.Unstructured{}}
	for _, sample := range ref.first.run.samples {
		if err := v.create(sample); err != nil {
			return nil, err
		}
	}
	all, refused, err := ref.changes(crds, expression, v.apply)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no transition matches %q (the API server refuses %d): the script must create custom resources with a spec before it updates or deletes one", expression, refused)
	}
	var plans []fault.Plan
	for _, c := range all {
		plans = append(plans, fault.Plan{Transition: c.Name})
	}
	return plans, nil
}

// validation is an API server that says which objects are valid.
type validation struct {
	server  *apiserver.Server
	samples map[string]*unstructured.Unstructured
}

func (v *validation) create(sample *unstructured.Unstructured) error {
	v.samples[idOf(sample)] = sample
	_, err := v.ask(http.MethodPost, sample)
	return err
}

// apply replaces an object. One that can't be replaced is as it was created after that.
func (v *validation) apply(obj *unstructured.Unstructured) error {
	current, err := v.ask(http.MethodGet, obj)
	if err != nil {
		return err
	}
	next := obj.DeepCopy()
	next.SetResourceVersion(current.GetResourceVersion())
	if _, err = v.ask(http.MethodPut, next); err == nil {
		return nil
	}
	if _, again := v.ask(http.MethodDelete, current); again != nil {
		return again
	}
	return errors.Join(err, v.create(v.samples[idOf(obj)]))
}

// ask sends a request about an object, and returns that of the answer.
func (v *validation) ask(method string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, namespaced, err := v.server.ResourceFor(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	path := cluster.CollectionPath(resource, namespaceOf(obj, namespaced))
	if method != http.MethodPost {
		path += "/" + obj.GetName()
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if method == http.MethodDelete {
		body = nil
	}
	request, err := apiserver.NewRequest(method, path, "application/json", body)
	if err != nil {
		return nil, err
	}
	request.Actor = "user"
	response := v.server.Serve(request)
	if response.Code >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %d: %s", method, path, response.Code, response.Body)
	}
	answer := &unstructured.Unstructured{}
	return answer, answer.UnmarshalJSON(response.Body)
}
