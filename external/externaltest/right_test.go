// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package externaltest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/external/externaltest"
)

// A plain client has no optional ability.
type plain struct{ external.Client[topic] }

// right are clients that do the same in other ways. None breaks a rule.
var right = []struct {
	name    string
	mistake mistake
	change  func(c *externaltest.Config[topic])
}{
	{name: "create returns no id for a name", mistake: mistake{create: func(c *client, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if by.Name != "" {
			id = ""
		}
		return id, err
	}}},
	{name: "at once", mistake: mistake{create: func(c *client, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if err == nil {
			c.all[id].busy = 0
		}
		return id, err
	}}},
	{name: "create leaves the rest to update", mistake: mistake{create: func(c *client, ctx context.Context, obj topic, by external.Creation) (string, error) {
		id, err := c.put(ctx, obj, by)
		if err == nil && c.all[id].size == "" {
			c.all[id].size, c.all[id].wanted, c.all[id].busy = "tiny", "", 0
		}
		return id, err
	}}},
	{name: "what is created is visible later", mistake: mistake{observe: func(c *client, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		if seen.State == external.Creating {
			return external.Observation{State: external.Absent}, err
		}
		return seen, err
	}}},
	{name: "no owner is stored", mistake: mistake{observe: after(func(seen *external.Observation) { seen.Owner = "" })}},
	{name: "nothing is configured", change: func(c *externaltest.Config[topic]) {
		c.Drift, c.Refuse, c.Snapshot, c.Canary, c.Names = nil, nil, nil, "", external.NameRules{}
	}},
	{name: "no optional ability", change: func(c *externaltest.Config[topic]) {
		connect := c.Connect
		c.Connect = func(ctx context.Context, obj topic) (external.Client[topic], error) {
			full, err := connect(ctx, obj)
			return plain{full}, err
		}
	}},
}

func TestRightClientsBreakNoRule(t *testing.T) {
	for _, tt := range right {
		for _, i := range identities {
			if tt.name == "no optional ability" && i.name == "tag" {
				continue // it needs Find
			}
			t.Run(tt.name+" by "+i.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config, _ := configOf(i, tt.mistake)
					config.Interval = time.Second
					if tt.change != nil {
						tt.change(&config)
					}
					found, err := externaltest.Problems(t.Context(), config)
					if len(found) > 0 || err != nil {
						t.Errorf("%v, %v", found, err)
					}
				})
			})
		}
	}
}

func ExampleProblems() {
	config, _ := configOf(identities[0], mistake{create: func(c *client, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Data["size"] == "invalid" {
			return "", errInvalid // and not external.Refused(errInvalid)
		}
		return c.put(ctx, obj, by)
	}})
	found, err := externaltest.Problems(context.Background(), config)
	for _, p := range found {
		fmt.Println(p)
	}
	fmt.Println(err)
	// Output:
	// Create of what Config.Refuse makes invalid returns an error that is not marked: return external.Refused(err) where the system has answered that it has created nothing: 422 invalid [refused]
	// <nil>
}
