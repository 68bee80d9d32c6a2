// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// lastAnnotation has the finalizers of engines that wait until they are the last of an object which
// is being deleted. They do not wait for each other.
const lastAnnotation = "external.ctrlkit.dev/last"

// afterOthers returns a wait while an object that is being deleted has finalizers of others: who
// protects an object protects its resource, too.
func afterOthers[T client.Object](req *step.Request[T]) error {
	own, others := req.Finalizers()
	waiting := strings.FieldsFunc(req.Object.GetAnnotations()[lastAnnotation], func(r rune) bool { return r == ',' })
	first := slices.DeleteFunc(others, func(name string) bool { return slices.Contains(waiting, name) && own < name })
	if len(first) == 0 {
		return nil
	}
	if !slices.Contains(waiting, own) {
		waiting = append(waiting, own)
		slices.Sort(waiting)
		annotate(req.Object, lastAnnotation, strings.Join(waiting, ","))
	}
	return ctrlkit.Wait("other controllers to remove their finalizers: " + strings.Join(first, ", ") + remedyOfOthers(req, first))
}

// remedyOfOthers returns what a person can do about finalizers of others. To keep the resource does not
// remove them. Those of the garbage collector end by themselves.
func remedyOfOthers[T client.Object](req *step.Request[T], finalizers []string) string {
	others := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	if len(others) == 0 {
		return ""
	}
	remedy := "; if the controller of one is gone for good, take that finalizer off the object: what it stands for is then not cleaned up"
	if retired := req.RetiredRemedy(others); retired != "" {
		remedy = "; " + retired + remedy
	}
	return remedy
}
