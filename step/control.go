// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
)

// Control adds a controller to a manager: the engine of [FromManager], with the watches that its
// steps declare. Options.Name is the name of the controller. Where a controller needs more, such as
// the watches that are generated of a document, use FromManager and [Engine.Complete].
//
//	func control(mgr ctrl.Manager) error {
//		return step.Control(mgr, step.Options[*v1.Simple]{Name: "simple"}, divide)
//	}
func Control[T client.Object](mgr ctrl.Manager, options Options[T], steps ...Step[T]) error {
	engine, err := FromManager(mgr, options, steps...)
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).Named(options.Name).For(engine.resource.newObject()))
}

// FromManager is [New] with what a manager has. Fields of the options that are set stay as they are:
//
//   - Client, APIReader and Cache are those of the manager.
//   - Recorder is one of the manager, with the name of the engine.
//   - Observers are those that package operator has made for the manager, and after them those of
//     the options.
//   - Shard is the one that the manager was made for.
//
// It makes no controller. With [Engine.Needs], a test compares what the engine needs with its role.
func FromManager[T client.Object](mgr ctrl.Manager, options Options[T], steps ...Step[T]) (*Engine[T], error) {
	if mgr == nil {
		return nil, errors.New("engine " + options.Name + ": no manager")
	}
	shared := managers.Of(mgr)
	if options.Client == nil {
		options.Client = mgr.GetClient()
	}
	if options.APIReader == nil {
		options.APIReader = mgr.GetAPIReader()
	}
	if options.Cache == nil {
		options.Cache = mgr.GetCache()
	}
	if options.Recorder == nil {
		options.Recorder = mgr.GetEventRecorder(options.Name)
	}
	options.Observers = append(shared.Observers, options.Observers...)
	if options.Shard == nil {
		options.Shard = shared.Shard
	}
	return New(options, steps...)
}
