// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/sim/apiserver/internal/crd"
)

// Prepared are CustomResourceDefinitions for many servers: what decoding, checking and compiling
// them results in is made once, for the first server, and the others share it. A Prepared may be
// used concurrently.
type Prepared struct {
	definitions []*preparedDefinition
	answers     sync.Map // to discovery, of servers that have these definitions only
}

type preparedDefinition struct {
	source *apiextensionsv1.CustomResourceDefinition

	mu       sync.Mutex // guards what follows
	compiled *crd.Definition
	content  map[string]any // as the first server has stored it
}

// Prepare returns definitions for [Server.InstallPrepared]. They must not be modified any more.
func Prepare(definitions ...*apiextensionsv1.CustomResourceDefinition) *Prepared {
	p := &Prepared{}
	for _, d := range definitions {
		p.definitions = append(p.definitions, &preparedDefinition{source: d})
	}
	return p
}

// InstallPrepared does what [Server.Install] does, for definitions that other servers have, too.
func (s *Server) InstallPrepared(p *Prepared) error {
	for _, d := range p.definitions {
		if err := s.installPrepared(d); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := 0
	for _, d := range p.definitions {
		for _, k := range kindsOf(d.compiled) {
			if s.catalog.own[k.gvr] == k {
				kinds++
			}
		}
	}
	if kinds == len(s.catalog.own) {
		s.catalog.answers = &p.answers
	}
	return nil
}

func (s *Server) installPrepared(d *preparedDefinition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.content != nil && s.adopt(d) {
		return nil
	}
	if err := s.Install(d.source); err != nil {
		return err
	}
	compiled, errs := crd.Compile(d.source)
	if len(errs) > 0 {
		return fmt.Errorf("definition %q: %w", d.source.Name, errs.ToAggregate())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.compiled, d.content = compiled, s.store.tables[definitionsStorage].objects[key{name: d.source.Name}].content
	return nil
}

// adopt stores a definition as another server has stored it. It reports false if there is one of
// that name already: the server has to decide about it as about any other request.
func (s *Server) adopt(d *preparedDefinition) bool {
	s.mu.Lock()
	defer s.unlock()
	gvr := definitionsStorage.WithVersion("v1")
	k, ok := s.catalog.kind(gvr)
	if !ok || s.store.table(k).objects[key{name: d.source.Name}] != nil {
		return false
	}
	r := &Request{Method: http.MethodPost, Actor: "user", UserAgent: "user", Verb: "create", Resource: gvr}
	content := s.registry.renew(k, d.source.Name, d.content)
	s.catalog.serve(d.compiled)
	s.store.put(&writeContext{request: r, kind: k}, nil, content)
	return true
}

// renew returns an object without a namespace that another server has created, as this one would
// have created it: it has another UID and other times. What does not differ is shared.
func (g *registry) renew(k *kind, name string, content map[string]any) map[string]any {
	now := g.now().UTC().Format("2006-01-02T15:04:05Z")
	withTime := func(list any, field string) any {
		entries, ok := list.([]any)
		if !ok {
			return list
		}
		renewed := make([]any, len(entries))
		for i, e := range entries {
			entry := shallow(e.(map[string]any))
			entry[field] = now
			renewed[i] = entry
		}
		return renewed
	}
	content = shallow(content)
	m := shallow(metadata(content))
	content["metadata"] = m
	m["uid"], m["creationTimestamp"] = string(g.minter.newUID(k, "", name)), now
	if managed, ok := m["managedFields"]; ok {
		m["managedFields"] = withTime(managed, "time")
	}
	if status, ok := content["status"].(map[string]any); ok && status["conditions"] != nil {
		status = shallow(status)
		status["conditions"] = withTime(status["conditions"], "lastTransitionTime")
		content["status"] = status
	}
	return content
}
