// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "net/http"

// A repeat is everything that decides what an update or a patch makes of a version of an object. One
// that has changed nothing changes nothing when it comes again, and needs no work then: an operator
// that polls makes the same no-op writes for hours of virtual time.
type repeat struct {
	kind                                  *kind
	verb, contentType, subresource, query string
	userAgent, body                       string
}

// mostRepeats is how many of them a version remembers.
const mostRepeats = 16

func (r *Request) repeat(k *kind) repeat {
	return repeat{k, r.Verb, r.ContentType, r.Subresource, r.Query.Encode(), r.UserAgent, string(r.Body)}
}

// repeated answers a write that has changed nothing before; nil if it may change something.
func (g *registry) repeated(w *writeContext, old *version) *Response {
	if old == nil || !old.repeats[w.request.repeat(w.kind)] || g.admission != nil {
		return nil
	}
	return w.respond(http.StatusOK, old)
}

// changed answers a write, and remembers one that has changed nothing.
func (w *writeContext) changed(old, v *version) *Response {
	if v == old && len(w.warnings) == 0 && !old.lacksDefaults && len(old.repeats) < mostRepeats {
		if old.repeats == nil {
			old.repeats = map[repeat]bool{}
		}
		old.repeats[w.request.repeat(w.kind)] = true
	}
	return w.respond(http.StatusOK, v)
}
