// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission makes admission policies that help an operator, for the API server to evaluate.
//
//	backups := v1.GroupVersion.WithResource("backups")
//	policy, binding, err := admission.FinalizerPolicy(backups, "example.com/backup")
//
// It needs no webhook: the policies are objects of the API group admissionregistration.k8s.io. The
// package only builds them. Install them with the operator's other manifests, which
// "ctrlkit generate finalizer-policy" writes. It is a package of its own because commands and tests
// that make policies need none of an engine.
package admission
