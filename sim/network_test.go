// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// Real network use is refused at once, with the line that uses it, and does not end the process,
// however many runs there are. What uses a fake, or nothing, is not accused.
func TestNetworkIsRefused(t *testing.T) {
	for name, use := range map[string]func(context.Context, *operation) error{
		"a look-up": func(ctx context.Context, _ *operation) error {
			_, err := net.DefaultResolver.LookupHost(ctx, "buckets.example.com")
			return err
		},
		"a request": func(context.Context, *operation) error { return get("http://127.0.0.1:9/") },
		"own client": func(context.Context, *operation) error {
			return getWith(&http.Client{Transport: &http.Transport{}}, "http://buckets.example.com/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // what package net shares between look-ups was made for the first one
				violations, trace := violationsOf(t, deploymentWorkload(func(ctx context.Context, o *operation) error {
					_ = use(ctx, o) //nolint:errcheck // it is refused
					return nil
				}), "")
				if len(violations) != 1 || violations[0].Oracle != oracle.ScriptRuns || !strings.Contains(violations[0].Text, "sim/network_test.go:") {
					t.Fatalf("got %v, want the line that uses the network\n%s", violations, trace)
				}
			}
		})
	}
}

func TestNetworkIsLetThrough(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	w := deploymentWorkload(func(context.Context, *operation) error { return get(server.URL) })
	w.rules = newSettings([]Option{WithNetwork("the test has a server")}).rules
	if violations, trace := violationsOf(t, w, ""); len(violations) > 0 {
		t.Errorf("got %v\n%s", violations, trace)
	}
	if err := get(server.URL); err != nil {
		t.Errorf("outside of a run: %v", err)
	}
}

func get(url string) error { return getWith(http.DefaultClient, url) }

func getWith(c *http.Client, url string) error {
	response, err := c.Get(url)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
