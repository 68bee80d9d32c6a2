// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

// A store is an external system with silos, for tests of single reconciles.
type store struct {
	mu        sync.Mutex // for what methods change; tests look when none runs
	n         int
	all       map[string]*stored
	importing sync.Mutex // by catalogs, which import several at once
	calls     []string
	open      int // clients
	// fail returns what a method fails with; nil is right.
	fail func(method string) error
	// seen changes what Observe returns.
	seen func(o *external.Observation)
	// lag is how long a silo is not shown after its creation.
	lag time.Duration
	// ownerless has no owners stored, keepsOwner has them never changed.
	ownerless, keepsOwner bool
	// returns is what Create returns once, as the detail "secret"; empty is nothing.
	returns string
	// renews is what Update returns once, as the detail "secret".
	renews string
	// tokens are remembered for ever, with the ids of what they have created, if it is not nil.
	tokens map[string]string
}

// stored is one silo.
type stored struct {
	id, token, tag, owner, size string
	made                        time.Time
}

func (s *store) Connect(context.Context, *step.Request[*Silo]) (external.Client[*Silo], error) {
	if err := s.called("connect"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return storeClient{s}, nil
}

// called notes a call of a method, and returns what it fails with.
func (s *store) called(method string) error {
	s.mu.Lock()
	if method != "connect" {
		s.calls = append(s.calls, method)
	}
	s.mu.Unlock()
	if s.fail != nil {
		return s.fail(method)
	}
	return nil
}

// take returns the calls since it was called last: "observe create observe".
func (s *store) take() string {
	defer func() { s.calls = nil }()
	return strings.Join(s.calls, " ")
}

func (s *store) ids() []string { return slices.Sorted(maps.Keys(s.all)) }

// failing lets one method fail.
func failing(method string, err error) func(string) error {
	return func(called string) error {
		if called == method {
			return err
		}
		return nil
	}
}

type storeClient struct{ *store }

var (
	_ external.Finder[*Silo]          = storeClient{}
	_ external.LateInitializer[*Silo] = storeClient{}
	_ external.Releaser[*Silo]        = storeClient{}
)

func (c storeClient) Close() error {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	if c.fail != nil {
		return c.fail("close")
	}
	return nil
}

func (c storeClient) Release(_ context.Context, _ *Silo, id string) error {
	err := c.called("release")
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all[id].owner = ""
	}
	return err
}

func (c storeClient) Observe(_ context.Context, obj *Silo, id string) (external.Observation, error) {
	if err := c.called("observe"); err != nil {
		return external.Observation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o := external.Observation{State: external.Absent}
	if b := c.all[id]; b != nil && time.Since(b.made) >= c.lag {
		o = external.Observation{
			State: external.UpToDate, Owner: b.owner,
			Connection: map[string][]byte{"password": []byte(secretText), "address": []byte("store:9000/" + id)},
		}
		if b.size != obj.Spec.Size {
			o.State, o.Drift = external.Drifted, []string{"spec.size"}
		}
	}
	if c.seen != nil {
		c.seen(&o)
	}
	return o, nil
}

func (c storeClient) Create(ctx context.Context, obj *Silo, by external.Creation) (string, error) {
	if err := c.called("create"); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.ids() {
		if b := c.all[id]; id == by.Name || by.Token != "" && b.token == by.Token {
			return id, nil
		}
	}
	if id := c.tokens[by.Token]; id != "" {
		return id, nil
	}
	id := by.Name
	if id == "" {
		c.n++
		id = fmt.Sprintf("silo-%d", c.n)
	}
	if c.tokens != nil {
		c.tokens[by.Token] = id
	}
	if c.returns != "" {
		external.Keep(ctx, map[string][]byte{"secret": []byte(c.returns)})
	}
	c.all[id] = &stored{id: id, token: by.Token, tag: by.Tag, owner: c.ownerOf(obj), size: obj.Spec.Size, made: time.Now()}
	return id, nil
}

func (c storeClient) Update(ctx context.Context, obj *Silo, id string) error {
	if c.renews != "" {
		external.Keep(ctx, map[string][]byte{"secret": []byte(c.renews)})
	}
	if err := c.called("update"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[id].size = obj.Spec.Size
	if !c.keepsOwner {
		c.all[id].owner = c.ownerOf(obj)
	}
	return nil
}

// ownerOf returns what is stored as the owner.
func (s *store) ownerOf(obj *Silo) string {
	if s.ownerless {
		return ""
	}
	return external.OwnerOf(obj)
}

func (c storeClient) Delete(_ context.Context, _ *Silo, id string) error {
	if err := c.called("delete"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.all[id]; b != nil && time.Since(b.made) >= c.lag {
		delete(c.all, id)
	}
	return nil
}

func (c storeClient) Find(_ context.Context, _ *Silo, tag string) (string, error) {
	if err := c.called("find"); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.ids() {
		if b := c.all[id]; b.tag == tag && time.Since(b.made) >= c.lag {
			return id, nil
		}
	}
	return "", nil
}

func (c storeClient) LateInitialize(obj *Silo) {
	if obj.Spec.Region == "" {
		obj.Spec.Region = "north"
	}
}
