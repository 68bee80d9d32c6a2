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

// What a write is refused with names what it asked for, and has a reason that can hold for its verb.
func TestRefusalsOfWrites(t *testing.T) {
	const configMaps, x, cluster = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/x", "/api/v1/namespaces/n"
	tests := []struct {
		how, method, path, body string
		want                    string
	}{
		{"403", "POST", configMaps, `{"metadata":{"name":"x"}}`, `configmaps "x" is forbidden: exceeded quota: sim, requested: count/configmaps=1, used: count/configmaps=10, limited: count/configmaps=10`},
		{"403", "POST", "/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"generateName":"x-"}}`, `deployments.apps "x-" is forbidden: exceeded quota: sim, requested: count/deployments.apps=1,`},
		{"403", "PUT", x + "/status", "{}", `cannot update resource "configmaps/status" in API group "" in the namespace "default"`},
		{"403", "DELETE", cluster, "", `namespaces "n" is forbidden: User "system:serviceaccount:system:operator" cannot delete resource "namespaces" in API group "" at the cluster scope`},
		{"403", "DELETE", configMaps, "", `configmaps is forbidden: User "system:serviceaccount:system:operator" cannot deletecollection resource "configmaps"`},
		{"409", "PUT", x, "{}", `Operation cannot be fulfilled on configmaps "x": the object has been modified`},
		{"409", "DELETE", x, "{}", `Operation cannot be fulfilled on configmaps "x": the ResourceVersion in the precondition does not match`},
		{"500", "PUT", x, "{}", `Internal error occurred: failed calling webhook "sim.ctrlkit.dev": failed to call webhook: Post "https://`},
		{"webhook", "PUT", x, "{}", `admission webhook "sim.ctrlkit.dev" denied the request`},
	}
	for _, test := range tests {
		var status metav1.Status
		answer := refused(test.how, request(t, test.method, test.path, test.body))
		if err := json.Unmarshal(answer.Response.Body, &status); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(status.Message, test.want) {
			t.Errorf("%s of %s %s: got %q, want %q", test.how, test.method, test.path, status.Message, test.want)
		}
	}
}

// What a client sees of a write that has arrived says nothing about the write.
func TestLostAnswers(t *testing.T) {
	for how, want := range map[string]string{"reset": "read tcp: connection reset by peer", "timeout": "504", "500": "500"} {
		equal(t, how, want, show(lostAnswer(how, request(t, "PATCH", "/api/v1/namespaces/default/configmaps/x", "{}"))))
	}
}
