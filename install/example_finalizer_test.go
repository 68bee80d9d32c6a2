// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/install"
)

// A policy for backups, and what it asks of an object before it adds the finalizer.
func ExampleFinalizerPolicy() {
	backups := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "backups"}
	policy, binding, err := install.FinalizerPolicy(backups, "example.com/backup")
	if err != nil {
		panic(err)
	}
	fmt.Println(policy.Name, *policy.Spec.FailurePolicy)
	fmt.Println(policy.Spec.MatchConditions[0].Expression)
	fmt.Println(binding.Spec.PolicyName == policy.Name)
	// Output:
	// example.com.backup.backups Ignore
	// !has(object.metadata.finalizers) || !("example.com/backup" in object.metadata.finalizers)
	// true
}
