// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
)

// An operator that "ctrlkit run" has started is explained, and has its page, whether or not it
// serves metrics: with the kubeconfig file of the run, and with the address of the run.
func TestOperatorOfARunIsFoundByItsKubeconfig(t *testing.T) {
	cluster, err := memory.Start(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Stop()) })
	socket := filepath.Join(filepath.Dir(cluster.Kubeconfig()), "ctrlkit-operator.sock") // as package run places it
	t.Setenv(localhost.SocketVariable, socket)
	t.Setenv("CTRLKIT_ENDPOINT", "")
	mgr, err := ctrl.NewManager(cluster.Config(), ctrl.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	must(t, err)
	address, err := pageOfRun(t.Context(), cluster.Config(), "unix://"+socket)
	must(t, err)
	if text := visit(t, address); !strings.Contains(text, "are not known") || !strings.Contains(text, "operator.Observe") {
		t.Errorf("before the operator has started, the page does not say how its steps become known:\n%.2000s", text)
	}
	must(t, operator.Observe(mgr))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the manager ended: %v", err)
		}
		if _, err := os.Stat(socket); err == nil {
			t.Error("the socket of the operator that has ended is there")
		}
	})
	note(t, journal.Observers(operator.ObserversOf(mgr)...), journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "settings"})

	if text, _ := ended(t, "explain", "configmap/settings", "--kubeconfig", cluster.Kubeconfig()); !strings.Contains(text, "ConfigMap default/other") {
		t.Errorf("explain knows nothing of the operator:\n%s", text)
	}
	if text, code := ended(t, "top", "--kubeconfig", cluster.Kubeconfig()); code != 0 || !strings.Contains(text, "controller settings: ") {
		t.Errorf("top knows nothing of the operator, and ends with %d:\n%s", code, text)
	}
	if text := visit(t, address); strings.Contains(text, "are not known") || !strings.Contains(text, "settings") {
		t.Errorf("the page of the run is not that of the operator:\n%.2000s", text)
	}
	must(t, os.Chmod(filepath.Dir(socket), 0o755)) // others may have put the socket there
	if text, _ := ended(t, "explain", "configmap/settings", "--kubeconfig", cluster.Kubeconfig()); strings.Contains(text, "ConfigMap default/other") {
		t.Errorf("explain asks at a socket in a directory of others:\n%s", text)
	}
}

// note passes the events of a step that waits to an observer.
func note(t *testing.T, observer journal.Observer, object journal.Object) {
	run := journal.NewRun(observer, "1", "settings", object)
	run.Note(t.Context(), journal.Started{})
	run.Note(t.Context(), journal.StepEnded{Step: "Copy", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{{For: "ConfigMap default/other"}}}})
	run.Note(t.Context(), journal.Finished{Result: journal.ResultWaiting})
}

// visit returns the page at an address with a key.
func visit(t *testing.T, address string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	response, err := (&http.Client{Jar: jar}).Get(address)
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return string(text)
}
