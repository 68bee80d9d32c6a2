// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package localhost keeps pages of other sites from reading what is served without TLS on the
// machine of a person who visits them. Such a page can't read answers of another origin, and so has
// the name of its own site lead to 127.0.0.1, which is known as DNS rebinding; only the header Host
// shows it.
package localhost

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Serve adds a handler to the metrics server of mgr, behind [Guard]. All that the framework serves
// there is added by it, because a metrics server need not have a filter. It also serves at the
// socket of [SocketVariable], if that is set.
func Serve(mgr manager.Manager, path string, handler http.Handler) error {
	if err := mgr.AddMetricsServerExtraHandler(path, Guard(handler)); err != nil {
		return err
	}
	return serveAtSocket(mgr, path, handler)
}

// Filter is a metricsserver.Options.FilterProvider that puts [Guard] before the metrics, too.
func Filter(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return Guard(handler), nil }, nil
}

// Guard refuses requests without TLS that come over the loopback interface and ask for another name
// than that of this machine. Requests from elsewhere pass under any name, such as that of a
// Service: a browser that could send them is not on this machine. So do those over TLS, for which a
// browser checks the name.
func Guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && isLoopback(r.RemoteAddr) && !isLocal(r.Host) {
			port := ""
			if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
				if _, p, err := net.SplitHostPort(local.String()); err == nil {
					port = ":" + p
				}
			}
			http.Error(w, fmt.Sprintf("this machine was asked for %q without TLS, as a page of another site would do: "+
				"ask for http://localhost%s instead, or serve TLS if a proxy on this machine passes names on", r.Host, port), http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isLocal reports whether a Host, with or without a port, is a name of this machine.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return strings.EqualFold(name, "localhost") || isLoopback(host)
}

// isLoopback reports whether an address, with or without a port, is one of the loopback interface.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
