// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
)

// CheckClient checks each rule in a subtest of its name. A rule that can't be checked is skipped,
// with the reason.
func CheckClient[T client.Object](t *testing.T, config ClientConfig[T]) {
	t.Helper()
	config, err := config.complete()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks[T]() {
		t.Run(string(c.rule), func(t *testing.T) {
			skipped, problems := c.on(t.Context(), &config)
			if skipped != "" {
				t.Skip(skipped)
			}
			for _, p := range problems {
				t.Error(p.Text)
			}
		})
	}
}

// ClientProblems returns what [CheckClient] reports, for tests that filter.
func ClientProblems[T client.Object](ctx context.Context, config ClientConfig[T]) ([]ClientProblem, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	var all []ClientProblem
	for _, c := range checks[T]() {
		_, found := c.on(ctx, &config)
		all = append(all, found...)
	}
	return all, nil
}

// on checks a rule.
func (c check[T]) on(ctx context.Context, config *ClientConfig[T]) (skipped string, found []ClientProblem) {
	if why := config.Except[c.rule]; why != "" {
		return why, nil
	}
	if c.lacks != nil {
		by, err := config.Identity.Creation(config.New())
		if err != nil {
			return "", []ClientProblem{{c.rule, fmt.Sprintf("naming the resource: %v", err)}}
		}
		if why := c.lacks(config, by); why != "" {
			return why, nil
		}
	}
	k := &kit[T]{ClientConfig: config, ctx: ctx}
	defer k.cleanUp()
	c.run(k)
	for _, text := range k.found {
		found = append(found, ClientProblem{c.rule, text})
	}
	return "", found
}

// A kit checks one rule.
type kit[T client.Object] struct {
	*ClientConfig[T]
	ctx    context.Context //nolint:containedctx // it is that of one check
	client external.Client[T]
	made   []resource[T]
	after  func(c call[T])                 // each call of a method; may be nil
	known  map[types.UID]map[string][]byte // what was published
	found  []string
}

// A resource is one that the kit has created.
type resource[T client.Object] struct {
	obj T
	id  string
}

// A call is one of a method.
type call[T client.Object] struct {
	method      string
	obj, before T // the object, and a copy from before the call
	seen        *external.Observation
	err         error
}

// report adds a problem.
func (k *kit[T]) report(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if k.Canary != "" {
		text = strings.ReplaceAll(text, k.Canary, "(the canary)")
	}
	k.found = append(k.found, text)
}

// reconnect begins another reconcile, and reports whether it could.
func (k *kit[T]) reconnect(obj T) bool {
	k.close()
	c, err := k.Connect(k.ctx, obj)
	if err != nil {
		k.report("ClientConfig.Connect returns the error: %v", err)
		return false
	}
	k.client = c
	return true
}

func (k *kit[T]) close() {
	if c, ok := k.client.(io.Closer); ok {
		_ = c.Close() // no rule is about it
	}
	k.client = nil
}

// cleanUp deletes what was created.
func (k *kit[T]) cleanUp() {
	k.after = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), k.Patience)
	defer cancel()
	for _, r := range k.made {
		if c, err := k.Connect(ctx, r.obj); err == nil {
			k.close()
			k.client = c
			_ = c.Delete(ctx, r.obj, r.id) // the rule about it reports that
		}
	}
	k.close()
}

// called notes a call.
func (k *kit[T]) called(method string, obj, before T, seen *external.Observation, err error) {
	if k.after != nil {
		k.after(call[T]{method, obj, before, seen, err})
	}
}

// copyOf returns a copy of an object.
func copyOf[T client.Object](obj T) T {
	return obj.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
}

// tryCreate calls Create.
func (k *kit[T]) tryCreate(obj T, by external.Creation) (id string, err error) {
	before := copyOf(obj)
	details := make(map[string][]byte)
	id, err = k.client.Create(answer.Context(k.ctx, details), obj, by)
	if err == nil {
		if id == "" {
			id = by.Name
		}
		k.made = append(k.made, resource[T]{before, id})
	}
	k.called("Create", obj, before, nil, err)
	if err == nil {
		k.publish(obj, details)
	}
	return id, err
}

