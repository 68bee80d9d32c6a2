// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=nats.ctrlkit.dev,resources=streams;consumers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nats.ctrlkit.dev,resources=streams/status;consumers/status,verbs=patch
// +kubebuilder:rbac:groups=nats.ctrlkit.dev,resources=streams/finalizers;consumers/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=stream-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer nats.ctrlkit.dev/stream --output config/admission/streams.yaml streams.v1.nats.ctrlkit.dev
//go:generate go tool ctrlkit generate finalizer-policy --finalizer nats.ctrlkit.dev/consumer --output config/admission/consumers.yaml consumers.v1.nats.ctrlkit.dev

// settings are what flags and tests decide.
type settings struct {
	address string        // of the server for Streams that name none
	poll    time.Duration // how often each stream and consumer is observed
	dial    Dialer
}

// addControllers adds the controllers of Streams and Consumers to a manager.
func addControllers(mgr ctrl.Manager, s settings) error {
	servers, streamOf, credentialsOf := newServers(s.address, s.dial), newStreamReference(), newCredentialsReference()
	if err := mgr.Add(&servers.pool); err != nil { // it closes the connections when the operator ends
		return err
	}
	calls := external.Calls[*v1.Stream]{ // for imports, too
		Deadline: 5 * time.Second, System: func(obj *v1.Stream) string { return servers.address(obj.Spec.Server) },
	}.Shared()
	err := step.Control(mgr, step.Options[*v1.Stream]{Name: "stream", SkipUnchanged: true},
		external.New("Stream", streams{servers}, external.Options[*v1.Stream]{
			Identity: external.ByName(streamName), Poll: s.poll, References: []reference.Of[*v1.Stream]{credentialsOf},
			StoresOwner:      true, // in the metadata of the stream
			ConnectionSecret: func(obj *v1.Stream) string { return obj.Spec.ConnectionSecret },
			Calls:            calls,
		}),
		reference.Protect(streamOf),
	)
	if err != nil {
		return err
	}
	// Credentials stay as long as there are Streams to delete with them, also when all of their namespace
	// is deleted at once.
	guard := reference.GuardOptions{Name: "stream-operator", Recorder: mgr.GetEventRecorder("stream-operator"), Observers: operator.ObserversOf(mgr)}
	if err := reference.Guard(mgr, guard, credentialsOf); err != nil {
		return err
	}
	err = step.Control(mgr, step.Options[*v1.Consumer]{Name: "consumer", SkipUnchanged: true},
		external.New("Consumer", consumers{servers, streamOf}, external.Options[*v1.Consumer]{
			Identity: external.ByName(consumerName), Poll: s.poll, References: []reference.Of[*v1.Consumer]{streamOf},
			StoresOwner:      true,
			Watches:          watchesOfCredentials(),
			ConnectionSecret: func(obj *v1.Consumer) string { return obj.Spec.ConnectionSecret },
			Calls: external.Calls[*v1.Consumer]{Deadline: 5 * time.Second, System: func(obj *v1.Consumer) string {
				if server := obj.Status.Server; server != nil {
					return server.Address
				}
				return "" // it waits for its Stream
			}},
		}),
	)
	if err != nil {
		return err
	}
	if err := external.ServeAudits(mgr, servers.audits(mgr.GetClient(), mgr.GetAPIReader())); err != nil { // for ctrlkit orphans
		return err
	}
	return external.ServeImports(mgr, servers.imports(mgr.GetClient(), mgr.GetAPIReader(), calls)) // for ctrlkit import
}
