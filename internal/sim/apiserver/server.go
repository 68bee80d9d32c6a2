// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Options are the options of [New]. The zero value is usable.
type Options struct {
	// Now is the server's clock. If it is nil, the server uses time.Now.
	Now func() time.Time

	// Seed determines UIDs and generated names: equal seeds and equal requests give equal objects.
	Seed uint64

	// History is how many changes the server remembers at least. Watches and lists that begin before
	// them are answered with 410 Gone, as after the compaction of etcd. If it is 0, the server forgets
	// nothing, which is for tests.
	History int

	// Authorizer decides which requests are allowed, among those with a [Request].User. It also
	// answers SubjectAccessReviews and, if it is an authorizer.RuleResolver,
	// SelfSubjectRulesReviews. If it is nil, everything is allowed. Package rbac has one.
	Authorizer authorizer.UnconditionalAuthorizer

	// Refused, if set, is called for each request that the Authorizer does not allow. The server is
	// locked during the call: Refused must not call its methods.
	Refused func(authorizer.Attributes)

	// Admission decides about writes, in addition to what the server checks itself. It may be nil.
	Admission Admission
}

// Server is a Kubernetes API server in memory. Its methods may be called concurrently. It starts no
// goroutines.
type Server struct {
	mu          sync.Mutex // guards what follows
	catalog     *catalog
	store       *store
	minter      *minter
	registry    *registry
	controllers *controllers
	authorizer  authorizer.UnconditionalAuthorizer
	deferred    []deferred // definitions that no request has asked for
}

// New returns a server with what every cluster has: four namespaces, and the Service through which
// Pods reach the server.
func New(o Options) *Server {
	s := newEmpty(o)
	begin(s)
	return s
}

func newEmpty(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		catalog:    builtinCatalog(),
		store:      &store{tables: map[schema.GroupResource]*table{}, revision: 1, limit: o.History},
		minter:     &minter{seed: o.Seed, minted: map[string]int{}},
		authorizer: o.Authorizer,
	}
	s.registry = &registry{store: s.store, catalog: s.catalog, minter: s.minter, now: o.Now, authorizer: o.Authorizer, refused: o.Refused, admission: o.Admission}
	s.controllers = &controllers{registry: s.registry, store: s.store, catalog: s.catalog, absent: map[types.UID]bool{}}
	s.store.onCommit = s.controllers.queueFor
	return s
}

// Install creates CustomResourceDefinitions. Their kinds are served when Install returns, whereas a
// real server takes a moment.
func (s *Server) Install(definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, d := range definitions {
		d = d.DeepCopy()
		d.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		body, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("encoding definition %q: %w", d.Name, err)
		}
		request, err := NewRequest(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", body)
		if err != nil {
			return err
		}
		request.Actor, request.UserAgent = "user", "user"
		if response := s.Serve(request); response.Code >= 300 {
			return fmt.Errorf("definition %q: %w", d.Name, statusError(response))
		}
	}
	return nil
}

func statusError(r *Response) error {
	status := metav1.Status{}
	if err := json.Unmarshal(r.Body, &status); err != nil {
		return fmt.Errorf("%d: %s", r.Code, r.Body)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// A Change is a committed write.
type Change struct {
	ResourceVersion uint64
	Type            string // ADDED, MODIFIED or DELETED
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	Old, New        map[string]any // read-only; Old is nil if Type is ADDED, New if it is DELETED
	Actor           string         // of the request
	Verb            string         // of the request
	Subresource     string         // of the request
}

// OnChange sets the function that is called for each change, in the order of resource versions. The
// server is locked during the call: f must not call its methods. There is one such function; a
// later call of OnChange replaces it.
func (s *Server) OnChange(f func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.onChange = f
}

// An Object is an object in the server. Content is read-only.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Content         map[string]any
}

// Objects returns all objects, ordered by resource, namespace and name. See
// [Server.InstallPrepared] for those that it leaves out.
func (s *Server) Objects() []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Object
	for _, t := range s.store.sortedTables() {
		for _, v := range t.sorted("") {
			list = append(list, Object{Resource: t.kind.gvr, Namespace: v.namespace, Name: v.name, Content: v.content})
		}
	}
	return list
}

