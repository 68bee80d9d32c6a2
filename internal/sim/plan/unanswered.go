// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/http"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// wrap notes the requests that the copy does not answer as a cluster would: those for what it does
// not simulate, such as commands in containers. What an operator does with such an answer says
// nothing of what it would do to the cluster. It also notes a Lease that can't be created.
func (p *planner) wrap(next memory.Handler) memory.Handler {
	return func(w http.ResponseWriter, r *http.Request, request *apiserver.Request) {
		answer := &answered{ResponseWriter: w}
		next(answer, r, request)
		if answer.code == http.StatusNotImplemented || answer.code == http.StatusNotFound {
			p.refused(request, answer.code)
		}
	}
}

// refused notes a request that was answered with 404 or 501.
func (p *planner) refused(request *apiserver.Request, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case code == http.StatusNotImplemented:
		what := request.Resource.GroupResource().String()
		if request.Subresource != "" {
			what = request.Subresource + " of " + what
		}
		p.unanswered[what]++
	case request.Verb == "create" && request.Resource.GroupResource() == trial.Leases.GroupResource():
		p.homeless = request.Namespace
	}
}

// answered is an answer whose code is remembered.
type answered struct {
	http.ResponseWriter
	code int
}

func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// notAnswered returns what the copy could not answer.
func (p *planner) notAnswered() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for what, n := range p.unanswered {
		out = append(out, fmt.Sprintf("what %s would have answered: the copy does not have it, and refused %s", what, count(n, "request")))
	}
	return out
}
