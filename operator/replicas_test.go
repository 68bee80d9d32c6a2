// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/step"
)

// The variables of a process that is a replica.
const (
	replicaVariable = "CTRLKIT_TEST_REPLICA" // its name
	systemVariable  = "CTRLKIT_TEST_SYSTEM"  // where it calls
)

func TestMain(m *testing.M) {
	if name := os.Getenv(replicaVariable); name != "" {
		fmt.Fprintln(os.Stderr, "replica", name, "has ended:", replica(ctrl.SetupSignalHandler(), name, os.Getenv(systemVariable)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// byAnnotation names the replica that has written an object last.
const byAnnotation = "test.ctrlkit.dev/by"

// begunHeader says when a replica has begun a call.
const begunHeader = "Begun"

// replica is an operator that again and again writes each object and calls a system.
func replica(ctx context.Context, name, system string) error {
	options := ctrl.Options{
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: "default", Metrics: server.Options{BindAddress: "0"},
		LeaseDuration: new(6 * time.Second), RenewDeadline: new(4 * time.Second), RetryPeriod: new(time.Second),
	}
	mgr, err := operator.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		return err
	}
	engine, err := step.New(step.Options[*corev1.ConfigMap]{Name: "replica", Client: mgr.GetClient(), Controller: controller.Options{MaxConcurrentReconciles: 5}},
		step.Step[*corev1.ConfigMap]{Name: "Waiting", Do: func(ctx context.Context, _ *step.Request[*corev1.ConfigMap]) error {
			select {
			case <-time.After(20 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}},
		step.Step[*corev1.ConfigMap]{Name: "Calling", Do: func(ctx context.Context, req *step.Request[*corev1.ConfigMap]) error {
			if req.Object.Labels["managed"] == "" {
				return nil
			}
			call, err := http.NewRequestWithContext(ctx, http.MethodPost, system+"/"+name, nil)
			if err != nil {
				return err
			}
			call.Header.Set(begunHeader, time.Now().Format(time.RFC3339Nano))
			answer, err := http.DefaultClient.Do(call)
			if err != nil {
				return err
			}
			_ = answer.Body.Close()
			metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, byAnnotation, name)
			metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "test.ctrlkit.dev/at", time.Now().String())
			return ctrlkit.RequeueWithin(20 * time.Millisecond)
		}})
	if err != nil {
		return err
	}
	if err := engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// A counter counts what each replica does.
type counter struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

// A leader that was stopped for longer than its Lease, and resumed beside its successor, writes
// nothing and calls nothing.
func TestStoppedLeader(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := planetest.Start(t, controlplane.Options{})
	calls := &counter{seen: map[string]int{}}
	var stopped atomic.Pointer[time.Time] // what was under way then can't be held back
	system := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun, err := time.Parse(time.RFC3339Nano, r.Header.Get(begunHeader))
		if at := stopped.Load(); at == nil || err != nil || begun.After(*at) {
			calls.add("call of " + r.URL.Path[1:])
		}
	}))
	defer system.Close()
	user, err := client.NewWithWatch(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("object-", i), Labels: map[string]string{"managed": "yes"}}}
		if err := user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	watch, err := user.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	go func() {
		for event := range watch.ResultChan() {
			if obj, ok := event.Object.(*corev1.ConfigMap); ok {
				calls.add("write of " + obj.Annotations[byAnnotation])
			}
		}
	}()
	kubeconfig := writeKubeconfig(t, plane.Config())
	a := startReplica(t, "a", kubeconfig, system.URL)
	await(t, "the first replica works", func() bool { return calls.of("write of a") > 20 })
	startReplica(t, "b", kubeconfig, system.URL)
	signal(t, a, syscall.SIGSTOP)
	stopped.Store(new(time.Now()))
	await(t, "the second replica works", func() bool { return calls.of("write of b") > 20 })
	called, wrote := calls.of("call of a"), calls.of("write of a")
	signal(t, a, syscall.SIGCONT)
	if err := a.Wait(); err == nil { // when it has not renewed its Lease in time
		t.Error("the former leader has ended without an error")
	}
	before := calls.of("write of b")
	await(t, "the second replica works on", func() bool { return calls.of("write of b") > before+20 }) // and the watch has what came before
	if n := calls.of("call of a") - called; n > 0 {
		t.Errorf("the former leader has called the system %d times", n)
	}
	if n := calls.of("write of a") - wrote; n > 0 {
		t.Errorf("the former leader has written %d times", n)
	}
}

func startReplica(t *testing.T, name, kubeconfig, system string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), replicaVariable+"="+name, systemVariable+"="+system, "KUBECONFIG="+kubeconfig)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"x": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
