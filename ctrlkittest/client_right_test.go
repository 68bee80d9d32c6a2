// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/external"
)

// A plain client has no optional ability.
type plain struct{ external.Client[topic] }

// A readsBack is a plain client that compares the password with the one which was published.
type readsBack struct {
	plain
	published map[types.UID]map[string][]byte
}

func (c readsBack) Create(ctx context.Context, obj topic, by external.Creation) (string, error) {
	external.Keep(ctx, map[string][]byte{"pin": []byte("returned once")})
	return c.plain.Create(ctx, obj, by)
}

func (c readsBack) Observe(ctx context.Context, obj topic, id string) (external.Observation, error) {
	seen, err := c.plain.Observe(ctx, obj, id)
	details := c.published[obj.UID]
	if details == nil || seen.State != external.UpToDate {
		return seen, err
	}
	if string(details["pin"]) != "returned once" || string(details["password"]) != canary && details["password"] != nil {
		seen.State, seen.Drift = external.Drifted, []string{"data.pin"}
	}
	return seen, err
}

// right are clients that do the same in other ways. None breaks a rule.
var right = []struct {
	name    string
	mistake mistake
	change  func(c *ctrlkittest.ClientConfig[topic])
}{
	{name: "create returns no id for a name", mistake: mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if by.Name != "" {
			id = ""
		}
		return id, err
	}}},
	{name: "at once", mistake: mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if err == nil {
			c.all[id].busy = 0
		}
		return id, err
	}}},
	{name: "create leaves the rest to update", mistake: mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if err == nil && c.all[id].size == "" {
			c.all[id].size, c.all[id].wanted, c.all[id].busy = "tiny", "", 0
		}
		return id, err
	}}},
	{name: "what is created is visible later", mistake: mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		if seen.State == external.Creating {
			return external.Observation{State: external.Absent}, err
		}
		return seen, err
	}}},
	{name: "no owner is stored", mistake: mistake{observe: after(func(seen *external.Observation) { seen.Owner = "" })}, change: func(c *ctrlkittest.ClientConfig[topic]) {
		c.StoresOwner = false
	}},
	{name: "nothing is configured", change: func(c *ctrlkittest.ClientConfig[topic]) {
		c.StoresOwner = false
		c.Drift, c.Refuse, c.Snapshot, c.Canary, c.Names = nil, nil, nil, "", external.NameRules{}
	}},
	{name: "no optional ability", change: func(c *ctrlkittest.ClientConfig[topic]) {
		connect := c.Connect
		c.Connect = func(ctx context.Context, obj topic) (external.Client[topic], error) {
			full, err := connect(ctx, obj)
			return plain{full}, err
		}
	}},
	{name: "no optional ability, and the password is read back", change: func(c *ctrlkittest.ClientConfig[topic]) {
		connect, published := c.Connect, map[types.UID]map[string][]byte{}
		c.Publish = func(_ context.Context, obj topic, details map[string][]byte) error {
			published[obj.UID] = details
			return nil
		}
		c.Connect = func(ctx context.Context, obj topic) (external.Client[topic], error) {
			full, err := connect(ctx, obj)
			return readsBack{plain{full}, published}, err
		}
	}},
}

func TestRightClientsBreakNoRule(t *testing.T) {
	for _, tt := range right {
		for _, i := range identities {
			if strings.HasPrefix(tt.name, "no optional ability") && i.name == "tag" {
				continue // it needs Find
			}
			t.Run(tt.name+" by "+i.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config, _ := configOf(i, tt.mistake)
					config.Interval = time.Second
					if tt.change != nil {
						tt.change(&config)
					}
					found, err := ctrlkittest.ClientProblems(t.Context(), config)
					if len(found) > 0 || err != nil {
						t.Errorf("%v, %v", found, err)
					}
				})
			})
		}
	}
}

func ExampleClientProblems() {
	config, _ := configOf(identities[0], mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Data["size"] == "invalid" {
			return "", errInvalid // and not external.Refused(errInvalid)
		}
		return c.put(ctx, obj, by)
	}})
	found, err := ctrlkittest.ClientProblems(context.Background(), config)
	for _, p := range found {
		fmt.Println(p)
	}
	fmt.Println(err)
	// Output:
	// Create of what ClientConfig.Refuse makes invalid returns an error that is not marked: return external.Refused(err) where the system has answered that it has created nothing: 422 invalid [refused]
	// <nil>
}
