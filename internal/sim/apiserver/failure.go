// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failure is an answer with a status of failure.
type failure struct {
	status metav1.Status
}

// fail returns the answer for an error of apimachinery.
func fail(err error) *failure {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return &failure{status.Status()}
	}
	return &failure{metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// notFoundPath is the answer of the real server for a path that it does not serve.
func notFoundPath() *failure {
	return &failure{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// notImplemented is the answer for what the real server does and this one does not. A wrong answer
// would let a test pass that must not; a 501 shows in it.
func notImplemented(what string) *failure {
	return &failure{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: "not simulated: " + what + "; docs/simulator-reference.md lists what the API server in memory does not do",
	}}
}

func (f *failure) response() *Response {
	f.status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(f.status)
	if err != nil {
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	r := &Response{Code: int(f.status.Code), Header: jsonHeader(), Body: append(body, '\n')}
	if f.status.Details != nil && f.status.Details.RetryAfterSeconds > 0 {
		r.Header.Set("Retry-After", "1")
	}
	return r
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func respond(code int, body []byte) *Response {
	return &Response{Code: code, Header: jsonHeader(), Body: body}
}
