// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/bench/requests"
)

// The operator of the tests: this program, when it is started with the flags of an operator.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "-kubeconfig" {
		os.Exit(m.Run())
	}
	settings, err := ParseFlags()
	if err != nil || settings.Operator == "broken" {
		os.Stderr.WriteString("it is broken\n")
		os.Exit(1)
	}
	asked := 0
	if err := Serve(os.Stdin, os.Stdout, requests.NewTransport(), func() (all, errors int) {
		if asked++; settings.Operator == "ends" {
			return min(asked, settings.Workers), 0
		}
		return asked * settings.Workers, asked
	}); err != nil {
		os.Exit(1)
	}
}

func TestProcess(t *testing.T) {
	p, err := Start(t.Context(), os.Args[0], Settings{Operator: "counts", Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Stats()
	if err != nil || first.Reconciles != 3 || first.CPU <= 0 || first.Heap != 0 {
		t.Errorf("stats %+v, error %v", first, err)
	}
	second, err := p.Heap()
	if did := second.Sub(first); err != nil || did.Reconciles != 3 || did.Errors != 1 || did.CPU < 0 || did.Heap == 0 {
		t.Errorf("did %+v, error %v", did, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := p.Stats(); err == nil {
		t.Error("a process that has ended answers")
	}
}

func TestProcessThatDoesNotStart(t *testing.T) {
	_, err := Start(t.Context(), os.Args[0], Settings{Operator: "broken"})
	if err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("error %v, want what the process wrote", err)
	}
}

// An operator that reconciles without end is not idle, also when it sends no request.
func TestAwaitIdle(t *testing.T) {
	p, err := Start(t.Context(), os.Args[0], Settings{Operator: "counts", Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop() //nolint:errcheck // of a test
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.AwaitIdle(ctx, time.Millisecond); err == nil {
		t.Error("it counts as idle")
	}
}

// The last reconcile ends after the last request, of which there was none: the operator is quiet
// since then.
func TestQuietSinceTheLastReconcile(t *testing.T) {
	p, err := Start(t.Context(), os.Args[0], Settings{Operator: "ends", Workers: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop() //nolint:errcheck // of a test
	stats, err := p.AwaitIdle(t.Context(), poll)
	if err != nil || stats.Reconciles != 5 {
		t.Fatalf("stats %+v, error %v", stats, err)
	}
	if last, err := p.Stats(); err != nil || last.Quiet < stats.Quiet+3*poll {
		t.Errorf("quiet for %s by reconciles, for %s by requests, error %v", stats.Quiet, last.Quiet, err)
	}
}

func TestServeCounts(t *testing.T) {
	transport := requests.NewTransport()
	client := transport.Wrap(answers{})
	for _, r := range []struct{ method, path string }{
		{http.MethodPost, "/api/v1/namespaces/n/secrets"},
		{http.MethodGet, "/api/v1/namespaces/n/secrets/one"},
		{http.MethodGet, "/api/v1/namespaces/n/secrets"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, "https://server"+r.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.RoundTrip(request); err != nil {
			t.Fatal(err)
		} else if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := Serve(strings.NewReader("stats\n"), &out, transport, func() (all, errors int) { return 2, 1 }); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(&out)
	var ready, stats Stats
	if err := decoder.Decode(&ready); err != nil || ready != (Stats{}) {
		t.Errorf("first %+v, error %v", ready, err)
	}
	if err := decoder.Decode(&stats); err != nil || stats.Writes != 1 || stats.Gets != 1 || stats.Conflicts != 1 || stats.Reconciles != 2 || stats.Errors != 1 {
		t.Errorf("then %+v, error %v", stats, err)
	}
}

// answers is an API server that refuses everything.
type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusConflict, Body: io.NopCloser(strings.NewReader(""))}, nil
}
