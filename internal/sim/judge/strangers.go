// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// foreignUntouched demands that objects of other owners are not changed. A write to one violates it
// only if the API server accepts the write: an operator may rely on a refusal, with a resource
// version.
//
// An object of a kind that the operator reconciles is an object to reconcile, whichever client has
// created it: the operator may write its status and its finalizers, and nothing else.
type foreignUntouched struct {
	foreign bool    // the object of the write that is being done has another owner
	change  *change // what the write has changed
}

func (o *foreignUntouched) OnWrite(l *ledger, r *apiserver.Request, _ violate) {
	*o = foreignUntouched{}
	if r.Verb == "create" {
		return
	}
	for _, obj := range l.live {
		if obj.GetName() == r.Name && obj.GetNamespace() == r.Namespace && isForeign(obj.Object) && obj.resource.GroupResource() == r.Resource.GroupResource() {
			o.foreign = true
		}
	}
}

func (o *foreignUntouched) OnChange(_ *ledger, c *change, _ violate) {
	if o.foreign && c.byOperator && isForeign(c.Old) {
		o.change = c
	}
}

func (o *foreignUntouched) AfterWrite(l *ledger, r *apiserver.Request, answer *apiserver.Response, v violate) {
	if o.foreign && answer.Code < 300 && !(reconciles(l, r.Resource) && o.isReconcilers()) {
		v(fmt.Sprintf("%s: the object was created by another client, and the operator is not its owner", cluster.Describe(r)))
	}
	*o = foreignUntouched{}
}

// isReconcilers reports whether a write has changed only what who reconciles an object may write.
func (o *foreignUntouched) isReconcilers() bool {
	c := o.change
	switch {
	case c == nil: // it has changed nothing
		return true
	case c.isDeletion():
		return false
	case c.New == nil: // its last finalizer is gone
		return true
	}
	return reflect.DeepEqual(withoutReconcilers(c.Old), withoutReconcilers(c.New))
}

// withoutReconcilers returns an object without its status and finalizers, and without what the
// server writes with them.
func withoutReconcilers(content map[string]any) map[string]any {
	content = runtime.DeepCopyJSON(content)
	delete(content, "status")
	for _, field := range []string{"finalizers", "managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content
}

// isForeign reports whether an object has another owner than the operator.
func isForeign(content map[string]any) bool {
	return (&unstructured.Unstructured{Object: content}).GetAnnotations()[cluster.Foreign] != ""
}

// reconciles reports whether the operator reconciles a kind, as far as it was seen.
func reconciles(l *ledger, r schema.GroupVersionResource) bool {
	kind := r.GroupResource().String()
	return l.reconciled.kinds[kind] || l.reference != nil && l.reference.reconciled[kind]
}

// reconciled are the kinds that the operator reconciles: those of users' objects to which it adds
// finalizers, and the custom kinds whose statuses it writes. That it does so with an object of a
// stranger shows nothing, and neither does a finalizer of a child.
type reconciled struct {
	ofUsers map[types.UID]bool // objects that users have created
	kinds   map[string]bool
}

// note looks at a change. held is whether the operator has added a finalizer to its object.
func (k reconciled) note(c *change, held bool) {
	if c.Type == "ADDED" && c.isUsers() {
		k.ofUsers[c.UID] = true
	}
	if !c.isUpdate() || isForeign(c.Old) {
		return
	}
	writesStatus := cluster.IsCustomGroup(c.Resource.Group) && !reflect.DeepEqual(c.Old["status"], c.New["status"])
	if writesStatus || k.ofUsers[c.UID] && held {
		k.kinds[c.Resource.GroupResource().String()] = true
	}
}
