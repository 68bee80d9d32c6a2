// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
	"time"
)

// A readCase is what a fault at a read does: what the process gets. The cluster is as before, and
// the same read of another process is answered.
type readCase struct{ plan, answer string }

var readCases = []readCase{
	{"no fault", "200"},
	{"refuse read 1: 429", "429"},
	{"refuse read 1: 403", "403"},
	{"refuse read 1: 500", "500"},
	{"refuse read 1: timeout", "504"},
	{"panic at read 1", "panic"},
}

func TestFaultsAtReads(t *testing.T) {
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/default/configmaps/x"} {
		for _, c := range readCases {
			s := newStage(t, c.plan)
			read := func(actor string) string {
				return show(s.Read(&Read{Actor: actor, Request: request(t, "GET", path, "")}))
			}
			equal(t, c.plan, c.answer, read("operator"))
			equal(t, c.plan+", the next read", "200", read("operator-2"))
			equal(t, c.plan+" fired", c.plan != "no fault", len(s.Fired()) == 1 && s.Fired()[0])
			equal(t, c.plan+" did", 0, len(s.did)+len(s.seen))
		}
	}
}

// After a restart in the past the first list of the kind is an old one, and the watch after it
// stays behind for half a minute. Other kinds and single objects are read as they are.
func TestRestartInPast(t *testing.T) {
	tests := map[string]string{ // what the first list shows
		"restart 1 events in the past of configmaps after write 2": `"a":"2"`,
		"restart 4 events in the past of configmaps after write 2": "none",
	}
	for plan, want := range tests {
		s := newStage(t, plan)
		read := func(path string) string {
			body := string(s.Read(&Read{Actor: "operator-2", Request: request(t, "GET", path, "")}).Response.Body)
			for _, shown := range []string{`"a":"1"`, `"a":"2"`, `"a":"3"`} {
				if strings.Contains(body, shown) {
					return shown
				}
			}
			return "none"
		}
		for _, body := range []string{`{"data":{"a":"2"}}`, `{"data":{"a":"3"}}`} {
			equal(t, "the past before the fault", false, s.StartsInPast("configmaps"))
			c := writeCase{body: body}
			c.write(t, s, "operator")
		}
		equal(t, "the past", []bool{true, false}, []bool{s.StartsInPast("configmaps"), s.StartsInPast("secrets")})
		_, past := s.ComesFromPast("configmaps")
		equal(t, "a watch before the list stays behind", false, past)
		const list = "/api/v1/namespaces/default/configmaps"
		equal(t, "an object", `"a":"3"`, read(list+"/x"))
		equal(t, "another kind", "none", read("/api/v1/namespaces/default/secrets"))
		equal(t, plan+": lists", []string{want, `"a":"3"`}, []string{read(list), read(list)})
		equal(t, "the past after the list", false, s.StartsInPast("configmaps"))
		_, past = s.ComesFromPast("secrets")
		equal(t, "a watch of another kind stays behind", false, past)
		d, past := s.ComesFromPast("configmaps")
		equal(t, "the watch stays behind", true, past && d == 30*time.Second)
		_, past = s.ComesFromPast("configmaps")
		equal(t, "the next watch stays behind", false, past)
	}
}