// publish publishes details of an object beside those that are known of it.
func (k *kit[T]) publish(obj T, details map[string][]byte) {
	if k.Publish == nil || len(details) == 0 {
		return
	}
	if k.known == nil {
		k.known = make(map[types.UID]map[string][]byte)
	}
	all := k.known[obj.GetUID()]
	if all == nil {
		all = make(map[string][]byte)
		k.known[obj.GetUID()] = all
	}
	maps.Copy(all, details)
	if err := k.Publish(k.ctx, obj, maps.Clone(all)); err != nil {
		k.report("ClientConfig.Publish returns the error: %v", err)
	}
}

// observe calls Observe.
func (k *kit[T]) observe(obj T, id string) (external.Observation, error) {
	before := copyOf(obj)
	seen, err := k.client.Observe(k.ctx, obj, id)
	k.called("Observe", obj, before, &seen, err)
	if err == nil {
		k.publish(obj, seen.Connection)
	}
	return seen, err
}

// change calls Update or Delete.
func (k *kit[T]) change(method string, call func(context.Context, T, string) error, obj T, id string) error {
	before := copyOf(obj)
	details := make(map[string][]byte)
	err := call(answer.Context(k.ctx, details), obj, id)
	k.called(method, obj, before, nil, err)
	k.publish(obj, details)
	return err
}

// make creates the resource of a new object, and waits until it is up to date. It returns false,
// and has reported why, if that fails.
func (k *kit[T]) make() (obj T, by external.Creation, id string, ok bool) {
	if obj, by, id, ok = k.begin(); !ok || !k.reconnect(obj) {
		return obj, by, id, false
	}
	if err := k.settle(obj, id); err != nil {
		k.report("after Create: %v", err)
		return obj, by, id, false
	}
	return obj, by, id, true
}

// begin creates the resource of a new object, and reports why it can't.
func (k *kit[T]) begin() (obj T, by external.Creation, id string, ok bool) {
	obj = k.New()
	by, err := k.Identity.Creation(obj)
	if err != nil {
		k.report("ClientConfig.Identity has no name for an object of ClientConfig.New: %v", err)
	}
	if err != nil || !k.reconnect(obj) {
		return obj, by, "", false
	}
	if id, err = k.tryCreate(obj, by); err != nil {
		k.report("Create of the resource of an object of ClientConfig.New returns the error: %v", err)
	}
	return obj, by, id, err == nil
}

// settle waits until a resource that was created is up to date, as the operator does.
func (k *kit[T]) settle(obj T, id string) error {
	busy := []external.State{external.Absent, external.Creating, external.Updating}
	seen, err := k.await(obj, id, busy, external.UpToDate, external.Drifted)
	if err != nil || seen.State == external.UpToDate {
		return err
	}
	if err := k.change("Update", k.client.Update, obj, id); err != nil {
		return fmt.Errorf("update of %q returns the error: %w", id, err)
	}
	_, err = k.await(obj, id, append(busy, external.Drifted), external.UpToDate)
	return err
}

// await observes a resource until it has one of the states, as long as it has one of those
// meanwhile. That a state is invalid is reported by a rule of its own.
func (k *kit[T]) await(obj T, id string, meanwhile []external.State, want ...external.State) (external.Observation, error) {
	timeout := time.NewTimer(k.Patience)
	defer timeout.Stop()
	for {
		seen, err := k.observe(obj, id)
		switch {
		case err != nil:
			return seen, fmt.Errorf("observe of %q returns the error: %w", id, err)
		case slices.Contains(want, seen.State):
			return seen, nil
		case seen.State != 0 && !slices.Contains(meanwhile, seen.State):
			return seen, fmt.Errorf("the resource %q is %s, and not %s%s", id, seen.State, want[0], because(seen))
		}
		select {
		case <-time.After(k.Interval):
		case <-timeout.C:
			return seen, fmt.Errorf("the resource %q is %s after %v, and not %s%s", id, seen.State, k.Patience, want[0], because(seen))
		case <-k.ctx.Done():
			return seen, context.Cause(k.ctx)
		}
	}
}

// because returns what an observation says of its state.
func because(seen external.Observation) string {
	switch {
	case seen.Message != "":
		return ": " + seen.Message
	case len(seen.Drift) > 0:
		return ": " + strings.Join(seen.Drift, ", ")
	}
	return ""
}
