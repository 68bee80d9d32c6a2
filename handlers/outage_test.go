// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// outages are those of the connection to the API server: watches end, and what has happened
// meanwhile can't be watched any more, only listed.
type outages struct {
	mu      sync.Mutex           // for all below
	down    string               // the resource that can't be reached
	watches map[io.Closer]string // by their bodies: the paths
	expired map[string]bool      // paths whose next watch is too old
}

// config returns a configuration whose connections have the outages.
func (o *outages) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Transport = outageTransport{config.Transport, o}
	return config
}

// outage does something while there is no connection for a resource.
func (w *world) outage(resource string, do func()) {
	o := &w.outages
	o.mu.Lock()
	o.down, o.expired = resource, make(map[string]bool)
	for body, path := range o.watches {
		if strings.HasSuffix(path, "/"+resource) {
			o.expired[path] = true
			_ = body.Close()
			delete(o.watches, body)
		}
	}
	o.mu.Unlock()
	do()
	o.mu.Lock()
	o.down = ""
	o.mu.Unlock()
}

type outageTransport struct {
	http.RoundTripper
	outages *outages
}

// RoundTrip implements [http.RoundTripper].
func (t outageTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	o, query := t.outages, r.URL.Query()
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	o.mu.Lock()
	down, expired := o.down != "" && strings.HasSuffix(r.URL.Path, "/"+o.down), isWatch && query.Get("sendInitialEvents") == "" && o.expired[r.URL.Path]
	if expired {
		delete(o.expired, r.URL.Path)
	}
	o.mu.Unlock()
	switch {
	case down:
		return nil, errors.New("connection refused")
	case expired:
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
		return &http.Response{StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && isWatch {
		o.mu.Lock()
		if o.watches == nil {
			o.watches = make(map[io.Closer]string)
		}
		o.watches[answer.Body] = r.URL.Path
		o.mu.Unlock()
	}
	return answer, err
}
