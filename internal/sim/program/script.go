// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// A Step is what a user does, after which the operator becomes idle. One of the fields is set.
type Step struct {
	Apply  []run.Manifest
	Patch  *Patch
	Delete []Target

	name  string
	wants *wants // nil for the end that the step has without a fault
}

// wants is how a step is to end.
type wants struct {
	name oracle.Name // that does not hold if it ends otherwise; "" if it may
	text string      // "as it was before"
}

// A Target names an object.
type Target struct {
	Kind            schema.GroupVersionKind // or of any kind that is called Called, if it is empty
	Called          string                  // "database", "databases", "databases.example.com"
	Namespace, Name string
}

// A Patch is a change of an object.
type Patch struct {
	Target
	Merge json.RawMessage // a JSON merge patch
}

// String describes the step.
func (s Step) String() string {
	switch {
	case s.name != "":
		return s.name
	case s.Patch != nil:
		return "patch " + s.Patch.Called + "/" + s.Patch.Name
	case len(s.Delete) > 0:
		return "delete " + s.Delete[0].Called + "/" + s.Delete[0].Name
	}
	return "apply the samples"
}

// ScriptOf returns the script for samples: all are applied, and those of the kinds of definitions
// are deleted. Without any of these, all are deleted.
func ScriptOf(samples []run.Manifest, definitions []*apiextensionsv1.CustomResourceDefinition) []Step {
	defined := map[schema.GroupKind]bool{}
	for _, d := range definitions {
		defined[schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}] = true
	}
	var custom, all []Target
	for _, m := range slices.Backward(samples) {
		t := Target{Kind: m.Object.GroupVersionKind(), Namespace: m.Object.GetNamespace(), Name: m.Object.GetName()}
		all = append(all, t)
		if defined[t.Kind.GroupKind()] {
			custom = append(custom, t)
		}
	}
	if len(custom) == 0 {
		return []Step{{Apply: samples, name: "apply the samples"}, {Delete: all, name: "delete the samples"}}
	}
	return []Step{{Apply: samples, name: "apply the samples"}, {Delete: custom, name: "delete the custom resources"}}
}

// ReadScript reads a script: a list of steps, each with "apply: FILE", "patch: {object: KIND/NAME,
// merge: {...}}" or "delete: KIND/NAME". Files are relative to that of the script.
func ReadScript(file, namespace string) ([]Step, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	var entries []struct {
		Apply  string `json:"apply"`
		Delete string `json:"delete"`
		Patch  *struct {
			Object string          `json:"object"`
			Merge  json.RawMessage `json:"merge"`
		} `json:"patch"`
	}
	if err := yaml.UnmarshalStrict(data, &entries); err != nil {
		return nil, fmt.Errorf("reading the script %s: %w", file, err)
	}
	var steps []Step
	for i, e := range entries {
		var s Step
		var err error
		switch {
		case e.Apply != "" && e.Delete == "" && e.Patch == nil:
			s.name = "apply " + e.Apply
			s.Apply, err = readAll(filepath.Join(filepath.Dir(file), e.Apply))
		case e.Delete != "" && e.Apply == "" && e.Patch == nil:
			s.name = "delete " + e.Delete
			var t Target
			t, err = targetOf(e.Delete, namespace)
			s.Delete = []Target{t}
		case e.Patch != nil && e.Apply == "" && e.Delete == "" && len(e.Patch.Merge) > 0:
			s.name = "patch " + e.Patch.Object
			s.Patch = &Patch{Merge: e.Patch.Merge}
			s.Patch.Target, err = targetOf(e.Patch.Object, namespace)
		default:
			err = fmt.Errorf("must be one of apply: FILE, delete: KIND/NAME, and patch: {object: KIND/NAME, merge: {...}}")
		}
		if err != nil {
			return nil, fmt.Errorf("%s, step %d: %w", file, i+1, err)
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("the script %s has no steps", file)
	}
	return steps, nil
}

func readAll(path string) ([]run.Manifest, error) {
	files, err := run.ManifestFiles(path)
	if err != nil {
		return nil, err
	}
	var all []run.Manifest
	for _, file := range files {
		manifests, err := run.ReadManifests(file)
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no objects", path)
	}
	return all, nil
}

// targetOf reads KIND/NAME and KIND/NAMESPACE/NAME.
func targetOf(text, namespace string) (Target, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Target{}, fmt.Errorf("%q: must be KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
	if len(parts) == 3 {
		namespace = parts[1]
	}
	return Target{Called: strings.ToLower(parts[0]), Namespace: namespace, Name: parts[len(parts)-1]}, nil
}

// do carries out the step.
func (s Step) do(r *runner) error {
	for _, m := range s.Apply {
		err := trial.ApplySample(r.cluster, m.Object, r.Namespace, func(err error) {
			if _, known := r.warned.LoadOrStore(m.Where(), true); !known {
				r.Progress(fmt.Sprintf("kubectl apply refuses %s: %v; what is unknown is left out", m.Where(), err))
			}
		})
		if err != nil {
			return fmt.Errorf("%s %q of %s: %w", m.Object.GetKind(), m.Object.GetName(), m.Where(), err)
		}
	}
	for _, t := range s.Delete {
		t.Namespace = cmp.Or(t.Namespace, r.Namespace)
		r.boundary.deletion()
		resource, namespace, err := r.find(t)
		if err == nil {
			r.world.do(func() { r.world.actors.KeepAway(cluster.ObjectName(resource, namespace, t.Name)) })
			err = trial.Delete(r.cluster, resource, namespace, t.Name)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if s.Patch == nil {
		return nil
	}
	resource, namespace, err := r.find(s.Patch.Target)
	if err == nil {
		_, err = r.cluster.Do(trial.UserActor, "kubectl", http.MethodPatch, trial.PathOf(resource, namespace, s.Patch.Name), "application/merge-patch+json", s.Patch.Merge)
	}
	if apierrors.IsNotFound(err) && len(r.plan.Faults) > 0 { // a fault has taken it away
		r.trace.Add("user", "refused", err.Error())
		return nil
	}
	return err
}

// find returns where an object is.
func (r *runner) find(t Target) (resource schema.GroupVersionResource, namespace string, err error) {
	if !t.Kind.Empty() {
		resource, namespaced, err := r.cluster.ResourceFor(t.Kind)
		switch {
		case !namespaced:
			t.Namespace = ""
		case t.Namespace == "":
			t.Namespace = r.Namespace
		}
		return resource, t.Namespace, err
	}
	for _, o := range r.cluster.Objects() {
		if t.names(o.Resource, &unstructured.Unstructured{Object: o.Content}) {
			return o.Resource, o.Namespace, nil
		}
	}
	return resource, "", apierrors.NewNotFound(schema.GroupResource{Resource: t.Called}, t.Name)
}

// names reports whether an object is the target. One outside of namespaces is it whatever namespace
// the target has.
func (t Target) names(resource schema.GroupVersionResource, u *unstructured.Unstructured) bool {
	if u.GetName() != t.Name || u.GetNamespace() != "" && u.GetNamespace() != t.Namespace {
		return false
	}
	kind, group := strings.ToLower(u.GetKind()), resource.Group
	if !t.Kind.Empty() {
		return t.Kind.GroupKind() == u.GroupVersionKind().GroupKind()
	}
	return slices.Contains([]string{kind, resource.Resource, resource.Resource + "." + group, kind + "." + group}, t.Called)
}
