// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// From begins each run with the objects of a file that "ctrlkit record" has written: as they were,
// with their UIDs, resource versions, statuses, finalizers and owners, and what was an hour ago is
// an hour ago. file is relative to the directory of the test. Objects of Workload.Objects are
// created after them.
//
// The definitions in the file are installed, except for those that Workload.CRDs has, too. A
// Workload without a Script waits until the operator is idle.
//
// The oracle mended demands that no object that was recorded as stuck ends like that. So the test
// fails with the operator that could not handle the failure, and passes with the one that can,
// whatever goes wrong meanwhile.
func From(file string) Option { return func(s *settings) { s.from = file } }

// beginning is when runs begin, in virtual time.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// readRecording reads the recording of the option From into a workload.
func readRecording(t *testing.T, w *Workload, s *settings) {
	t.Helper()
	if s.from == "" {
		return
	}
	r, err := recording.Read(s.from)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	r.At(beginning)
	w.recorded = r
}

// withRecorded returns definitions of a workload, and those of its recording that it does not have.
func withRecorded(crds []*apiextensionsv1.CustomResourceDefinition, r *recording.Recording) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if r == nil {
		return crds, nil
	}
	recorded, err := r.Definitions()
	if err != nil {
		return nil, err
	}
	for _, d := range recorded {
		if !slices.ContainsFunc(crds, func(own *apiextensionsv1.CustomResourceDefinition) bool { return own.Name == d.Name }) {
			crds = append(crds, d)
		}
	}
	return crds, nil
}

// recorder is the actor of what was there when the recording was made, but for objects without an
// owner, which count as those of users: faults can withhold them. One that is being deleted can't
// come again.
const recorder = "recorder"

// importRecorded stores the recorded objects as they are.
func (r *run) importRecorded() error {
	if r.workload.recorded == nil {
		return nil
	}
	objects := slices.Clone(r.workload.recorded.Objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			continue // the server has it from the beginning
		}
		if err := r.importObject(obj.DeepCopy()); err != nil {
			return err
		}
	}
	r.trace.Add("sim", "note", fmt.Sprintf("%d objects are as they were recorded", len(objects)))
	return nil
}

func revisionOf(obj *unstructured.Unstructured) uint64 {
	revision, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) //nolint:errcheck // Import refuses it
	return revision
}

func (r *run) importObject(obj *unstructured.Unstructured) error {
	resource, namespaced, err := r.cluster.Server.ResourceFor(obj.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("%w: add its definition to Workload.CRDs, or remove the %s from the recording", err, recording.SubjectOf(obj))
	}
	if namespaced {
		if err := r.haveNamespace(obj.GetNamespace()); err != nil {
			return err
		}
	}
	if err := r.cluster.Server.Import(obj.Object); err != nil {
		return err
	}
	actor := recorder
	if len(obj.GetOwnerReferences()) == 0 && obj.GetDeletionTimestamp() == nil {
		actor = "user"
	}
	change := apiserver.Change{
		ResourceVersion: revisionOf(obj), Type: "ADDED", Resource: resource, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		New: obj.Object, Actor: actor, Verb: "create",
	}
	r.cluster.Changed(change)
	r.judge.Changed(change)
	r.players.Known(apiserver.Object{Resource: resource, Namespace: change.Namespace, Name: change.Name, Content: obj.Object})
	return nil
}

// haveNamespace makes up a namespace that was not recorded.
func (r *run) haveNamespace(name string) error {
	if r.content(namespaceKind, "", name) != nil {
		return nil
	}
	return r.cluster.Server.Import(map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": name, "uid": "namespace-" + name, "resourceVersion": "1", "creationTimestamp": beginning.Format(time.RFC3339),
			"labels": map[string]any{"kubernetes.io/metadata.name": name},
		},
		"spec": map[string]any{"finalizers": []any{"kubernetes"}}, "status": map[string]any{"phase": "Active"},
	})
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// content returns an object as it is now, or nil.
func (r *run) content(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	resource, _, err := r.cluster.Server.ResourceFor(gvk)
	if err != nil {
		return nil
	}
	for _, o := range r.cluster.Server.Objects() {
		if o.Resource.GroupResource() == resource.GroupResource() && o.Namespace == namespace && o.Name == name {
			return &unstructured.Unstructured{Object: o.Content}
		}
	}
	return nil
}

// judgeRecorded reports recorded failures that are there again.
func (r *run) judgeRecorded() {
	if r.workload.recorded == nil {
		return
	}
	for _, s := range r.workload.recorded.Unwell() {
		was := r.workload.recorded.Find(s)
		is := r.content(was.GroupVersionKind(), s.Namespace, s.Name)
		if is == nil || is.GetUID() != was.GetUID() || !recording.StateOf(was).Again(recording.StateOf(is)) {
			continue
		}
		r.judge.Report(oracle.Mended, fmt.Sprintf("%s ends as it was recorded: %s", s, recording.StateOf(was)))
	}
}
