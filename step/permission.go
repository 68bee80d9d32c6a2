// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// A Use says what a step does with objects of a kind: see Step.Uses.
type Use = permission.Use

// A Need is one permission that an operator needs, with who has it: see [Engine.Needs]. sim.Needs
// returns what an operator asks for in a simulation.
type Need = permission.Need

// Rules returns the rules that allow needs, in the form in which controller-gen writes them.
func Rules(needs []Need) []rbacv1.PolicyRule { return permission.Rules(needs) }

// Markers returns rules as comments for controller-gen, one on each line.
func Markers(rules []rbacv1.PolicyRule) string { return permission.Markers(rules) }

// Role returns a ClusterRole with rules, in YAML.
func Role(name string, rules []rbacv1.PolicyRule) string { return permission.Role(name, rules) }
