// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/explain"
	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An operator that guards its metrics explains only to clients that may read the path.
func TestExplainIsGuardedLikeMetrics(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	kubectl := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), plane.Assets().Program("kubectl"), append([]string{"--kubeconfig", plane.Kubeconfig()}, args...)...)
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(output))
	}
	kubectl("apply", "-f", "testdata/guarded/reader.yaml")
	kubectl("create", "serviceaccount", "stranger", "-n", "default")
	kubectl("create", "configmap", "settings", "-n", "default")
	endpoint := serveGuarded(t, plane, journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "settings"})

	d := &demo{kubeconfig: plane.Kubeconfig()}
	for _, test := range []struct{ name, token, want string }{
		{"who may", kubectl("create", "token", "explainer"), "Copy waits for ConfigMap default/other"},
		{"who may not", kubectl("create", "token", "stranger"), "answers 403 Forbidden: set --token to a token that allows to get /debug/ctrlkit/explain"},
		{"who is unknown", "made-up", "answers 500 Internal Server Error: Authentication failed"},
		{"who has no token", "", "answers 401 Unauthorized: set --token to a token"},
	} {
		output, _, _ := d.run(t, "configmap/settings", "-n", "default", "--endpoint", endpoint, "--insecure", "--token", test.token)
		if !strings.Contains(output, test.want) {
			t.Errorf("%s: want %q:\n%s", test.name, test.want, output)
		}
	}
}

// serveGuarded runs a manager that knows of an object that waits, until the test ends.
func serveGuarded(t *testing.T, plane *controlplane.ControlPlane, object journal.Object) (endpoint string) {
	t.Helper()
	address, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{
		Logger: logr.Discard(),
		Metrics: metricsserver.Options{
			BindAddress: address, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ring := journal.NewRing(journal.RingOptions{})
	if err := explain.Serve(mgr, ring); err != nil {
		t.Fatal(err)
	}
	run := journal.NewRun(ring, "1", "settings", object)
	run.Note(t.Context(), journal.StepEnded{Step: "Copy", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{{For: "ConfigMap default/other"}}}})
	run.Note(t.Context(), journal.Finished{Result: journal.ResultWaiting})

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the manager ended: %v", err)
		}
	})
	// Its servers are started side by side with all else, and nothing reports when they listen.
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for the metrics server: %v", err)
	}
	return "https://" + address
}
