// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold plans what "ctrlkit init" and "ctrlkit create api" write: an operator in
// kubebuilder's layout (go.kubebuilder.io/v4), or one more kind in a project of that layout, also
// one that kubebuilder has made.
//
//	project := scaffold.NewProject(dir, "guestbook")
//	plan, err := scaffold.Init(project, scaffold.API{Group: "guestbook", Version: "v1", Kind: "Guestbook"}, requirements)
//	...
//	if changed := plan.Conflicts(); len(changed) == 0 {
//		err = plan.Write()
//	}
//
// A [Plan] is computed from the directory, the names and the requirements alone: planning writes
// nothing, runs nothing, and asks nothing. What a program has to run afterwards, such as go mod
// tidy, is up to the caller.
//
// There are two sorts of files. Those that are the user's from the first moment, such as the
// controller, are written once: if there is one that differs, it is a conflict. Those that several
// kinds share, such as PROJECT and cmd/main.go, are extended, at kubebuilder's markers, by what they
// lack. So a plan that is made again after it was written has no changes.
package scaffold
