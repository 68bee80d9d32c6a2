// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/health"
)

// Health is how an object is, by its own status: its State, one of "Ready", "Progressing",
// "Failed", "Terminating" and "Unknown", with a reason and a message.
type Health = health.Health

// HealthOf returns the health of an object: typed, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata. It is a function of the object alone, by the rules that a [Set]
// goes by. A kind with rules of its own, whose Go type is not one of client-go, has to name itself
// in the object's TypeMeta.
//
//	if !apply.HealthOf(job).IsReady() {
//		return ctrlkit.Wait("Job " + job.Name)
//	}
func HealthOf(obj client.Object) Health { return health.Of(obj) }
