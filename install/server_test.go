// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Every replica serves webhooks, and a client that trusts the caBundle can call them.
func TestServer(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	must(t, listener.Close())
	mgr, err := ctrl.NewManager(w.server.Config(), ctrl.Options{
		WebhookServer: w.rotator(w.server.Config()).Server(webhook.Options{Host: "127.0.0.1", Port: port}),
		Metrics:       metricsserver.Options{BindAddress: "0"},
	})
	must(t, err)
	hooks := mgr.GetWebhookServer()
	hooks.Register("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "called") }))
	if elected, ok := hooks.(manager.LeaderElectionRunnable); !ok || elected.NeedLeaderElection() || hooks.StartedChecker()(nil) == nil {
		t.Error("it waits for an election, or is ready before it starts")
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for hooks.StartedChecker()(nil) != nil {
		time.Sleep(time.Millisecond)
	}

	config := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	must(t, w.user.Get(ctx, client.ObjectKeyFromObject(config), config))
	roots, err := certutil.NewPoolFromBytes(config.Webhooks[0].ClientConfig.CABundle)
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: dnsName}}
	response, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("https://127.0.0.1:%d/", port))
	must(t, err)
	must(t, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %s", response.Status)
	}
	transport.CloseIdleConnections()
	stop()
	must(t, <-ended)
}

// Start rotates until its context ends, and soon tries again what has failed.
func TestStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		ctx, stop := context.WithCancel(w.ctx)
		ended := make(chan error, 1)
		must(t, w.user.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}, Data: map[string][]byte{"a": []byte("b")}}))
		go func() { ended <- a.Start(ctx) }()
		time.Sleep(time.Hour)
		if a.Ready(nil) == nil {
			t.Error("it is ready with the Secret of another")
		}
		must(t, w.user.Delete(ctx, w.secret()))
		time.Sleep(3 * time.Hour) // a tenth of the interval, and a tenth of that
		must(t, a.Ready(nil))
		first := a.leaf()
		time.Sleep(65 * day)
		if a.leaf().Equal(first) {
			t.Error("it serves what it has made 65 days ago")
		}
		stop()
		must(t, <-ended)
	})
}
