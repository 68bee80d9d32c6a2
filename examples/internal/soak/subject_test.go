// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	cronjobv1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	rwexternalv1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
)

// What remains after the deletion is found, with what holds it; what should stay is not.
func TestLeftAfterTheDeletion(t *testing.T) {
	scheme, err := newScheme()
	must(t, err)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	stuck := &rwexternalv1.RWExternal{ObjectMeta: named("soak-00")}
	stuck.Finalizers, stuck.DeletionTimestamp = []string{"demo.ctrlkit.dev/rwexternal"}, &metav1.Time{Time: epoch}
	user := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&cronjobv1.CronJob{ObjectMeta: named("c")}, &batchv1.Job{ObjectMeta: named("c-1")}, &corev1.Pod{ObjectMeta: named("c-1-x")},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "not ours"}},
		&corev1.Secret{ObjectMeta: named("input-00"), Data: input{dividend: "7", divisor: "2"}.data()},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: outputsNamespace, Name: "output-01"}},
		stuck,
	).Build()
	rwExternals := newRWExternals(user, &options{objects: 2}).(*rwExternals)
	rwExternals.model = []rwExternal{{own: input{dividend: "7", divisor: "2"}}, {}}
	for name, test := range map[string]struct {
		subject subject
		want    []string
	}{
		"CronJobs":    {&schedule{user: user}, []string{"Job soak/c-1", "Pod soak/c-1-x"}},
		"RWExternals": {rwExternals, []string{"RWExternal soak-00", "Secret soak-outputs/output-01"}},
	} {
		must(t, test.subject.deleteAll(t.Context()))
		found, err := test.subject.remaining(t.Context())
		must(t, err)
		var got []string
		for _, v := range found {
			got = append(got, v.object)
			if v.object == "RWExternal soak-00" && !strings.Contains(v.evidence, "has the finalizers [\"demo.ctrlkit.dev/rwexternal\"]") {
				t.Errorf("%s: evidence %q, want the finalizer", name, v.evidence)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: remaining are %q, want %q", name, got, test.want)
		}
	}
}
