// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/bench/table"
)

// The names of the rows. Rows of requests are a pair: rowX+writes and rowX+gets.
const (
	rowCreate  = "create"
	rowResync  = "resync"
	rowRestart = "restart"
	rowField   = "field"
	rowDeleted = "deleted"
	rowEdited  = "edited"

	rowReady     = "ready"
	rowRateOne   = "rate.1"
	rowRateTen   = "rate.10"
	rowIdleOne   = "idle.1"
	rowIdleTen   = "idle.10"
	rowCPUCreate = "cpu.create"
	rowAllocated = "allocated"
	rowCPUResync = "cpu.resync"
	rowHeap      = "heap"
	rowRepair    = "repair"
	rowErrors    = "errors"

	rowRepairTail   = "repair.p99"
	rowServerCreate = "servers.create"
	rowServerRepair = "servers.repair"
	rowHeapHandlers = "heap.handlers." // and how many

	// Of operators of external resources.
	rowTouched       = "touched"
	rowEnd           = "end"
	rowPoll          = "poll"
	rowBound         = "bound"
	rowPollCPU       = "poll.cpu"
	rowPollAllocated = "poll.allocated"
	rowPollHerd      = "poll.herd"
	rowRestartCPU    = "restart.cpu"

	writes  = ".writes"
	gets    = ".gets"
	callsOf = ".calls"
)

// rows returns the rows of the table.
func (s sizes) rows() []table.Row {
	if s.outside {
		return s.outsideRows()
	}
	var all []table.Row
	for _, r := range []struct{ id, title, limit string }{
		{rowCreate, "requests, create to idle", "5, of which the finalizer, three children and the status are one each; " +
			"4 where an admission policy has set the finalizer. A live read is needed only by one who can't know whether the cache is stale."},
		{rowResync, "requests, resync of an unchanged object", "0: the cache has everything."},
		{rowRestart, "requests for each object, operator restarted", "0, beside the lists of the informers."},
		{rowField, "requests, one field of the spec changed", "2: the child and the observed generation of the status. `limit` keeps nothing, so that nothing can be measured from here on."},
		{rowDeleted, "requests, a child deleted", "1: its creation. The status says the same as before."},
		{rowEdited, "requests, a child edited", "1: the write that reverts the edit."},
	} {
		all = append(all,
			table.Row{ID: r.id + writes, Title: r.title, Digits: 1, Beside: r.id + gets, BesideUnit: "GET", Limit: r.limit},
			table.Row{ID: r.id + gets, Title: "live reads, " + strings.TrimPrefix(r.title, "requests, "), Digits: 1})
	}
	return append(all,
		table.Row{ID: rowReady, Title: "create to Ready, p50, 1 worker", Unit: "ms", Digits: 1, Relative: true,
			Limit: "the creation by the user, three creations at once, the status, and a watch event after the first and the last; measured as `limit`."},
		table.Row{ID: rowRateOne, Title: fmt.Sprintf("objects per second, %d at once, 1 worker", s.burst), Unit: "/s", Digits: 1, Relative: true, More: true,
			Limit: "one worker waits for two requests in sequence for each object, the children at once and the status; measured as `limit`."},
		table.Row{ID: rowRateTen, Title: fmt.Sprintf("objects per second, %d at once, 10 workers", s.burst), Unit: "/s", Digits: 1, Relative: true, More: true,
			Limit: "what the API server writes in a second, shared with the client that creates the Widgets; measured as `limit`."},
		table.Row{ID: rowIdleOne, Title: fmt.Sprintf("create to idle, %d at once, 1 worker", s.burst), Unit: "s", Digits: 2, Relative: true,
			Limit: "as above, until the last request or reconcile; measured as `limit`."},
		table.Row{ID: rowIdleTen, Title: fmt.Sprintf("create to idle, %d at once, 10 workers", s.burst), Unit: "s", Digits: 2, Relative: true,
			Limit: "as above; measured as `limit`."},
		table.Row{ID: rowCPUCreate, Title: "CPU of the operator per object created, 1 worker", Unit: "ms", Digits: 2, Relative: true,
			Limit: "the encoding of four requests and the decoding of four answers and of five events or more; measured as `limit`."},
		table.Row{ID: rowServerCreate, Title: "CPU of the API server and etcd per object created, 10 workers", Unit: "ms", Digits: 2, Relative: true,
			Limit: "the creation by the user, and the requests above; measured as `limit`."},
		table.Row{ID: rowAllocated, Title: "allocated by the operator per object created, 1 worker", Unit: "kB", Digits: 0, Relative: true,
			Limit: "what the same requests, answers and events take; measured as `limit`."},
		table.Row{ID: rowCPUResync, Title: fmt.Sprintf("CPU per reconcile in resyncs of %d objects", s.objects), Unit: "us", Digits: 0, Relative: true,
			Limit: "the event, the queue of controller-runtime and one look-up in the cache; measured as `limit`."},
		table.Row{ID: rowHeap, Title: fmt.Sprintf("heap per converged object, of %d", s.objects), Unit: "kB", Digits: 1, Relative: true,
			Limit: "the Widget and its three children in the caches, without managed fields; measured as `limit`."},
		table.Row{ID: rowRepair, Title: "a deleted child exists again, p50", Unit: "ms", Digits: 1, Relative: true,
			Limit: "the event of the deletion, and one creation. Wrangler's relatedresource.Watch waits a second after each deletion."},
		table.Row{ID: rowRepairTail, Title: fmt.Sprintf("a deleted child exists again, p99 of %d", s.repairs), Unit: "ms", Digits: 1, Relative: true,
			Limit: "the same."},
		table.Row{ID: rowServerRepair, Title: "CPU of the API server and etcd per deleted child", Unit: "ms", Digits: 1, Relative: true,
			Limit: "the deletion by the user, one creation, and the events of both."},
		s.heapRow(1),
		s.heapRow(20),
		table.Row{ID: rowErrors, Title: "conflicts that surface as errors, per 100 objects created", Digits: 1,
			Limit: "0. An error of controller-runtime is in its log and its metrics. Wrangler leaves conflicts out of its log, where they would count."},
	)
}

