// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/crd"
)

// EncodeBuiltin returns what servers know of the built-in kinds and takes long to make, for
// [DecodeBuiltin].
func EncodeBuiltin() ([]byte, error) { return builtin.EncodeSchemas() }

// DecodeBuiltin takes what another process of the same program has made. Call it before the first
// [New], which otherwise makes it.
func DecodeBuiltin(data []byte) error { return builtin.DecodeSchemas(data) }

// Prepared are CustomResourceDefinitions for many servers: what decoding, checking and compiling
// them results in is made once, when the first server needs it, and the others share it. A Prepared
// may be used concurrently.
type Prepared struct {
	definitions []*preparedDefinition
	answers     sync.Map // to discovery, of servers that have these definitions only
}

type preparedDefinition struct {
	source   *apiextensionsv1.CustomResourceDefinition
	outlined *crd.Definition

	once    sync.Once      // guards what follows
	content map[string]any // as a server has stored it
	err     error
}

// Prepare returns definitions for [Server.InstallPrepared]. They must not be modified any more.
func Prepare(definitions ...*apiextensionsv1.CustomResourceDefinition) *Prepared {
	p := &Prepared{}
	for _, d := range definitions {
		p.definitions = append(p.definitions, &preparedDefinition{source: d, outlined: crd.Outline(d)})
	}
	return p
}

// Check returns what a server has against the definitions, of which it checks those, too, that none
// has used yet.
func (p *Prepared) Check() error {
	for _, d := range p.definitions {
		if err := d.load(); err != nil {
			return err
		}
	}
	return nil
}

// load makes the object of a definition, by creating it in a server that is there for nothing else.
func (d *preparedDefinition) load() error {
	d.once.Do(func() {
		s := New(Options{})
		if d.err = s.Install(d.source); d.err == nil {
			d.content = s.store.tables[definitionsStorage].objects[key{name: d.source.Name}].content
		}
	})
	return d.err
}

// InstallPrepared does what [Server.Install] does, for definitions that other servers have, too,
// and defers what takes long: a definition is checked and compiled when a request for its kind is
// the first, of all servers, and such requests are answered with an internal error if it is wrong.
// Use [Prepared.Check] to know before. [Server.Objects] leaves the definitions out until a request
// for definitions comes.
func (s *Server) InstallPrepared(p *Prepared) error {
	for _, d := range p.definitions {
		if serveLater(s, d) {
			continue
		}
		if err := s.Install(d.source); err != nil { // it decides about the name that is taken
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := 0
	for _, d := range p.definitions {
		for _, k := range kindsOf(d.outlined) {
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

// A deferred is a definition that is served, and not stored until a request asks for definitions.
type deferred struct {
	*preparedDefinition
	revision uint64 // at which it is stored
	at       time.Time
}

// serveLater serves a definition, and keeps its place in the history. It reports false if there is
// one of that name already.
func serveLater(s *Server, d *preparedDefinition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.catalog.kind(definitionsStorage.WithVersion("v1"))
	if !ok || s.store.table(k).objects[key{name: d.source.Name}] != nil {
		return false
	}
	for _, other := range s.deferred {
		if other.source.Name == d.source.Name {
			storeDefinitions(s, k) //nolint:errcheck // Install says what is wrong
			return false
		}
	}
	s.store.revision++
	s.deferred = append(s.deferred, deferred{d, s.store.revision, s.registry.now()})
	s.catalog.serve(d.outlined)
	return true
}

// storeDefinitions stores the definitions that are deferred, as if that had happened when they were
// installed.
func storeDefinitions(s *Server, k *kind) error {
	for _, d := range s.deferred {
		if err := d.load(); err != nil {
			return err
		}
	}
	list := s.deferred
	s.deferred = nil
	t := s.store.table(k)
	for _, d := range list {
		v := &version{name: d.source.Name, revision: d.revision, content: s.registry.renew(k, d.source.Name, d.content, d.at)}
		v.uid = v.unstructured().GetUID()
		setResourceVersion(v.content, d.revision)
		t.objects[key{name: v.name}], t.order = v, nil
		s.store.insert(event{revision: d.revision, kind: k, new: v})
	}
	return nil
}

// insert adds a change to the history that comes before others in it.
func (s *store) insert(e event) {
	at, _ := slices.BinarySearchFunc(s.history, e.revision, func(other event, revision uint64) int { return cmp.Compare(other.revision, revision) })
	s.history = slices.Insert(s.history, at, e)
}

// renew returns an object that another server has created, as this one would
// have created it: it has another UID and other times. What does not differ is shared.
func (g *registry) renew(k *kind, name string, content map[string]any, at time.Time) map[string]any {
	now := at.UTC().Format("2006-01-02T15:04:05Z")
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
