// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"strings"
	"sync"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

type request = step.Request[*User]

// calls records which methods of a reconciler were called.
type calls struct {
	mu  sync.Mutex // for all below
	all []string
}

func (c *calls) note(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, method)
}

// change changes what methods do, for those that are called from now on, in a bubble.
func (c *calls) change(do func()) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// take returns the calls since it was called last: "Claim CreateOrUpdate".
func (c *calls) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.all = nil }()
	return strings.Join(c.all, " ")
}

// A plain reconciler has no optional ability.
type plain struct {
	*calls
	// These replace what the methods do; nil is to do nothing.
	create, delete func(ctx context.Context, req *request) error
}

func (p *plain) CreateOrUpdate(ctx context.Context, req *request) error {
	p.note("CreateOrUpdate")
	if p.create != nil {
		return p.create(ctx, req)
	}
	return nil
}

func (p *plain) Delete(ctx context.Context, req *request) error {
	p.note("Delete")
	if p.delete != nil {
		return p.delete(ctx, req)
	}
	return nil
}

// A full reconciler claims the name of the user as an annotation, and refreshes the status.
type full struct {
	plain
	claim, update func(ctx context.Context, req *request) error
}

var (
	_ lifecycle.Claimer[*User]       = (*full)(nil)
	_ lifecycle.StatusUpdater[*User] = (*full)(nil)
)

func newFull() *full { return &full{plain: plain{calls: &calls{}}} }

func (f *full) Claim(ctx context.Context, req *request) error {
	f.note("Claim")
	if f.claim != nil {
		if err := f.claim(ctx, req); err != nil {
			return err
		}
	}
	metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimed, req.Object.Spec.Name)
	return nil
}

func (f *full) Claimed(obj *User) bool { return obj.Annotations[claimed] != "" }

func (f *full) UpdateStatus(ctx context.Context, req *request) error {
	f.note("UpdateStatus")
	if f.update != nil {
		return f.update(ctx, req)
	}
	return nil
}

// A checking reconciler asks for each verb itself, and records what it may do.
type checking struct{ *full }

var _ lifecycle.VerbChecker[*User] = checking{}

func (checking) ChecksVerbs() {}

func (c checking) CreateOrUpdate(_ context.Context, req *request) error {
	text := "CreateOrUpdate"
	for verb, name := range map[policy.Verbs]string{policy.VerbCreate: "(create)", policy.VerbUpdate: "(update)"} {
		if lifecycle.PolicyOf(req).Allows(verb) && !lifecycle.PolicyOf(req).Allows(policy.VerbCreate|policy.VerbUpdate) {
			text += name
		}
	}
	c.note(text)
	return nil
}
