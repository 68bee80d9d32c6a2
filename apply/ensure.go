// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"reflect"
	"runtime"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// Ensure keeps one object as child describes it, owned by req.Object, and makes child what it is in
// the cluster:
//
//	run := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: nameOf(req.Object, slot)}, Spec: spec}
//	return ctrlkit.RequeueIfError(apply.Ensure(ctx, req, run))
//
// It does what [Children] does for each object of a set, and the options are those of [Set.Add],
// but for what only a set has: a [Wave], [ReadyWhen], and the policies [Keep], [Unowned] and
// [Once]. The object is in no set:
//
//   - It is not pruned. It goes with its owner, or when the operator deletes it.
//   - It need not be ready, and no condition says whether it is: see [Mirror].
//   - Its kind is watched if the controller owns it.
//
// So it is for what is made for good, such as the Job of a run, and for what a step needs to read
// afterwards. All else is clearer as a set, even of one object. To add to a set an object that
// Ensure has made needs nothing: it becomes one of the set.
func Ensure[T client.Object](ctx context.Context, req *step.Request[T], child client.Object, options ...Option) error {
	one := &children[T]{settings: newSettings("", []SetOption{Owns(child)}), states: &states{}}
	one.settings.loose = true
	k, err := one.keeper(req)
	if err != nil {
		return err
	}
	wanted := addition{object: child, policy: policy{words: []Policy{NoWait}}}
	for _, o := range options {
		o.apply(&wanted.policy)
	}
	var caller [1]uintptr
	runtime.Callers(2, caller[:])
	wanted.caller = caller[0]
	items, err := k.items(&Set{additions: []addition{wanted}})
	if err != nil {
		return err
	}
	s := state{item: items[0]}
	k.ensureGuarded(ctx, &s)
	switch {
	case s.err != nil:
		return s.err
	case s.item.missing:
		err = ctrlkit.Poll(s.waits, definitionEvery)
	case s.waits != "":
		err = ctrlkit.Poll(s.waits, goneEvery)
	default:
		err = take(child, s.object)
	}
	return err
}

// take makes target what source is, which may be unstructured.
func take(target, source client.Object) error {
	if u, ok := source.(apiruntime.Unstructured); ok && reflect.TypeOf(target) != reflect.TypeOf(source) {
		reflect.ValueOf(target).Elem().SetZero()
		return apiruntime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), target)
	}
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(source.DeepCopyObject()).Elem())
	return nil
}
