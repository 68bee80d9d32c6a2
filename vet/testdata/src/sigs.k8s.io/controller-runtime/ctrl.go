// Package controllerruntime stands for the real one.
package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

type Result = reconcile.Result
