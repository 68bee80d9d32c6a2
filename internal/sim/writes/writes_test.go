// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

var noNames = strings.NewReplacer()

func request(t *testing.T, method, path, body string) *apiserver.Request {
	t.Helper()
	contentType := "application/json"
	if method == "PATCH" {
		contentType = "application/merge-patch+json"
	}
	r, err := apiserver.NewRequest(method, path, contentType, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Actor = "operator"
	return r
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// send lets a server answer a request of the operator, as the gateway does.
func send(l *Log, server *apiserver.Server, r *apiserver.Request) {
	l.Sent(r)
	l.Arrive(r)
	l.BeginWrite(r)
	l.End(server.Serve(r).Code)
}

func newLog(t *testing.T) (*Log, *apiserver.Server) {
	t.Helper()
	l, server := New(), apiserver.New(apiserver.Options{})
	server.OnChange(l.Changed)
	return l, server
}

// What differs at the end is traced back to the write that made the difference.
func TestDifferencesAreTracedToTheirWrites(t *testing.T) {
	l, server := newLog(t)
	x := configMaps + "/x"
	send(l, server, request(t, "POST", configMaps, `{"metadata":{"name":"x"},"data":{"a":"1","b":"1"}}`)) // write 1
	send(l, server, request(t, "PATCH", x, `{"data":{"a":"2"}}`))
	send(l, server, request(t, "PATCH", x, `{"data":{"b":"2"}}`))
	l.Checkpoint()
	send(l, server, request(t, "PATCH", x, `{"data":{"a":"3"}}`)) // write 4
	send(l, server, request(t, "DELETE", x, ""))
	send(l, server, request(t, "DELETE", x, ""))
	send(l, server, request(t, "POST", configMaps, `{"metadata":{"name":"y"}}`)) // write 7

	of := func(checkpoint int, d oracle.Difference) oracle.Violation {
		return oracle.Violation{Oracle: oracle.SameEnd, Checkpoint: checkpoint, Differences: []oracle.Difference{d}}
	}
	a := oracle.Difference{Thing: "configmaps default/x", Path: ".data.a", Want: "1", Got: "2"}
	tests := []struct {
		violation oracle.Violation
		want      string
	}{
		{of(1, a), "write 2: patch configmaps default/x -> 200 [~ data.a: 1 -> 2]"},
		{of(2, a), "write 4: patch configmaps default/x -> 200 [~ data.a: 2 -> 3]"},
		{of(0, oracle.Difference{Thing: "configmaps default/x", Want: "there"}), "write 5: delete configmaps default/x -> 200 []"},
		{of(1, oracle.Difference{Thing: "configmaps default/x", Got: "there"}), "write 1: create configmaps default/x -> 201 [+ data.a: 1 + data.b: 1]"},
		{of(0, oracle.Difference{Thing: "configmaps default/y #2", Got: "there"}), "write 7: create configmaps default/y -> 201 []"},
		{of(0, oracle.Difference{Thing: "configmaps default/z", Want: "there"}), "none"},
	}
	for _, tt := range tests {
		if got := textOf(l.Evidence([]oracle.Violation{tt.violation}, noNames)[0]); got != tt.want {
			t.Errorf("%v: got  %s\nwant %s", tt.violation.Differences, got, tt.want)
		}
	}
}

func textOf(w *report.Write) string {
	if w == nil {
		return "none"
	}
	answer := ""
	if w.Answer != "" {
		answer = " -> " + w.Answer
	}
	return fmt.Sprintf("%s: %s%s %v", w.What, w.Request, answer, w.Changes)
}

// A violation that is noticed during a write is about that write. Writes that faults put back are
// counted once, and one that never arrives at the server is counted, too.
func TestTheWriteOfAViolation(t *testing.T) {
	l, server := newLog(t)
	refused := request(t, "POST", configMaps, `{"metadata":{"name":"w"}}`)
	l.Sent(refused)
	l.Arrive(refused)
	r := request(t, "POST", configMaps, `{"metadata":{"name":"x"}}`)
	l.Sent(r)
	l.Arrive(r)()
	l.Arrive(r)
	l.BeginWrite(r)
	l.Noticed()
	l.End(server.Serve(r).Code)
	l.Noticed() // outside of a write
	get := request(t, "GET", configMaps+"/x", "")
	l.Sent(get)
	if len(l.origins) != 2 {
		t.Errorf("the stacks of %d requests are recorded, want those of the writes", len(l.origins))
	}
	got := l.Evidence([]oracle.Violation{{Oracle: oracle.ForeignUntouched}, {Oracle: oracle.SaysWhy}, {Oracle: oracle.NoPanic}}, noNames)
	if text := textOf(got[0]); text != "write 2: create configmaps default/x -> 201 []" || got[1] != nil || got[2] != nil {
		t.Errorf("got %s, %v, %v", text, got[1], got[2])
	}
	if site := got[0].Site(); !strings.HasPrefix(site, "internal/sim/writes/writes_test.go:") {
		t.Errorf("the write comes from %q", site)
	}
}

// A leak is traced to the creation outside, a loop to what it repeats.
func TestCallsAndLoops(t *testing.T) {
	l, server := newLog(t)
	call := func(verb string) {
		c := external.Call{System: "buckets", Verb: verb, Mutates: true, Origin: &external.Origin{Actor: "operator-2", Stack: Stack(0)}}
		l.ArriveCall(c)
		l.BeginCall(c)
		l.End(0)
	}
	call("create")
	call("delete")
	l.ArriveCall(external.Call{System: "buckets", Verb: "get"})()
	for i := range 30 {
		send(l, server, request(t, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"x%d"}}`, i)))
		send(l, server, request(t, "PATCH", configMaps+"/x0", `{"data":{"a":"1"}}`))
	}
	got := l.Evidence([]oracle.Violation{
		{Oracle: oracle.NoLeak, Text: "x is gone, its external resource b of buckets is not"},
		{Oracle: oracle.BoundedRequests},
		{Oracle: oracle.SameEnd, Differences: []oracle.Difference{{Thing: "external buckets b", Want: "there"}}},
		{Oracle: oracle.SameEnd, Differences: []oracle.Difference{{Thing: "external queues q", Want: "there"}}},
		{Oracle: oracle.NoLeak, Text: "x is gone, its external resource q of queues is not"},
	}, noNames)
	want := []string{"call 1: buckets create []", "write 60: patch configmaps default/x0 -> 200 [(no change)]", "call 2: buckets delete []", "none", "none"}
	for i, w := range got {
		if text := textOf(w); text != want[i] {
			t.Errorf("%d: got %s, want %s", i, text, want[i])
		}
	}
	if got[0].Actor != "operator-2" || got[0].Site() == "" {
		t.Errorf("got %+v", got[0])
	}
}

// The content of a write is short, and has neither the data of a Secret nor what the server sets.
func TestChanges(t *testing.T) {
	l, server := newLog(t)
	secrets := "/api/v1/namespaces/default/secrets"
	many := ""
	for i := range 40 {
		many += fmt.Sprintf(`,"k%02d":"v"`, i)
	}
	for _, r := range []*apiserver.Request{
		request(t, "POST", secrets, `{"metadata":{"name":"s","labels":{"a":"b"},"annotations":{"last":"c2VjcmV0"}},"type":"Opaque","data":{"p":"c2VjcmV0"},"stringData":{"q":"secret"}}`),
		request(t, "PATCH", secrets+"/s", `{"data":{"p":"b3RoZXI="}}`),
		request(t, "POST", configMaps, `{"metadata":{"name":"m","creationTimestamp":null,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}]},"data":{"long":"`+strings.Repeat("x", 200)+`"`+many+`}}`),
		request(t, "POST", configMaps, `{`),
	} {
		send(l, server, r)
	}
	var got [][]string
	for _, w := range l.list {
		got = append(got, w.lines(noNames))
	}
	want := [][]string{
		{"+ data.p: <hidden>", "+ metadata.annotations.last: <hidden>", "+ metadata.labels.a: b", "+ stringData.q: <hidden>", "+ type: Opaque"},
		{"~ data.p: <hidden> -> <hidden>"},
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Error(diff)
	}
	if n := len(got[2]); n != maxLines+1 || got[2][n-1] != "... 26 more fields" || got[3] != nil {
		t.Errorf("got %q and %q", got[2], got[3])
	}
	if got := short(strings.Repeat("x", 200)); len(got) != maxValue || !strings.HasSuffix(got, "x...") {
		t.Errorf("got %q", got)
	}
}
