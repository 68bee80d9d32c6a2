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

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// refusal is an answer of an API server that does not do what it was asked for.
type refusal struct {
	code   int32
	reason metav1.StatusReason

	// message is as real servers write it. {name} is the object, {verb} the verb, {resource} the
	// kind, and {where} the group and the namespace.
	message string
}

// refusals are the refusals that do not depend on the request, and can hold for any.
var refusals = map[string]refusal{
	"409": {409, metav1.StatusReasonConflict, "Operation cannot be fulfilled on {name}: the object has been modified; please apply your changes to the latest version and try again"},
	"429": {429, metav1.StatusReasonTooManyRequests, "Too many requests, please try again later."},
	"403": {403, metav1.StatusReasonForbidden, `{name} is forbidden: User "system:serviceaccount:system:operator" cannot {verb} resource "{resource}" in {where}`},
	"422": {422, metav1.StatusReasonInvalid, "{name} is invalid: spec: Invalid value: refused by the simulation"},
	"500": {500, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: leader changed"},

	"webhook": {403, metav1.StatusReasonForbidden, `admission webhook "sim.ctrlkit.dev" denied the request: refused by the simulation`},
	"timeout": {504, metav1.StatusReasonTimeout, "the server was unable to return a response in the time allotted, but may still be processing the request"},
}

// writeRefusals are those of a write that has not arrived at the storage: admission comes before.
// They take precedence over those of refusals.
var writeRefusals = map[string]refusal{
	"500": {
		500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "sim.ctrlkit.dev": failed to call webhook: ` +
			`Post "https://webhook.system.svc:443/validate?timeout=10s": dial tcp 10.96.0.17:443: connect: connection refused`,
	},
}

// creationRefusals are those of a creation. They take precedence over the others.
var creationRefusals = map[string]refusal{
	"403": {
		403, metav1.StatusReasonForbidden, "{name} is forbidden: exceeded quota: sim, requested: count/{kind}=1, used: count/{kind}=10, limited: count/{kind}=10",
	},
}

// conflictOfDeletion is the conflict of a deletion with a resource version as its precondition.
var conflictOfDeletion = refusal{
	409, metav1.StatusReasonConflict, "Operation cannot be fulfilled on {name}: the ResourceVersion in the precondition does not match the " +
		"ResourceVersion in record. The object might have been modified",
}

// refusalOf returns what a server answers to a write that it refuses.
func refusalOf(how string, r *apiserver.Request) refusal {
	known, ok := writeRefusals[how]
	if !ok {
		known = refusals[how]
	}
	if r.Verb == "delete" && how == "409" {
		known = conflictOfDeletion
	}
	if special, ok := creationRefusals[how]; ok && r.Verb == "create" {
		known = special
	}
	return known
}

// RefusalOfWrite is the answer of a server that refuses a write, which has not arrived at its storage.
func RefusalOfWrite(how string, r *apiserver.Request) *apiserver.Response {
	return refusalOf(how, r).answer(r)
}

// Refusal is the answer of a server that does not do what it was asked for, or has done it and says
// that it does not know: "429", "timeout" and so on.
func Refusal(how string, r *apiserver.Request) *apiserver.Response { return refusals[how].answer(r) }

// Gone is the event with which a server ends a watch that it can't continue: it has accepted the watch,
// so that there is no status code of HTTP left that could say it.
func Gone() apiserver.Event {
	status, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusGone,
		Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	})
	if err != nil {
		panic(err) // a struct of strings and numbers can be encoded
	}
	return apiserver.Event{Type: "ERROR", Object: status}
}

func (known refusal) answer(r *apiserver.Request) *apiserver.Response {
	resource := r.Resource.Resource
	object := resource // a creation whose name the server generates has none in the answer
	if name := strings.TrimSuffix(cluster.NameOf(r), "*"); name != "" {
		object = fmt.Sprintf("%s %q", r.Resource.GroupResource(), name)
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	where := fmt.Sprintf("API group %q at the cluster scope", r.Resource.Group)
	if r.Namespace != "" {
		where = fmt.Sprintf("API group %q in the namespace %q", r.Resource.Group, r.Namespace)
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: known.code, Reason: known.reason,
		Message: strings.NewReplacer(
			"{name}", object, "{verb}", r.Verb, "{resource}", resource, "{where}", where, "{kind}", r.Resource.GroupResource().String(),
		).Replace(known.message),
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
	return &Answer{Response: Refusal(how, r)}
}
