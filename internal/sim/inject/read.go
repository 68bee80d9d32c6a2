// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// A Read is one on its way to the API server.
type Read struct {
	Actor   string // which process, in the trace
	Request *apiserver.Request
}

// readEffects has the faults at reads: what they answer.
var readEffects = map[fault.Kind]func(f fault.Fault, r *Read) *Answer{
	fault.PanicAtRead: func(fault.Fault, *Read) *Answer { return &Answer{Panics: true} },
	fault.RefuseRead:  func(f fault.Fault, r *Read) *Answer { return &Answer{Response: Refusal(f.How, r.Request)} },
}

// Read counts a read and lets the faults strike that the plan has for it. It returns the answer.
func (in *Injector) Read(r *Read) *Answer {
	in.reads++
	in.Catalog.note(fault.Place{Point: fault.AtRead, At: in.reads, Site: cluster.Describe(r.Request)})
	for _, f := range in.due(fault.AtRead, in.reads, "") {
		in.fire(f, r.Actor)
		return readEffects[f.Kind](f.Fault, r)
	}
	if response := in.listOfPast(r.Request); response != nil {
		return &Answer{Response: response}
	}
	return &Answer{Response: in.Cluster.Execute(r.Request, numbered("read", in.reads))}
}
