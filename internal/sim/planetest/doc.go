// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package planetest starts control planes of package controlplane for tests. Authors know it as
// ctrlkittest.StartControlPlane and ctrlkittest.SharedControlPlane; the packages below ctrlkittest use
// this one in their tests.
//
// It is separate from controlplane so that a program that starts a control plane does not import
// package testing.
package planetest
