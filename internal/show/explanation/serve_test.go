// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

var created = journal.Started{Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Verb: "created", Times: 1}}}

func TestHandler(t *testing.T) {
	ring := journal.NewRing(journal.RingOptions{})
	for _, o := range []journal.Object{
		database,
		{Group: "other.io", Kind: "Database", Namespace: "shop", Name: "db"},
		{Group: "example.com", Kind: "Zone", Name: "eu"},
	} {
		ring.Observe(t.Context(), journal.Entry{Time: time.Unix(0, 0), Controller: strings.ToLower(o.Kind), Object: o, Event: created})
	}
	for _, test := range []struct {
		name, method, query string
		code                int
		want                string // a part of the answer
	}{
		{"an object", http.MethodGet, "group=example.com&kind=Database&namespace=shop&name=db", 200, `{"group":"example.com","kind":"Database","namespace":"shop","name":"db"},"controllers":[{"name":"database"`},
		{"without a namespace", http.MethodGet, "group=example.com&kind=Zone&name=eu", 200, `"kind":"Zone","name":"eu"`},
		{"without a group, the latest of that kind", http.MethodGet, "kind=Database&namespace=shop&name=db", 200, `"group":"other.io"`},
		{"unknown", http.MethodGet, "kind=Database&namespace=shop&name=web", 404, "nothing is known of Database shop/web: "},
		{"of another group", http.MethodGet, "group=core.io&kind=Database&namespace=shop&name=db", 404, "nothing is known of Database shop/db: "},
		{"of another namespace", http.MethodGet, "kind=Zone&namespace=shop&name=eu", 404, "nothing is known of Zone shop/eu: "},
		{"another method", http.MethodPost, "kind=Zone&name=eu", 405, "only GET is supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, ring, test.method, test.query)
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) {
				t.Errorf("%d %s\nwant %d %s", answer.Code, answer.Body, test.code, test.want)
			}
		})
	}
	if allow := ask(t, ring, http.MethodDelete, "").Header().Get("Allow"); allow != "GET" {
		t.Errorf("Allow: %q", allow)
	}
}

func TestHandlerListsWhatIsKnown(t *testing.T) {
	ring := journal.NewRing(journal.RingOptions{})
	if got := ask(t, ring, http.MethodGet, "").Body.String(); got != "[]\n" {
		t.Errorf("of nothing it says %s", got)
	}
	zone := journal.Object{Group: "example.com", Kind: "Zone", Name: "eu"}
	for _, o := range []journal.Object{database, zone} {
		ring.Observe(t.Context(), journal.Entry{Controller: "c", Object: o, Event: created})
	}
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"", []string{"eu", "db"}},
		{"kind=Database", []string{"db"}},
		{"group=example.com", []string{"eu", "db"}},
		{"group=", []string{}},
	} {
		answer := ask(t, ring, http.MethodGet, test.query)
		var objects []journal.Object
		if err := json.Unmarshal(answer.Body.Bytes(), &objects); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, o := range objects {
			names = append(names, o.Name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" || answer.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%q: %s%v", test.query, diff, answer.Header())
		}
	}
}

func ask(t *testing.T, ring *journal.Ring, method, query string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	explanation.Handler(ring).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, explanation.Path+"?"+query, nil))
	return answer
}

// A replica that is not the leader says so, and where it runs: that is how the leader is found.
func TestServeSaysWhetherItLeads(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	mgr := &electedManager{elected: make(chan struct{})}
	if err := explanation.Serve(mgr, journal.NewRing(journal.RingOptions{}), nil); err != nil {
		t.Fatal(err)
	}
	ask := func() *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, explanation.Path+"?kind=Zone&name=eu", nil))
		return answer
	}
	answer := ask()
	if want := "nothing is known of Zone eu: this process, on " + host + ", is not the leader, and reconciles nothing\n"; answer.Body.String() != want {
		t.Errorf("a follower says %q, want %q", answer.Body, want)
	}
	if h := answer.Header(); h.Get(explanation.LeaderHeader) != "false" || h.Get(explanation.HostHeader) != host {
		t.Errorf("headers of a follower: %v", h)
	}
	close(mgr.elected)
	answer = ask()
	if want := "the leader on " + host + ", has not reconciled it lately (does the object exist"; !strings.Contains(answer.Body.String(), want) || answer.Header().Get(explanation.LeaderHeader) != "true" {
		t.Errorf("the leader says %q, %v", answer.Body, answer.Header())
	}
}

// electedManager is as much of a manager as is needed to serve.
type electedManager struct {
	manager.Manager
	elected chan struct{}
	handler http.Handler
}

func (m *electedManager) Elected() <-chan struct{} { return m.elected }

func (m *electedManager) AddMetricsServerExtraHandler(_ string, handler http.Handler) error {
	m.handler = handler
	return nil
}
