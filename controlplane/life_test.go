// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
)

// One control plane of the least parts shows all that is true of it: to start it takes seconds.
func TestAControlPlaneOfTheLeastParts(t *testing.T) {
	starts(t)
	logs := t.TempDir()
	plane := planetest.Start(t, controlplane.Options{LogDir: logs})
	if diff := cmp.Diff([]string{controlplane.EtcdProgram, controlplane.APIServerProgram}, plane.Programs()); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}

	// It takes Pods, and another process does not find the parts that it lacks.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}, Spec: podTemplate(nil).Spec}
	create(t, newClient(t, plane.Config()), pod)
	dir, err := plane.Share()
	must(t, err)
	_, err = controlplane.Attach(t.Context(), dir, controlplane.Options{Parts: controlplane.PartNodes})
	if err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("attached to one without Nodes: %v", err)
	}

	// Its end leaves its logs, where they were wanted, and another control plane, which has none of its objects.
	stopForTest(t, plane)
	info, err := os.Stat(filepath.Join(logs, "kube-apiserver.log"))
	if err != nil || info.Size() == 0 {
		t.Errorf("the log of kube-apiserver: %v, %v", info, err)
	}
	err = newClient(t, shared.ForTest(t).Config()).Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
	if !apierrors.IsNotFound(err) {
		t.Errorf("the other's Pod: %v, want that it is not found", err)
	}
}

func stopForTest(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	dir := plane.Dir()
	for range 2 {
		if err := plane.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	}
	if err := plane.Err(); err != nil {
		t.Errorf("after a stop: %v", err)
	}
	for name, pid := range plane.PIDs() {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%s (process %d) still runs", name, pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v, want that it does not exist", err)
	}
}

func TestTheDeathOfAProcessIsNoticed(t *testing.T) {
	starts(t)
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	must(t, err)
	defer plane.Stop() //nolint:errcheck // the test is about the time before
	must(t, syscall.Kill(plane.PIDs()[controlplane.EtcdProgram], syscall.SIGKILL))
	<-plane.Done()
	if err := plane.Err(); err == nil || !strings.Contains(err.Error(), controlplane.EtcdProgram) {
		t.Errorf("err = %v, want one that names etcd", err)
	}
}

func TestAProcessThatDiesAtStartIsQuoted(t *testing.T) {
	starts(t)
	_, err := controlplane.Start(t.Context(), controlplane.Options{Flags: map[string][]string{controlplane.APIServerProgram: {"--no-such-flag"}}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: exit status 1") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("err = %v, want what kube-apiserver says about its flag", err)
	}
}

func TestAStartEndsWithItsContext(t *testing.T) {
	starts(t)
	assets, err := controlplane.FindAssets(t.Context(), 0, controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := controlplane.Start(ctx, controlplane.Options{Assets: assets}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want %v", err, context.DeadlineExceeded)
	}
}
