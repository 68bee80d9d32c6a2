// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"strings"
	"sync"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

type request = step.Request[*User]

// calls records which functions were called.
type calls struct {
	mu  sync.Mutex // for all below
	all []string
}

func (c *calls) note(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, method)
}

// change changes what functions do, for those that are called from now on, in a bubble.
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

// A recorder has functions that record their calls. Claim writes the name of the user to an annotation.
type recorder struct {
	*calls
	create, delete, claim, update func(ctx context.Context, req *request) error // what they do besides; nil is nothing
}

func newRecorder() *recorder { return &recorder{calls: &calls{}} }

// funcs returns all of them.
func (r *recorder) funcs() external.Funcs[*User] {
	f := r.required()
	f.Claim = func(ctx context.Context, req *request) error {
		if err := r.call("Claim", &r.claim, ctx, req); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimed, req.Object.Spec.Name)
		return nil
	}
	f.Claimed = func(obj *User) bool { return obj.Annotations[claimed] != "" }
	f.UpdateStatus = func(ctx context.Context, req *request) error { return r.call("UpdateStatus", &r.update, ctx, req) }
	return f
}

// required returns those that are required.
func (r *recorder) required() external.Funcs[*User] {
	return external.Funcs[*User]{
		CreateOrUpdate: func(ctx context.Context, req *request) error { return r.call("CreateOrUpdate", &r.create, ctx, req) },
		Delete:         func(ctx context.Context, req *request) error { return r.call("Delete", &r.delete, ctx, req) },
	}
}

// checking returns all of them, of which CreateOrUpdate asks for each verb, and records what it may do.
func (r *recorder) checking() external.Funcs[*User] {
	f := r.funcs()
	f.ChecksVerbs = true
	f.CreateOrUpdate = func(_ context.Context, req *request) error {
		text, may := "CreateOrUpdate", external.PolicyOf(req)
		for verb, name := range map[policy.Verbs]string{policy.VerbCreate: "(create)", policy.VerbUpdate: "(update)"} {
			if may.Allows(verb) && !may.Allows(policy.VerbCreate|policy.VerbUpdate) {
				text += name
			}
		}
		r.note(text)
		return nil
	}
	return f
}

// call reads what a function does after note has had the lock: change may have written it.
func (r *recorder) call(what string, does *func(ctx context.Context, req *request) error, ctx context.Context, req *request) error { //nolint:revive // the context is that of the function
	r.note(what)
	if do := *does; do != nil {
		return do(ctx, req)
	}
	return nil
}
