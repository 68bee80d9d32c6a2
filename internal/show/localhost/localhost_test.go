// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package localhost

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// Of what comes over the loopback interface without TLS, names of this machine pass alone. Whatever
// comes from elsewhere, and all over TLS, passes.
func TestGuard(t *testing.T) {
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	filter, err := Filter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	filtered, err := filter(logr.Discard(), reached)
	if err != nil {
		t.Fatal(err)
	}
	const service = "shop-metrics.shop-system.svc:8080"
	for _, test := range []struct {
		from, host string
		tls, pass  bool
	}{
		{from: "127.0.0.1:50000", host: "localhost:8080", pass: true}, // also a forwarded port
		{from: "127.0.0.1:50000", host: "LocalHost", pass: true},
		{from: "127.0.0.1:50000", host: "127.0.0.1:8080", pass: true},
		{from: "127.0.0.1:50000", host: "127.8.9.10", pass: true},
		{from: "[::1]:50000", host: "[::1]:8080", pass: true},
		{from: "[::1]:50000", host: "[::1]", pass: true},
		{from: "[::ffff:127.0.0.1]:50000", host: "[::ffff:127.0.0.1]:8080", pass: true},
		{from: "127.0.0.1:50000", host: "evil.example.com"},
		{from: "127.0.0.1:50000", host: "evil.example.com:8080"},
		{from: "127.1.2.3:50000", host: "evil.example.com"},
		{from: "[::1]:50000", host: "evil.example.com"},
		{from: "[::ffff:127.0.0.1]:50000", host: "evil.example.com"},
		{from: "127.0.0.1:50000", host: "localhost.evil.example.com"},
		{from: "127.0.0.1:50000", host: "127.0.0.1.evil.example.com:8080"},
		{from: "127.0.0.1:50000", host: "evil.example.com:127.0.0.1"},
		{from: "127.0.0.1:50000", host: service},
		{from: "127.0.0.1:50000", host: "0.0.0.0:8080"},
		{from: "127.0.0.1:50000", host: "192.0.2.1"},
		{from: "127.0.0.1:50000", host: ""},
		{from: "10.0.0.7:50000", host: service, pass: true},
		{from: "[fd00::7]:50000", host: service, pass: true},
		{from: "10.0.0.7:50000", host: "10.0.0.8:8080", pass: true},
		{from: "@", host: service, pass: true}, // a Unix socket
		{from: "127.0.0.1:50000", host: service, tls: true, pass: true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = test.from, test.host
		if test.tls {
			r.TLS = &tls.ConnectionState{}
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})))
		for name, handler := range map[string]http.Handler{"Guard": Guard(reached), "Filter": filtered} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if pass := answer.Code == http.StatusNoContent; pass != test.pass {
				t.Errorf("%s: from %s for %q, TLS %t: %d", name, test.from, test.host, test.tls, answer.Code)
			}
			if !test.pass && (answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "ask for http://localhost:8080 instead")) {
				t.Errorf("%s: for %q: %d %s", name, test.host, answer.Code, answer.Body)
			}
		}
	}
}
