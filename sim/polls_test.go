// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An operator that renews a time in a status by the clock becomes idle, also after a fault, and is
// proved to be idle. One that writes another field by the clock does not, nor one that renews
// without a pause.
func TestHeartbeat(t *testing.T) {
	rings.Test(t, "simulates")
	for _, test := range []struct {
		name  string
		every time.Duration
		says  func(beats int) string // the message of the condition
		want  []oracle.Name
	}{
		{"a time", time.Minute, func(int) string { return "" }, nil},
		{"a time, without a pause", time.Millisecond, func(int) string { return "" }, []oracle.Name{oracle.BecomesIdle, oracle.BoundedRequests}},
		{"a time and a text", time.Minute, func(beats int) string { return strings.Repeat("!", beats%2) }, []oracle.Name{oracle.BecomesIdle}},
	} {
		for _, plan := range []string{"", "refuse write 1: 500", "second leader from write 1"} {
			beats := 0
			w := deploymentWorkload(func(ctx context.Context, o *operation) error {
				if o.requeueAfter = test.every; o.obj.DeletionTimestamp != nil {
					return nil
				}
				var checked appsv1.DeploymentCondition
				if all := o.obj.Status.Conditions; len(all) > 0 {
					checked = all[0]
				}
				if due := time.Until(checked.LastUpdateTime.Add(test.every)); due > 0 {
					o.requeueAfter = due
					return nil
				}
				beats++
				before := o.obj.DeepCopy()
				if checked.Type == "" {
					checked.LastTransitionTime = metav1.Now()
				}
				checked.Type, checked.Status, checked.LastUpdateTime, checked.Message = "Checked", corev1.ConditionTrue, metav1.Now(), test.says(beats)
				o.obj.Status.Conditions = []appsv1.DeploymentCondition{checked}
				return o.Status().Patch(ctx, o.obj, client.MergeFrom(before))
			})
			violations, trace := violationsOf(t, w, plan)
			if found := slices.ContainsFunc(violations, func(v oracle.Violation) bool { return slices.Contains(test.want, v.Oracle) }); found != (len(test.want) > 0) || !found && len(violations) > 0 {
				t.Errorf("%s, %q: got %v, want one of %v\n%s", test.name, plan, violations, test.want, trace)
			}
		}
	}
}

// A poll with a write that changes nothing is reported as that, and is no endless work that ends
// the exploration. One that only reads is not reported.
func TestPollWithoutChange(t *testing.T) {
	rings.Test(t, "simulates")
	for _, writes := range []bool{true, false} {
		w := deploymentWorkload(func(ctx context.Context, o *operation) error {
			o.requeueAfter = 5 * time.Minute
			if !writes || o.obj.DeletionTimestamp != nil {
				return nil
			}
			return o.Patch(ctx, o.obj, client.MergeFrom(o.obj.DeepCopy()))
		})
		w.Quiet = 15 * time.Minute
		violations, trace := violationsOf(t, w, "")
		if want := len(violations) == 1 && violations[0].Oracle == oracle.NoNoopWrites; want != writes || !writes && len(violations) > 0 {
			t.Errorf("writes %t: got %v\n%s", writes, violations, trace)
		}
	}
}
