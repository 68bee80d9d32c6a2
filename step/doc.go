// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package step is an engine that reconciles one kind of object in named steps.
//
//	func control(mgr ctrl.Manager) error {
//		return step.Control(mgr, step.Options[*v1.Database]{Name: "database"}, readPassword, children)
//	}
//
// A reconcile of the engine reads from top to bottom:
//
//   - The object is read from the cache. Gates may end the reconcile here: the cache is stale,
//     nothing has changed, the object is paused.
//   - If a step has something to clean up, the object is given the finalizer.
//   - Do of each step is run or, when the object is being deleted, Cleanup in reverse order. Then
//     comes Post of each.
//   - The conditions are computed.
//   - Changes are written: besides the finalizer at most one patch of the metadata and one of the
//     status, none when nothing has changed.
//
// # Writing a step
//
// A [Step] is a struct of functions. This one reads a Secret that others make, says in a condition
// what it has found, and passes the password to the steps after it:
//
//	var password = step.NewKey[string]("the password")
//
//	var readPassword = step.Step[*v1.Database]{
//		Name:       "ReadPassword",
//		Conditions: []condition.Declaration{{Type: "PasswordKnown"}},
//		Watches:    func() []step.Watch { return []step.Watch{step.WatchNamed(&corev1.Secret{}, secretOf)} },
//		Do: func(ctx context.Context, req *step.Request[*v1.Database]) error {
//			secret, err := step.GetOrWait[*corev1.Secret](ctx, req, secretOf(req.Object)[0])
//			if err != nil {
//				return err // a wait, which the watch ends
//			}
//			req.Conditions.MarkHealthy("PasswordKnown", "Found", "")
//			step.Put(req, password, string(secret.Data["password"]))
//			return nil
//		},
//	}
//
// A step changes Request.Object and leaves the writing to the engine. Wrong, because the object is
// written twice, and a change by another client since it was read is lost or a conflict:
//
//	req.Object.Status.Phase = "Ready"
//	return req.Client.Status().Update(ctx, req.Object)
//
// Right:
//
//	req.Object.Status.Phase = "Ready"
//	return nil
//
// Children are written through Request.Client, or by package apply. Wrong, because the engine neither
// records the write nor asks the API server whether its cache is stale before it:
//
//	return mgr.GetClient().Create(ctx, child)
//
// Right, and it also repairs the child, and leaves one of another owner alone:
//
//	return apply.Ensure(ctx, req, child)
//
// Something outside the cluster is removed by a Cleanup. Wrong, because a cache may show an object
// that is gone, after a restart, and nothing would remove the bucket:
//
//	Do: func(ctx context.Context, req *step.Request[*v1.Bucket]) error {
//		return buckets.Create(ctx, req.Object.Name)
//	},
//
// Right:
//
//	Do: func(ctx context.Context, req *step.Request[*v1.Bucket]) error {
//		if err := req.EnsureFresh(ctx); err != nil {
//			return err
//		}
//		return buckets.Create(ctx, req.Object.Name)
//	},
//	Cleanup: func(ctx context.Context, req *step.Request[*v1.Bucket]) error {
//		return buckets.Delete(ctx, req.Object.Name)
//	},
//
// # Making an engine
//
// [Control] adds a controller to a manager. [FromManager] makes the engine alone, for a builder with
// more watches than the steps declare, and for tests that ask what it needs. [New] makes one of a
// client, for a reconciler of one's own: an [Engine] is a reconcile.Reconciler.
//
// # Testing a step
//
// Package ctrlkittest runs one step in some milliseconds, with an API server in memory:
//
//	got := ctrlkittest.Do(t, readPassword, database, ctrlkittest.WithObjects(secret))
//	if got.Conditions["PasswordKnown"] != "True Found" || !got.Passed {
//		t.Errorf("got %+v", got)
//	}
//
// Package sim runs the whole operator, with crashes, conflicts and stale caches.
package step
