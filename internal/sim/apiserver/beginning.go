// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverAddress and serverPort are where the server says that it listens. The address is one of
// those for documentation (RFC 5737): a server in memory has none that Endpoints may have.
const (
	serverAddress = "192.0.2.1"
	serverPort    = 6443
)

// serverClusterIP is the address of the Service kubernetes: the first one of the range.
const serverClusterIP = clusterNet + "0.1"

// A beginning is an object that every cluster has.
type beginning struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	content   map[string]any
}

// begin stores what every cluster has. The Service kubernetes and what belongs to it are as old as
// the server, and no change: they do not count in resource versions.
func (s *Server) begin() {
	r := &Request{Method: http.MethodPost, Actor: "server", UserAgent: "kube-apiserver", Verb: "create"}
	beginOnce.Do(makeBeginnings)
	for _, b := range beginnings {
		k, _ := s.catalog.kind(b.resource)
		content := s.registry.renew(k, b.name, b.content, s.registry.now())
		if b.namespace == "" {
			r.Resource = b.resource
			s.store.put(&writeContext{request: r, kind: k}, nil, content)
			continue
		}
		setResourceVersion(content, 1)
		v := &version{namespace: b.namespace, name: b.name, revision: 1, content: content}
		v.uid = v.unstructured().GetUID()
		s.store.table(k).objects[key{b.namespace, b.name}] = v
	}
}

var (
	beginOnce sync.Once // guards beginnings
	// beginnings are what a server has stored that has created all of it. Tests make many servers, so
	// that all share them.
	beginnings []beginning
)

func makeBeginnings() {
	s := newEmpty(Options{})
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		s.must("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
	}
	port := func(number int) map[string]any {
		return map[string]any{"name": "https", "port": number, "protocol": "TCP"}
	}
	metadata := func(labels map[string]any) map[string]any {
		return map[string]any{"name": "kubernetes", "labels": labels}
	}
	service := port(443)
	service["targetPort"] = serverPort
	s.must("/api/v1/namespaces/default/services", map[string]any{
		"metadata": metadata(map[string]any{"component": "apiserver", "provider": "kubernetes"}),
		"spec":     map[string]any{"clusterIP": serverClusterIP, "ports": []any{service}},
	})
	s.must("/api/v1/namespaces/default/endpoints", map[string]any{
		"metadata": metadata(map[string]any{"endpointslice.kubernetes.io/skip-mirror": "true"}),
		"subsets":  []any{map[string]any{"addresses": []any{map[string]any{"ip": serverAddress}}, "ports": []any{port(serverPort)}}},
	})
	s.must("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", map[string]any{
		"metadata": metadata(map[string]any{"kubernetes.io/service-name": "kubernetes"}), "addressType": "IPv4",
		"endpoints": []any{map[string]any{"addresses": []any{serverAddress}, "conditions": map[string]any{"ready": true}}}, "ports": []any{port(serverPort)},
	})
	for _, o := range s.Objects() {
		beginnings = append(beginnings, beginning{o.Resource, o.Namespace, o.Name, o.Content})
	}
}

// must creates an object that belongs to every cluster, on behalf of the server itself.
func (s *Server) must(path string, content map[string]any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	request, err := NewRequest(http.MethodPost, path, "application/json", body)
	if err != nil {
		panic(err)
	}
	request.UserAgent, request.Actor = "kube-apiserver", "server"
	if response := s.Serve(request); response.Code >= 300 {
		panic(fmt.Sprintf("creating %s: %s", path, response.Body))
	}
}
