// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// watch returns a check of each call of a method, in the life of a resource.
func watch[T client.Object](wrong func(k *kit[T], c call[T]) string) func(k *kit[T]) {
	return func(k *kit[T]) {
		k.after = func(c call[T]) {
			if text := wrong(k, c); text != "" && !slices.Contains(k.found, text) {
				k.report("%s %s", c.method, text)
			}
		}
		k.live()
	}
}

// live calls each method as in the life of a resource. Failures are reported by other rules.
func (k *kit[T]) live() {
	found := k.found
	obj, _, id, ok := k.make()
	k.found = slices.DeleteFunc(k.found, func(text string) bool {
		return !slices.Contains(found, text) && strings.HasPrefix(text, "after Create")
	})
	if !ok || !k.reconnect(obj) {
		return
	}
	_, _ = k.observe(obj, k.Unknown)
	if k.Drift != nil {
		k.Drift(obj)
		_, _ = k.await(obj, id, []external.State{external.UpToDate}, external.Drifted)
		_ = k.change("Update", k.client.Update, obj, id)
		_, _ = k.await(obj, id, []external.State{external.Drifted, external.Updating}, external.UpToDate)
	}
	_ = k.change("Delete", k.client.Delete, obj, id)
	_, _ = k.await(obj, id, []external.State{external.Deleting}, external.Absent)
	_ = k.change("Delete", k.client.Delete, obj, id)
	if k.Refuse == nil {
		return
	}
	obj = k.New()
	k.Refuse(obj)
	if by, err := k.Identity.Creation(obj); err == nil && k.reconnect(obj) {
		_, _ = k.tryCreate(obj, by)
	}
}

func wrongState[T client.Object](_ *kit[T], c call[T]) string {
	switch {
	case c.seen == nil || c.err != nil:
		return ""
	case c.seen.State <= 0 || c.seen.State > external.Broken:
		return fmt.Sprintf("returns the state %d and no error: return one of the constants, such as external.Absent", c.seen.State)
	}
	return ""
}

func wrongOwner[T client.Object](_ *kit[T], c call[T]) string {
	if c.seen == nil || c.err != nil || c.seen.Owner == "" || c.seen.Owner == external.OwnerOf(c.obj) {
		return ""
	}
	return fmt.Sprintf("returns the owner %q: return what external.OwnerOf has returned when the resource was created, %q", c.seen.Owner, external.OwnerOf(c.obj))
}

func wrongConnection[T client.Object](_ *kit[T], c call[T]) string {
	if c.seen == nil || c.err != nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(c.seen.Connection)) {
		if len(c.seen.Connection[key]) == 0 {
			return fmt.Sprintf("returns the connection detail %q without a value: leave it out until it is known", key)
		}
		if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 {
			return fmt.Sprintf("returns the connection detail %q, which no key of a Secret can be: %s", key, strings.Join(wrong, "; "))
		}
	}
	return ""
}

func wrongText[T client.Object](k *kit[T], c call[T]) string {
	if c.err != nil && strings.Contains(c.err.Error(), k.Canary) {
		return "returns an error with the secret ClientConfig.Canary: errors are in conditions, events and logs; leave it out"
	}
	if c.seen == nil {
		return ""
	}
	for _, text := range []struct{ where, text string }{
		{"Drift", strings.Join(c.seen.Drift, " ")},
		{"Message", c.seen.Message},
		{"Unavailable", c.seen.Unavailable},
		{"Owner", c.seen.Owner},
	} {
		if strings.Contains(text.text, k.Canary) {
			return fmt.Sprintf("returns an observation whose %s has the secret ClientConfig.Canary: only Connection may have it", text.where)
		}
	}
	return ""
}

func wrongObject[T client.Object](_ *kit[T], c call[T]) string {
	if diff := cmp.Diff(partsOf(c.before), partsOf(c.obj)); diff != "" {
		return "changes the object outside its status, which is not written: see external.LateInitializer (-before +after):\n" + diff
	}
	return ""
}

// partsOf returns an object as JSON has it, without its status.
func partsOf(obj client.Object) map[string]any {
	data, err := json.Marshal(obj)
	parts := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &parts)
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	delete(parts, "status")
	return parts
}

// overwritten returns the path of a value that was set and is another one, empty if there is none.
func overwritten(before, after any, path string) string {
	old, ok := before.(map[string]any)
	if !ok {
		if before == nil || reflect.ValueOf(before).IsZero() || reflect.DeepEqual(before, after) {
			return ""
		}
		return path
	}
	now, _ := after.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if found := overwritten(old[key], now[key], path+"."+key); found != "" {
			return found
		}
	}
	return ""
}

// promptly is how soon a method returns when its context is done.
const promptly = time.Second

// context checks ClientRuleContext.
func (k *kit[T]) context() {
	obj, by, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	type method struct {
		name string
		call func(ctx context.Context) error
	}
	c := k.client // a method that does not return keeps its client
	methods := []method{
		{"Observe", func(ctx context.Context) error { _, err := c.Observe(ctx, obj, id); return err }},
		{"Update", func(ctx context.Context) error { return c.Update(ctx, obj, id) }},
		{"Create", func(ctx context.Context) error { return k.createWith(ctx, c, obj, by) }},
		{"Delete", func(ctx context.Context) error { return c.Delete(ctx, obj, id) }},
	}
	if finder, ok := c.(external.Finder[T]); ok {
		methods = append(methods, method{"Find", func(ctx context.Context) error { _, err := finder.Find(ctx, obj, by.Tag); return err }})
	}
	for _, m := range methods {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		expired, cancel := context.WithDeadline(k.ctx, time.Now())
		for _, ctx := range []context.Context{canceled, expired} {
			if !k.endsWith(ctx, m.name, m.call) {
				cancel()
				return // it may still run
			}
		}
		cancel()
	}
}

// createWith calls Create with a context that is done, and deletes what it has created all the
// same.
func (k *kit[T]) createWith(ctx context.Context, c external.Client[T], obj T, by external.Creation) error {
	id, err := c.Create(ctx, obj, by)
	if err == nil && id != "" {
		_ = c.Delete(k.ctx, obj, id) // the rule about it reports that
	}
	return err
}

// endsWith checks a method with a context that is done, and reports whether it has returned.
func (k *kit[T]) endsWith(ctx context.Context, name string, call func(ctx context.Context) error) bool {
	returned := make(chan error, 1)
	go func() { returned <- call(ctx) }()
	select {
	case err := <-returned:
		if !errors.Is(err, ctx.Err()) {
			k.report("%s with a context that is done returns %v: return an error that wraps that of the context, %q", name, err, ctx.Err())
		}
		return true
	case <-time.After(promptly):
		k.report("%s with a context that is done, %q, has not returned after %v: pass the context to what waits", name, ctx.Err(), promptly)
		return false
	}
}