// heapRow returns the row about many handlers of one kind.
func (s sizes) heapRow(handlers int) table.Row {
	plural := "s"
	if handlers == 1 {
		plural = ""
	}
	return table.Row{
		ID: rowHeapHandlers + fmt.Sprint(handlers), Title: fmt.Sprintf("heap per cached object, of %d, %d handler%s", s.cached, handlers, plural),
		Unit: "kB", Digits: 2, Relative: true,
		Limit: "the object in the cache, once, without managed fields. An idle handler needs to keep nothing of an object.",
	}
}

// outsideRows returns the rows of the table of operators of external resources.
func (s sizes) outsideRows() []table.Row {
	var all []table.Row
	for _, r := range []struct{ id, title, limit, calls string }{
		{rowCreate, "create to idle, 1 worker", "3: the finalizer with the name, before the creation; the connection Secret; the status.",
			"3: one that finds nothing, the creation, one that finds the resource."},
		{rowTouched, "an annotation changed", "0", "0: nothing that the resource depends on has changed."},
		{rowField, "one field of the spec changed", "1: the status, with the observed generation.", "3: what differs, the update, whether it had its effect."},
		{rowEnd, "deletion", "1: the finalizer.", "2: the deletion, and whether the resource is gone."},
		{rowRestart, "operator restarted", "0, beside the lists of the informers.", "1: the resource may have changed."},
	} {
		all = append(all,
			table.Row{ID: r.id + writes, Title: "requests, " + r.title, Digits: 2, Beside: r.id + gets, BesideUnit: "GET", Limit: r.limit},
			table.Row{ID: r.id + gets, Title: "live reads, " + r.title, Digits: 2},
			table.Row{ID: r.id + callsOf, Title: "calls of the system, " + r.title, Digits: 2, Limit: r.calls})
	}
	return append(all,
		table.Row{ID: rowPoll + writes, Title: "requests for each poll", Digits: 2, Beside: rowPoll + gets, BesideUnit: "GET", Limit: "0: nothing has changed."},
		table.Row{ID: rowPoll + gets, Title: "live reads for each poll", Digits: 2},
		table.Row{ID: rowRateOne, Title: fmt.Sprintf("objects per second, %d at once, 1 worker", s.burst), Unit: "/s", Digits: 1, Relative: true, More: true,
			Limit: fmt.Sprintf("1 / (calls x %s)", s.latency)},
		table.Row{ID: rowRateTen, Title: fmt.Sprintf("objects per second, %d at once, 10 workers", s.objects), Unit: "/s", Digits: 1, Relative: true, More: true,
			Limit: fmt.Sprintf("10 / (calls x %s)", s.latency)},
		table.Row{ID: rowBound, Title: "the same / what the calls leave possible", Digits: 2, More: true, Limit: "1"},
		table.Row{ID: rowCPUCreate, Title: "CPU of the operator per object created, 1 worker", Unit: "ms", Digits: 2, Relative: true,
			Limit: "the encoding and decoding of the requests and calls above."},
		table.Row{ID: rowAllocated, Title: "allocated by the operator per object created, 1 worker", Unit: "kB", Digits: 0, Relative: true,
			Limit: "what these take."},
		table.Row{ID: rowRestartCPU, Title: fmt.Sprintf("CPU per object of an operator that starts with %d", s.objects), Unit: "ms", Digits: 2, Relative: true,
			Limit: "the list of the objects, and one call for each."},
		table.Row{ID: rowPollCPU, Title: "CPU per poll", Unit: "us", Digits: 0, Relative: true, Limit: "one call."},
		table.Row{ID: rowPollAllocated, Title: "allocated per poll", Unit: "kB", Digits: 1, Relative: true, Limit: "what one call takes."},
		table.Row{ID: rowPollHerd, Title: "polls in a tenth of an interval, most / even", Digits: 2, Limit: "1"},
		table.Row{ID: rowHeap, Title: fmt.Sprintf("heap per converged object, of %d", s.objects), Unit: "kB", Digits: 1, Relative: true,
			Limit: "the Widget and its Secret in the cache."},
	)
}
