// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ctrlkit/ctrlkit/operator"
)

// HTTP/2 is off unless it is enabled, also if an author's function configures TLS.
func TestFlagsOfHTTP2(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "http/1.1"},
		{[]string{"--enable-http2"}, "h2"},
	} {
		options := bound(t, manager.Options{}, test.args...)
		webhooks := options.WebhookServer.(*webhook.DefaultServer).Options //nolint:errcheck // a panic fails the test
		for name, apply := range map[string][]func(*tls.Config){"metrics": options.Metrics.TLSOpts, "webhooks": webhooks.TLSOpts} {
			config := &tls.Config{NextProtos: []string{"h2"}} // as controller-runtime has it
			for _, f := range apply {
				f(config)
			}
			if len(config.NextProtos) != 1 || config.NextProtos[0] != test.want {
				t.Errorf("%s with %q: %q, want %s", name, test.args, config.NextProtos, test.want)
			}
		}
	}
	address := serving(t, bound(t, manager.Options{}, "--metrics-secure"))
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if protocol := connection.ConnectionState().NegotiatedProtocol; protocol != "http/1.1" {
		t.Errorf("the metrics server speaks %q", protocol)
	}
	_ = connection.Close()
}

// A certificate that is given is served.
func TestFlagsOfCertificates(t *testing.T) {
	dir := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("given.example.com", nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"crt.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options := bound(t, manager.Options{}, "--metrics-secure", "--metrics-cert-path="+dir, "--metrics-cert-name=crt.pem", "--metrics-cert-key=key.pem", "--webhook-cert-path="+dir)
	connection, err := tls.Dial("tcp", serving(t, options), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // only read from
	if err := connection.ConnectionState().PeerCertificates[0].VerifyHostname("given.example.com"); err != nil {
		t.Error(err)
	}
	if got := options.WebhookServer.(*webhook.DefaultServer).Options; got.CertDir != dir || got.CertName != "tls.crt" || got.KeyName != "tls.key" {
		t.Errorf("webhooks use %+v", got)
	}
}

// Plain metrics are not for the names of other sites; those of this machine pass.
func TestMetricsOfOtherSites(t *testing.T) {
	address := serving(t, bound(t, manager.Options{}))
	for host, want := range map[string]int{"rebound.example.com": http.StatusForbidden, "localhost:8080": http.StatusOK, "": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("for %q: %s, want %d", host, response.Status, want)
		}
	}
}

// What an author has chosen is the default, and stays.
func TestFlagsKeepWhatThereIs(t *testing.T) {
	asked := false
	given := manager.Options{
		Metrics: metricsserver.Options{BindAddress: ":9090", SecureServing: true, CertName: "a.crt", FilterProvider: nil}, HealthProbeBindAddress: ":9091",
		WebhookServer: webhook.NewServer(webhook.Options{Port: 9999}),
	}
	given.Metrics.TLSOpts = []func(*tls.Config){func(*tls.Config) { asked = true }}
	got := bound(t, given)
	for _, f := range got.Metrics.TLSOpts {
		f(&tls.Config{})
	}
	if m := got.Metrics; m.BindAddress != ":9090" || !m.SecureServing || m.CertName != "a.crt" || got.HealthProbeBindAddress != ":9091" || got.WebhookServer != given.WebhookServer || !asked {
		t.Errorf("got %+v", got)
	}
}

// bound returns options as arguments set them.
func bound(t *testing.T, options manager.Options, args ...string) manager.Options {
	t.Helper()
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	operator.BindFlags(flags, &options)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return options
}

// serving runs a metrics server until the test ends, and returns its address.
func serving(t *testing.T, options manager.Options) (address string) {
	t.Helper()
	options.Metrics.BindAddress = "127.0.0.1:0"
	server, err := metricsserver.NewServer(options.Metrics, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	listens := server.(interface{ GetBindAddr() string }) //nolint:errcheck // a panic fails the test
	// Nothing reports when it listens.
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		address = listens.GetBindAddr()
		return address != "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return address
}
