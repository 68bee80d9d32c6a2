// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A PanicError is a panic of an action, caught so that it fails that action and not the process.
// The other actions of the workflow continue, and the stack is logged where the panic was caught.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked, as debug.Stack prints it.
	Stack []byte
}

// Error returns what was passed to panic, without the stack: the text is used in conditions, which
// must not change from run to run.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value of the panic if that is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Format adds the stack for %+v.
func (p *PanicError) Format(s fmt.State, verb rune) {
	if verb == 'v' && s.Flag('+') {
		fmt.Fprintf(s, "%s\n\n%s", p.Error(), p.Stack)
		return
	}
	fmt.Fprintf(s, fmt.FormatString(plain{s}, verb), p.Error())
}

// plain is a state without the plus flag.
type plain struct{ fmt.State }

func (p plain) Flag(c int) bool { return c != '+' && p.State.Flag(c) }

// newPanicError must be called by the deferred function that recovered: the stack is still that of
// the panic.
func newPanicError(ctx context.Context, action string, value any) *PanicError {
	p := &PanicError{Value: value, Stack: debug.Stack()}
	log.FromContext(ctx).Error(p, "Observed a panic in an action", "action", action, "stack", string(p.Stack))
	return p
}
