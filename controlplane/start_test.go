// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// startEarly starts a control plane with all parts, whose programs rest pretends to build.
func startEarly(t *testing.T, rest func(context.Context) error) *controlplane.ControlPlane {
	t.Helper()
	starts(t)
	assets, err := controlplane.FindAssets(t.Context(), controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := false
	serving := func(*controlplane.ControlPlane) { served = true }
	plane, err := controlplane.StartWith(ctx, controlplane.Options{Parts: controlplane.AllParts, Assets: assets}, serving, rest)
	cancel() // it bounds the start, and not what is left
	must(t, err)
	if !served {
		t.Error("it has not said that it serves")
	}
	t.Cleanup(func() { must(t, plane.Stop()) })
	return plane
}

func isReady(plane *controlplane.ControlPlane) bool {
	select {
	case <-plane.Ready():
		return true
	default:
		return false
	}
}

func TestTheAPIServerServesBeforeTheRestIsBuilt(t *testing.T) {
	built := make(chan struct{})
	plane := startEarly(t, func(ctx context.Context) error {
		select {
		case <-built:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	servers := []string{controlplane.EtcdProgram, controlplane.APIServerProgram}
	if diff := cmp.Diff(servers, plane.Programs()); diff != "" || isReady(plane) {
		t.Errorf("ready: %t; programs (-want +got):\n%s", isReady(plane), diff)
	}
	c := newClient(t, plane.Config())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "early"}}
	create(t, c, namespace)
	var pods []*corev1.Pod
	for _, in := range []string{metav1.NamespaceDefault, namespace.Name} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "early"}, Spec: podTemplate(nil).Spec}
		create(t, c, pod)
		pods = append(pods, pod)
	}
	close(built)
	<-plane.Ready()
	for _, pod := range pods {
		eventually(t, "a Pod in namespace "+pod.Namespace, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase == corev1.PodRunning {
				return err
			}
			return fmt.Errorf("its phase is %q", pod.Status.Phase)
		})
	}
	var events corev1.EventList
	must(t, c.List(t.Context(), &events))
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			t.Errorf("a warning: %s: %s", event.Reason, event.Message)
		}
	}
}

func TestAFailureToBuildTheRestIsReported(t *testing.T) {
	cause := errors.New("it does not compile")
	plane := startEarly(t, func(context.Context) error { return cause })
	<-plane.Done()
	if err := plane.Err(); !errors.Is(err, cause) || isReady(plane) {
		t.Errorf("ready: %t, err = %v; want %v", isReady(plane), err, cause)
	}
}

func TestTheEndOfAControlPlaneEndsItsBuild(t *testing.T) {
	for name, end := range map[string]struct {
		plane func(*controlplane.ControlPlane) error
		want  string
	}{
		"stopped": {plane: (*controlplane.ControlPlane).Stop},
		"died": {
			plane: func(plane *controlplane.ControlPlane) error {
				return syscall.Kill(plane.PIDs()[controlplane.EtcdProgram], syscall.SIGKILL)
			},
			want: controlplane.EtcdProgram + " ended",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			plane := startEarly(t, func(ctx context.Context) error {
				defer close(ended)
				<-ctx.Done()
				return ctx.Err()
			})
			must(t, end.plane(plane))
			<-ended
			if err := plane.Err(); (err == nil) != (end.want == "") || err != nil && !strings.Contains(err.Error(), end.want) {
				t.Errorf("err = %v, want %q", err, end.want)
			}
			must(t, plane.Stop())
			if n := len(plane.Programs()); n != 2 {
				t.Errorf("it has started %d programs", n)
			}
		})
	}
}
