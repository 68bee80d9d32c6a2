// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// early returns a run whose controllers are still compiled.
func early(options Options) (r *runner, complete func()) {
	controllers := make(chan struct{})
	r = &runner{Options: options, queue: newQueue(), complete: controllers, operator: &operator{ended: make(chan struct{})}}
	return r, func() { close(controllers) }
}

// The times of a run are not spent on compiling controllers.
func TestTheTimesBeginWhenAllRuns(t *testing.T) {
	for name, options := range map[string]Options{"for": {For: time.Minute}, "timeout": {Timeout: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, complete := early(options)
				time.AfterFunc(time.Hour, complete)
				begun := time.Now()
				err := r.follow(t.Context(), NewWorld(), &plainDisplay{})
				if took := time.Since(begun); took != time.Hour+time.Minute || errors.Is(err, ErrConditionsMissed) != (options.Timeout > 0) {
					t.Errorf("it took %v, with %v", took, err)
				}
			})
		})
	}
}

// Without its controllers, an API server does not fill a role that consists of others.
func TestAnAggregatedRoleWaitsForTheControllers(t *testing.T) {
	role := func(content map[string]any) []Manifest {
		return []Manifest{{Object: &unstructured.Unstructured{Object: content}}}
	}
	for name, test := range map[string]struct {
		manifests []Manifest
		want      time.Duration
	}{
		"rules":           {role(map[string]any{"kind": "ClusterRole", "rules": []any{}}), 0},
		"aggregationRule": {role(map[string]any{"kind": "ClusterRole", "aggregationRule": map[string]any{}}), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, complete := early(Options{})
				time.AfterFunc(time.Hour, complete)
				var out bytes.Buffer
				st := (&steps{out: &out}).begin("permissions", "granting")
				defer st.quit()
				a := &account{manifests: test.manifests}
				begun := time.Now()
				if err := a.awaitAggregation(t.Context(), nil, r.complete, st); err != nil || time.Since(begun) != test.want {
					t.Errorf("it took %v, with %v; want %v", time.Since(begun), err, test.want)
				}
			})
		})
	}
}
