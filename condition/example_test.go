// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

// One reconcile of an object that waits for its Secret.
func ExampleSet() {
	var database struct {
		metav1.ObjectMeta
		Status struct{ Conditions []metav1.Condition }
	}
	database.Generation = 1

	set, err := condition.NewSet(&database, condition.Options{Declared: []condition.Declaration{
		{Type: "SecretFound"},
		{Type: "Degraded", AbnormalTrue: true},
		{Type: "BackupDone", Informational: true},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	set.MarkUnhealthy("SecretFound", condition.SeverityInfo, "NotFound", `waiting for Secret "db"`)
	set.MarkHealthy("Degraded", "Fine", "all replicas answer")
	set.Summarize()
	if err := set.Store(&database); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range database.Status.Conditions {
		fmt.Printf("%s is %s (%s) %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	// Output:
	// Ready is False (NotFound) SecretFound: waiting for Secret "db"
	// Reconciling is True (NotFound) SecretFound: waiting for Secret "db"
	// SecretFound is False (NotFound) waiting for Secret "db"
	// Degraded is False (Fine) all replicas answer
	// BackupDone is Unknown (NotReached) not evaluated yet
}
