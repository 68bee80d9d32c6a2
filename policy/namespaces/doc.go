// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package namespaces resolves policies of objects in a cluster: it reads their namespaces, and
// declares the watch that reconciles all objects of a namespace whose annotations change.
//
//	func (s bucketStep) Watches() []step.Watch { return namespaces.Watches(s.defaults) }
//
//	type request = step.Request[*v1.Bucket]
//
//	func (s bucketStep) Do(ctx context.Context, req *request) (ctrl.Result, error) {
//		decision, err := namespaces.Resolve(ctx, req.Client, req.Object, s.defaults)
//		if err != nil {
//			return ctrlkit.RequeueIfError(err)
//		}
//		...
//	}
//
// The scheme of the manager has the core types, and the role of the operator get, list and watch
// for namespaces, in a ClusterRole. An operator that is not given that says so, with
// [policy.NamespacesIgnored]: then nothing is read and nothing is watched.
//
// Namespaces are cached whole, not only their metadata, which is nearly all of them: so they are
// in the cache once for all that reads them, an idle object costs no read, and an operator that
// stops leaves no goroutine, which the watch of metadata does.
package namespaces
