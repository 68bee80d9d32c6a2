// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// A condition of the object says how another object is.
func TestMirror(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "migrate"}
	deleted := *meta.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"example.com/f"}
	job := func(kind batchv1.JobConditionType) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: "True", Reason: "Why", Message: "it has ended"}}}}
	}
	for _, tt := range []struct {
		of   client.Object
		want string
	}{
		{&corev1.Secret{ObjectMeta: meta}, "True NoStatus : Ready True"},
		{job(batchv1.JobComplete), "True Ready : Ready True"},
		{job(batchv1.JobFailed), "False Why Job migrate is Failed: it has ended: Ready False, Stalled "},
		{&batchv1.Job{ObjectMeta: meta}, "False JobNotStarted Job migrate is Progressing: Job not started: Ready False, Stalled "},
		{&corev1.Secret{ObjectMeta: deleted}, "False Deleted Secret migrate is Terminating: waits for the finalizer example.com/f: Ready False, Stalled "},
	} {
		req := ctrlkittest.NewRequest(t, &Shop{ObjectMeta: meta}, ctrlkittest.WithScheme(scheme), ctrlkittest.WithConditions(condition.Declaration{Type: "ChildReady"}))
		apply.Mirror(req, "ChildReady", tt.of)
		c, _ := req.Conditions.Get("ChildReady")
		req.Conditions.Summarize()
		ready, _ := req.Conditions.Get(condition.Ready)
		got := fmt.Sprintf("%s %s %s: Ready %s", c.Status, c.Reason, c.Message, ready.Status)
		if stalled, _ := req.Conditions.Get(condition.Stalled); ready.Status != "True" {
			got += ", Stalled " + string(stalled.Status)
		}
		if got != tt.want {
			t.Errorf("%T: got %s, want %s", tt.of, got, tt.want)
		}
		if severity := req.Conditions.WorstSeverity("ChildReady"); (severity == condition.SeverityWarning) != strings.Contains(tt.want, "Failed") {
			t.Errorf("%T: severity %s", tt.of, severity)
		}
	}
}
