// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

// refusals are the answers of an API server that does not do what it was asked for, as real ones
// give them.
var refusals = map[string]struct {
	code    int32
	reason  metav1.StatusReason
	message string // {name} is the object, {verb} the verb
}{
	"409": {409, metav1.StatusReasonConflict, "Operation cannot be fulfilled on {name}: the object has been modified; please apply your changes to the latest version and try again"},
	"429": {429, metav1.StatusReasonTooManyRequests, "Too many requests, please try again later."},
	"403": {403, metav1.StatusReasonForbidden, `{name} is forbidden: User "operator" cannot {verb} this resource`},
	"404": {404, metav1.StatusReasonNotFound, "{name} not found"},
	"422": {422, metav1.StatusReasonInvalid, "{name} is invalid: spec: Invalid value: refused by the simulation"},
	"500": {500, metav1.StatusReasonInternalError, "Internal error occurred: refused by the simulation"},

	"webhook": {403, metav1.StatusReasonForbidden, `admission webhook "sim.ctrlkit.dev" denied the request: refused by the simulation`},
	"timeout": {504, metav1.StatusReasonTimeout, "the server was unable to return a response in the time allotted, but may still be processing the request"},
}

// Refusal is the answer of a server that does not do what it was asked for: "409", "webhook",
// "timeout" and so on.
func Refusal(how string, r *apiserver.Request) *apiserver.Response {
	known := refusals[how]
	name := fmt.Sprintf("%s %q", r.Resource.Resource, r.Name)
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: known.code, Reason: known.reason,
		Message: strings.NewReplacer("{name}", name, "{verb}", r.Verb).Replace(known.message),
		Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Resource},
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status.Code == http.StatusTooManyRequests {
		status.Details.RetryAfterSeconds = 1
		header.Set("Retry-After", "1")
	}
	body, err := json.Marshal(status)
	if err != nil {
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return &apiserver.Response{Code: int(status.Code), Header: header, Body: body}
}

// lostAnswer is what a client sees of a write that has arrived.
func lostAnswer(how string, r *apiserver.Request) *Answer {
	if how == "reset" {
		return &Answer{Err: fmt.Errorf("read tcp: %w", syscall.ECONNRESET)}
	}
	return refused(how, r)
}
