// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each refusal is what client-go takes for the error of that name, and its message is that of a
// real server.
func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		code    int
		is      func(error) bool
		message string
	}{
		"409":     {409, apierrors.IsConflict, `Operation cannot be fulfilled on configmaps "x": the object has been modified`},
		"429":     {429, apierrors.IsTooManyRequests, "Too many requests"},
		"403":     {403, apierrors.IsForbidden, `configmaps "x" is forbidden: User "system:serviceaccount:system:operator" cannot patch resource "configmaps" in API group "" in the namespace "default"`},
		"422":     {422, apierrors.IsInvalid, `configmaps "x" is invalid: spec: Invalid value`},
		"500":     {500, apierrors.IsInternalError, "Internal error occurred: etcdserver: leader changed"},
		"webhook": {403, apierrors.IsForbidden, `admission webhook "sim.ctrlkit.dev" denied the request`},
		"timeout": {504, apierrors.IsTimeout, "may still be processing the request"},
	}
	for how := range refusals {
		test, ok := tests[how]
		if !ok {
			t.Errorf("the refusal %q has no test", how)
			continue
		}
		response := Refusal(how, request(t, "PATCH", "/api/v1/namespaces/default/configmaps/x", "{}"))
		var status metav1.Status
		if err := json.Unmarshal(response.Body, &status); err != nil {
			t.Fatal(err)
		}
		equal(t, how+": codes", []int{test.code, test.code}, []int{response.Code, int(status.Code)})
		equal(t, how+": details", "configmaps x", status.Details.Kind+" "+status.Details.Name)
		if err := (&apierrors.StatusError{ErrStatus: status}); !test.is(err) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: got the error %v with reason %s, want one with %q", how, err, status.Reason, test.message)
		}
		seconds, again := apierrors.SuggestsClientDelay(&apierrors.StatusError{ErrStatus: status})
		equal(t, how+": asks the client to wait", how == "429", again && seconds == 1 && response.Header.Get("Retry-After") == "1")
		equal(t, how+": content type", "application/json", response.Header.Get("Content-Type"))
	}
}
