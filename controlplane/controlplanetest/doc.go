// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest starts control planes of package [controlplane] for tests.
//
// [Start] starts one for a single test and stops it when the test ends. A package whose tests can
// use the same control plane declares a [Shared] and starts it in TestMain:
//
//	func TestOperator(t *testing.T) {
//		plane := controlplanetest.Start(t, controlplane.Options{
//			Parts: controlplane.AllParts,
//			CRDs:  []string{"config/crd"},
//		})
//		mgr, err := manager.New(plane.Config(), manager.Options{})
//		...
//	}
//
// The package is separate from controlplane so that a program that starts a control plane does not
// import package testing.
package controlplanetest
