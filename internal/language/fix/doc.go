// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fix moves operators of the original ctrlkit library to this one: it rewrites imports and
// names in their Go files, and finds the generated files that have to be generated again.
//
// It needs no dependency of the operator, not even the original library, and works on code that
// does not compile: only the packages of the operator's own module are type-checked, and what they
// import from elsewhere is unknown. So it can be run before go.mod is changed, and after.
//
//	plan, err := fix.Load(ctx, fix.Options{Dir: ".", Patterns: []string{"./..."}})
//
// It writes nothing, and leaves that, and the generating, to the command.
package fix