// ResourceFor returns the resource of a kind, and whether its objects are namespaced.
func (s *Server) ResourceFor(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.catalog.byKind(gvk); ok {
		return k.gvr, k.namespaced, nil
	}
	return schema.GroupVersionResource{}, false, fmt.Errorf("the server has no kind %s: install its definition first", gvk)
}

// Defines reports whether a CustomResourceDefinition defines a resource.
func (s *Server) Defines(resource schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.catalog.kind(resource)
	return ok && k.definition != nil
}

// Remove removes an object although it has finalizers. In the real server, a race can have that
// effect: a deletion and the write that adds the finalizer arrive at the same instant. It reports
// whether the object existed.
func (s *Server) Remove(actor string, resource schema.GroupVersionResource, namespace, name string) bool {
	s.mu.Lock()
	defer s.unlock()
	k, ok := s.catalog.kind(resource)
	if !ok {
		return false
	}
	v := s.store.table(k).objects[key{namespace, name}]
	if v == nil {
		return false
	}
	s.store.remove(&writeContext{request: &Request{Actor: actor, Verb: "delete", Resource: resource}, kind: k}, v)
	return true
}

// expire makes the server forget all history before a resource version: it answers lists and
// watches from there with 410 Gone, as the real server does after etcd compacted its history.
func (s *Server) expire(resourceVersion uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.expired = max(s.store.expired, resourceVersion)
}

// unlock unlocks the server and then calls the functions that were deferred until then.
func (s *Server) unlock() {
	after := s.store.after
	s.store.after = nil
	s.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// Serve answers a request. Watches are refused: call [Server.Watch].
func (s *Server) Serve(r *Request) *Response {
	s.mu.Lock()
	defer s.unlock()
	if failure := s.authorize(r); failure != nil {
		return failure.response()
	}
	if r.Verb == "" {
		return s.catalog.serveDiscovery(r)
	}
	k, failure := s.kindFor(r)
	if failure != nil {
		return failure.response()
	}
	if failure := s.checkRequest(k, r); failure != nil {
		return failure.response()
	}
	return k.withTable(r, s.answer(k, r))
}

// answer answers a request that passed all checks which do not depend on objects.
func (s *Server) answer(k *kind, r *Request) *Response {
	if k.review {
		return reviewer{s.registry}.review(k, r)
	}
	switch r.Verb {
	case "get":
		return s.get(k, r)
	case "list":
		return s.list(k, r)
	case "create":
		if k.isPodAction(r.Subresource) {
			return podActions{s.registry}.create(k, r)
		}
		if k.isToken(r.Subresource) {
			return tokens{s.registry}.create(k, r)
		}
		return s.registry.create(k, r)
	case "update":
		return s.registry.update(k, r)
	case "patch":
		return s.registry.patch(k, r)
	case "delete":
		return s.registry.delete(k, r)
	case "deletecollection":
		return s.registry.deleteCollection(k, r)
	case "watch":
		return notImplemented("Serve does not answer watches: call Watch").response()
	}
	return fail(apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Method)).response()
}

// kindFor returns the kind that a request is about, or the failure with which the real server
// answers a request that no resource serves.
func (s *Server) kindFor(r *Request) (*kind, *failure) {
	k, ok := s.catalog.kind(r.Resource)
	if !ok {
		return nil, notFoundPath()
	}
	if k.namespaced && r.Namespace == "" && r.Verb != "list" && r.Verb != "watch" {
		return nil, notFoundPath()
	}
	if !k.namespaced && r.Namespace != "" {
		return nil, notFoundPath()
	}
	if err := s.load(k); err != nil {
		return nil, fail(apierrors.NewInternalError(err))
	}
	return k, k.serves(r)
}

// load makes what [Server.InstallPrepared] has deferred, as far as requests for a kind need it.
func (s *Server) load(k *kind) error {
	switch {
	case k.definition != nil:
		return k.definition.Compile()
	case k.storage == definitionsStorage:
		return storeDefinitions(s, k)
	}
	return nil
}
