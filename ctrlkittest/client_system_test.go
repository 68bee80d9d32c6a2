// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/external"
)

// A topic is the object of the tests: what it wants is in its data.
type topic = *corev1.ConfigMap

// canary is the password of each resource.
const canary = "hunter2-canary"

// longest is the longest name that the system accepts.
const longest = 48

// A system has resources in memory. Each operation takes two observations.
type system struct {
	mu       sync.Mutex // for all below
	n        int        // of ids
	all      map[string]*resource
	accepted int // the longest name
}

type resource struct {
	id, token, tag, owner, size string
	wanted                      string // by an update in progress
	busy                        int    // observations until the operation in progress is done
	deleting                    bool
}

// snapshot returns all resources, without how far operations are: that changes by time.
func (s *system) snapshot(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		r := s.all[id]
		lines = append(lines, fmt.Sprintf("%s owner=%s size=%s wanted=%s deleting=%v", id, r.owner, r.size, r.wanted, r.deleting))
	}
	return strings.Join(lines, "\n"), nil
}

// by returns the first resource for which is holds.
func (s *system) by(is func(r *resource) bool) *resource {
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		if is(s.all[id]) {
			return s.all[id]
		}
	}
	return nil
}

// A client is right, if no mistake replaces what it does.
type topicClient struct {
	*system
	seen *resource // by this client
	mistake
	closed *int
}

// A mistake replaces methods of a client. Those that are nil are right.
type mistake struct {
	observe func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error)
	create  func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error)
	update  func(c *topicClient, ctx context.Context, obj topic, id string) error
	delete  func(c *topicClient, ctx context.Context, obj topic, id string) error
	find    func(c *topicClient, ctx context.Context, obj topic, tag string) (string, error)
	late    func(c *topicClient, obj topic)
}

var (
	_ external.Finder[topic]          = (*topicClient)(nil)
	_ external.LateInitializer[topic] = (*topicClient)(nil)
)

func (c *topicClient) Close() error {
	*c.closed++
	return nil
}

func (c *topicClient) Observe(ctx context.Context, obj topic, id string) (external.Observation, error) {
	if c.mistake.observe != nil {
		return c.mistake.observe(c, ctx, obj, id)
	}
	return c.look(ctx, obj, id)
}

func (c *topicClient) look(ctx context.Context, obj topic, id string) (external.Observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return external.Observation{}, fmt.Errorf("GET /topics/%s: %w", id, ctx.Err())
	}
	r := c.all[id]
	if r == nil {
		return external.Observation{State: external.Absent}, nil
	}
	c.seen = r
	seen := external.Observation{State: external.UpToDate, Owner: r.owner, Connection: map[string][]byte{"password": []byte(canary)}}
	switch r.busy--; {
	case r.busy > 0 && r.deleting:
		return external.Observation{State: external.Deleting, Owner: r.owner}, nil
	case r.busy > 0 && r.size == "":
		return external.Observation{State: external.Creating, Owner: r.owner, Message: "half done"}, nil
	case r.busy > 0:
		return external.Observation{State: external.Updating, Owner: r.owner}, nil
	case r.deleting:
		delete(c.all, id)
		return external.Observation{State: external.Absent}, nil
	case r.wanted != "":
		r.size, r.wanted = r.wanted, ""
	}
	if r.size != obj.Data["size"] {
		seen.State, seen.Drift = external.Drifted, []string{"data.size"}
	}
	return seen, nil
}

func (c *topicClient) Create(ctx context.Context, obj topic, by external.Creation) (string, error) {
	if c.mistake.create != nil {
		return c.mistake.create(c, ctx, obj, by)
	}
	return c.put(ctx, obj, by)
}

var errInvalid = errors.New("422 invalid")

func (c *topicClient) put(ctx context.Context, obj topic, by external.Creation) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return "", fmt.Errorf("PUT /topics: %w", ctx.Err())
	}
	if obj.Data["size"] == "invalid" || len(by.Name) > c.accepted {
		return "", external.Refused(errInvalid)
	}
	old := c.by(func(r *resource) bool {
		return by.Name != "" && r.id == by.Name || by.Token != "" && r.token == by.Token
	})
	if old != nil {
		return old.id, nil
	}
	id := by.Name
	if id == "" {
		c.n++
		id = fmt.Sprintf("topic-%d", c.n)
	}
	c.all[id] = &resource{id: id, token: by.Token, tag: by.Tag, owner: external.OwnerOf(obj), wanted: obj.Data["size"], busy: 2}
	return id, nil
}

func (c *topicClient) Update(ctx context.Context, obj topic, id string) error {
	if c.mistake.update != nil {
		return c.mistake.update(c, ctx, obj, id)
	}
	return c.patch(ctx, obj, id)
}

func (c *topicClient) patch(ctx context.Context, obj topic, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.all[id].wanted, c.all[id].owner, c.all[id].busy = obj.Data["size"], external.OwnerOf(obj), 2
	return nil
}

func (c *topicClient) Delete(ctx context.Context, obj topic, id string) error {
	if c.mistake.delete != nil {
		return c.mistake.delete(c, ctx, obj, id)
	}
	return c.remove(ctx, id)
}

func (c *topicClient) remove(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r := c.all[id]; r != nil {
		r.deleting, r.busy = true, 2
	}
	return nil
}

func (c *topicClient) Find(ctx context.Context, obj topic, tag string) (string, error) {
	if c.mistake.find != nil {
		return c.mistake.find(c, ctx, obj, tag)
	}
	return c.search(ctx, tag)
}

func (c *topicClient) search(ctx context.Context, tag string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if r := c.by(func(r *resource) bool { return r.tag == tag }); r != nil {
		return r.id, nil
	}
	return "", nil
}

func (c *topicClient) LateInitialize(obj topic) {
	if c.mistake.late != nil {
		c.mistake.late(c, obj)
		return
	}
	if c.seen != nil && obj.Data["id"] == "" {
		obj.Data["id"] = c.seen.id
	}
}

// An identity is one class.
type identity struct {
	name     string
	identity external.Identity[topic]
}

var rules = external.NameRules{Prefix: "ours-", MaxLength: longest}

var identities = []identity{
	{"name", external.ByName(func(obj topic) (string, error) { return rules.NameOf(obj) })},
	{"token", external.ByToken[topic]()},
	{"tag", external.ByTag[topic](time.Second)},
	{"nothing", external.ByNothing[topic]()},
}

// configOf returns the configuration of clients with a mistake.
func configOf(i identity, m mistake) (ctrlkittest.ClientConfig[topic], *system) {
	s, objects := &system{all: map[string]*resource{}, accepted: longest}, 0
	config := ctrlkittest.ClientConfig[topic]{
		Identity: i.identity,
		Connect: func(context.Context, topic) (external.Client[topic], error) {
			return &topicClient{system: s, mistake: m, closed: new(int)}, nil
		},
		New: func() topic {
			objects++
			uid := types.UID(fmt.Sprintf("6f1c1e5e-1e64-4a8b-9d8f-%012d", objects))
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("topic-%d", objects), UID: uid},
				Data:       map[string]string{"size": "small"},
			}
		},
		StoresOwner: true,
		Drift:       func(obj topic) { obj.Data["size"] = "large" },
		Refuse:      func(obj topic) { obj.Data["size"] = "invalid" },
		Names:       rules,
		Snapshot:    s.snapshot,
		Canary:      canary,
	}
	return config, s
}
