// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
	"time"
)

func TestFaultsAtReads(t *testing.T) {
	for plan, want := range map[string]string{
		"no fault": "200", "refuse read 1: 429": "429", "refuse read 1: 403": "403", "refuse read 1: 500": "500", "refuse read 1: timeout": "504",
		"panic at read 1": "panic",
	} {
		s := newStage(t, plan)
		equal(t, plan, want, show(s.Read(&Read{Actor: "operator", Request: request(t, "GET", "/api/v1/configmaps", "")})))
	}
}

// After a restart in the past the first list is an old one, and the watch after it stays behind.
func TestRestartInPast(t *testing.T) {
	s := newStage(t, "restart 1 events in the past of configmaps after write 1")
	list := func() bool {
		answer := s.Read(&Read{Actor: "operator", Request: request(t, "GET", "/api/v1/namespaces/default/configmaps", "")})
		return strings.Contains(string(answer.Response.Body), `"a":"2"`)
	}
	equal(t, "the past before the fault", false, s.StartsInPast("configmaps"))
	s.Write(&Write{Actor: "operator", Process: s, Turn: s, Request: request(t, "PATCH", "/api/v1/namespaces/default/configmaps/x", `{"data":{"a":"2"}}`)})
	equal(t, "the past", []bool{true, false}, []bool{s.StartsInPast("configmaps"), s.StartsInPast("secrets")})
	equal(t, "lists that show the write", []bool{false, true}, []bool{list(), list()})
	d, past := s.ComesFromPast("configmaps")
	equal(t, "the watch stays behind", true, past && d == 30*time.Second)
	_, past = s.ComesFromPast("configmaps")
	equal(t, "the next watch stays behind", false, past)
}
