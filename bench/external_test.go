// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// An outside is an external system, in memory.
type outside struct{ owners sync.Map }

func (o *outside) Connect(context.Context, *step.Request[*widget.Widget]) (external.Client[*widget.Widget], error) {
	return o, nil
}

func (o *outside) Observe(_ context.Context, _ *widget.Widget, id string) (external.Observation, error) {
	owner, ok := o.owners.Load(id)
	if !ok {
		return external.Observation{State: external.Absent}, nil
	}
	return external.Observation{
		State: external.UpToDate, Owner: owner.(string), //nolint:errcheck // Create puts it there
		Connection: map[string][]byte{"address": []byte("outside:80/" + id), "password": []byte("p4ss")},
	}, nil
}

func (o *outside) Create(_ context.Context, obj *widget.Widget, creation external.Creation) (string, error) {
	o.owners.Store(creation.Name, external.OwnerOf(obj))
	return creation.Name, nil
}

func (o *outside) Update(context.Context, *widget.Widget, string) error { return nil }

func (o *outside) Delete(_ context.Context, _ *widget.Widget, id string) error {
	o.owners.Delete(id)
	return nil
}

// newExternal returns an operator of resources outside of the cluster, with connection Secrets.
func newExternal(options step.Options[*widget.Widget]) (*step.Engine[*widget.Widget], error) {
	options.Name = "outside"
	return step.New(options, external.New("Widget", external.Connector[*widget.Widget](&outside{}), external.Options[*widget.Widget]{
		Identity: external.ByName(func(obj *widget.Widget) (string, error) { return "w-" + string(obj.UID), nil }),
		Poll:     time.Hour, StoresOwner: true, Policy: policy.Defaults{IgnoreNamespaces: true},
		ConnectionSecret: func(obj *widget.Widget) string { return obj.Name },
	}))
}

// BenchmarkPoll reconciles objects whose resources are up to date.
func BenchmarkPoll(b *testing.B) {
	for _, o := range []measured{{name: "without an observer"}, {name: "observed", observed: true}} {
		b.Run(o.name, func(b *testing.B) {
			o.outside, o.always = true, true
			r := o.start(b, 100)
			defer r.stop()
			r.measure(b)
		})
	}
}

// BenchmarkExternalHeap measures what an operator keeps in memory for each object whose resource is
// up to date, with the cache of the object and its Secret. Run it with -benchtime 1x.
func BenchmarkExternalHeap(b *testing.B) {
	for _, o := range []measured{{name: "without an observer"}, {name: "observed", observed: true}} {
		b.Run(o.name, func(b *testing.B) {
			for o.outside = true; b.Loop(); {
				b.ReportMetric(o.heap(b, 1000), "B/object")
			}
		})
	}
}
