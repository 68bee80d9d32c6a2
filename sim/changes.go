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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// every matches the names of all transitions.
var every = regexp.MustCompile("")

// changes returns the changes of the objects that the script has created, whose names an expression
// matches, and how many of these an API server refuses: see [transition.Changes].
func (ref *reference) changes(crds []*apiextensionsv1.CustomResourceDefinition, expression *regexp.Regexp, apply func(*unstructured.Unstructured) error) (all []transition.Change, refused int, err error) {
	var lists [][]transition.Change
	known := map[string]bool{}
	for _, sample := range ref.first.run.played.samples {
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
	if ref == nil || ref.first == nil || ref.first.run.played == nil {
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
	for _, sample := range ref.first.run.played.samples {
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
