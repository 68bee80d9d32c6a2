// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package definitions reads CustomResourceDefinitions as controller-runtime's envtest does, and
// installs them in a cluster that is there for tests and trials. Package envtest itself does not
// compile for Windows in controller-runtime v0.25.
//
// Operators that install their own definitions use package crd, which keeps what others have
// installed and stored.
package definitions
