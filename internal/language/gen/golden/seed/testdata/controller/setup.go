// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/manager"
)

// Setup registers the controller with a manager.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := manager.IndexCronJobControllerManager(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr)
	return manager.WatchCronJobControllerManager(b, mgr.GetClient()).
		Complete(&CronJobController{Client: mgr.GetClient(), Logger: mgr.GetLogger()})
}
