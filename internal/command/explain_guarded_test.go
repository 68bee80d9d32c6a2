// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
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
	"github.com/ctrlkit/ctrlkit/internal/command/commandtest"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
)

// An operator that guards its metrics explains only to clients that may read the path.
func TestExplainIsGuardedLikeMetrics(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	kubectl := kubectlOf(t, plane)
	kubectl("apply", "-f", "testdata/guarded/reader.yaml")
	kubectl("create", "serviceaccount", "stranger", "-n", "default")
	kubectl("create", "configmap", "settings", "-n", "default")
	endpoint := serveGuarded(t, plane, journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "settings"})

	d := &demo{kubeconfig: plane.Kubeconfig()}
	for _, test := range []struct{ name, token, want string }{
		{"who may", kubectl("create", "token", "explainer"), "Copy waits for ConfigMap default/other"},
		{"who may not", kubectl("create", "token", "stranger"), "answers 403 Forbidden: set CTRLKIT_TOKEN or --token-file to a token that allows to get /debug/ctrlkit/explain"},
		{"who is unknown", "made-up", "answers 500 Internal Server Error: Authentication failed"},
		{"who has no token", "", "answers 401 Unauthorized: set CTRLKIT_TOKEN or --token-file to a token"},
	} {
		output, _, _ := d.run(t, "configmap/settings", "-n", "default", "--endpoint", endpoint, "--insecure", "--token", test.token)
		if !strings.Contains(output, test.want) {
			t.Errorf("%s: want %q:\n%s", test.name, test.want, output)
		}
	}
}

// The page of an operator needs a token for each of its addresses, and "ctrlkit view" passes it on.
func TestPageIsGuardedLikeMetrics(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	kubectl := kubectlOf(t, plane)
	kubectl("apply", "-f", "testdata/guarded/reader.yaml")
	kubectl("create", "serviceaccount", "guest", "-n", "default")
	kubectl("create", "configmap", "viewed", "-n", "default")
	endpoint := serveGuarded(t, plane, journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "viewed"})
	may, mayNot := kubectl("create", "token", "explainer"), kubectl("create", "token", "guest")

	paths := []string{"", "page.css", "page.js", "objects", "objects?stream=1", "object?kind=ConfigMap&namespace=default&name=viewed", "timeline?kind=ConfigMap&namespace=default&name=viewed"}
	for _, path := range paths {
		for token, want := range map[string]int{may: http.StatusOK, mayNot: http.StatusForbidden, "": http.StatusUnauthorized} {
			if got := getWithToken(t, endpoint+view.Path+path, token); got != want {
				t.Errorf("GET %s with the token of %.8s…: %d, want %d", path, token, got, want)
			}
		}
	}

	checkViewPasses(t, plane, &viewFlags{operatorFlags: operatorFlags{endpoint: endpoint, token: may, insecure: true}})
}

// checkViewPasses checks that a page of this machine passes the token on, and wants a key itself.
func checkViewPasses(t *testing.T, plane *controlplane.ControlPlane, f *viewFlags) {
	t.Helper()
	page, from, err := f.page(t.Context(), plane.Config())
	if err != nil || !strings.Contains(from, "The operator at") {
		t.Fatalf("%q, error %v", from, err)
	}
	g := newGuarded(page)
	server := httptest.NewServer(g)
	defer server.Close()
	jar, _ := cookiejar.New(nil) //nolint:errcheck // it has no options
	client := &http.Client{Jar: jar}
	for _, test := range []struct {
		path, want string
		code       int
	}{
		{"/objects", "it has a key", http.StatusUnauthorized},
		{"/objects?key=wrong", "it has a key", http.StatusUnauthorized},
		{"/?key=" + g.key, "Overview", http.StatusOK},
		{"/object?kind=ConfigMap&namespace=default&name=viewed", "ConfigMap default/other", http.StatusOK},
		{"/page.js", "EventSource", http.StatusOK},
	} {
		response, err := client.Get(server.URL + test.path)
		must(t, err)
		body, _ := io.ReadAll(response.Body) //nolint:errcheck // the body is compared
		_ = response.Body.Close()
		if response.StatusCode != test.code || !strings.Contains(string(body), test.want) {
			t.Errorf("%s: %s, want %d with %q:\n%s", test.path, response.Status, test.code, test.want, body)
		}
	}
	second := newGuarded(page) // another page on this machine, in the same browser
	other := httptest.NewServer(second)
	defer other.Close()
	for _, address := range []string{other.URL + "/?key=" + second.key, server.URL + "/objects"} {
		response, err := client.Get(address)
		must(t, err)
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("with two pages: %s answers %s", address, response.Status)
		}
	}
	response, err := client.Get(server.URL + "/objects?stream=1") // the first event comes before the stream ends
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || line != "event: patch\n" {
		t.Errorf("the stream begins with %q, error %v", line, err)
	}
}

func getWithToken(t *testing.T, address, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: (&operatorFlags{insecure: true}).transport()}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	must(t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

// kubectlOf returns a function that runs kubectl, and returns what it prints.
func kubectlOf(t *testing.T, plane *controlplane.ControlPlane) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), plane.Assets().Program("kubectl"), append([]string{"--kubeconfig", plane.Kubeconfig()}, args...)...)
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(output))
	}
}

// serveGuarded runs a manager that knows of an object that waits, until the test ends.
func serveGuarded(t *testing.T, plane *controlplane.ControlPlane, object journal.Object) (endpoint string) {
	t.Helper()
	address, err := commandtest.FreePort()
	must(t, err)
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{
		Logger: logr.Discard(),
		Metrics: metricsserver.Options{
			BindAddress: address, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
	})
	must(t, err)
	must(t, operator.Observe(mgr, operator.WithPage()))
	note(t, journal.Observers(operator.ObserversOf(mgr)...), object)

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
