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

// serverClusterIP is the address of the Service kubernetes: the first one of the range.
const serverClusterIP = clusterNet + "0.1"

// A beginning is an object that every cluster has.
type beginning struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	content   map[string]any
}

// begin stores what every cluster has. The Service kubernetes is as old as the server, and no change:
// it does not count in resource versions. As with a real server that listens on the loopback
// interface, it has no Endpoints.
func begin(s *Server) {
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
		createFirst(s, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
	}
	createFirst(s, "/api/v1/namespaces/default/services", map[string]any{
		"metadata": map[string]any{"name": "kubernetes", "labels": map[string]any{"component": "apiserver", "provider": "kubernetes"}},
		"spec": map[string]any{
			"clusterIP": serverClusterIP, "ipFamilyPolicy": "SingleStack",
			"ports": []any{map[string]any{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}},
		},
	})
	for _, o := range s.Objects() {
		beginnings = append(beginnings, beginning{o.Resource, o.Namespace, o.Name, o.Content})
	}
}

// createFirst creates an object that belongs to every cluster, on behalf of the server itself.
func createFirst(s *Server, path string, content map[string]any) {
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
