// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

func TestAttachUsesAControlPlaneOfAnotherProcess(t *testing.T) {
	starts(t)
	started := shared.ForTest(t)
	dir, err := started.Share()
	must(t, err)
	attached, err := controlplane.Attach(t.Context(), dir, controlplane.Options{Parts: controlplane.PartControllerManager, CRDs: []string{"testdata/crds"}})
	must(t, err)
	newNamespace(t, newClient(t, attached.Config()))
	jane, err := attached.AddUser("jane")
	must(t, err)
	if err := newClient(t, jane).List(t.Context(), &corev1.NamespaceList{}); !apierrors.IsForbidden(err) {
		t.Errorf("jane lists namespaces: %v, want that she is known and may not", err)
	}
	if err := attached.Stop(); err != nil {
		t.Error(err)
	}
	newNamespace(t, newClient(t, started.Config())) // it still runs
}

func TestAttachSaysWhyNot(t *testing.T) {
	_, err := controlplane.Attach(t.Context(), t.TempDir(), controlplane.Options{})
	if err == nil || !strings.Contains(err.Error(), "is it still running?") {
		t.Errorf("of a directory without a control plane: %v", err)
	}
}
