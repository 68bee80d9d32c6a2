// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"slices"
	"strings"

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
	_, err := ctrlkit.WaitFor("other controllers to remove their finalizers: " + strings.Join(first, ", "))
	return err
}
