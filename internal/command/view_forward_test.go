// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

// The leader of an operator in a cluster is found by its Lease and reached as kubectl reaches a
// Pod: through the API server and the kubelet of the Pod's node.
func TestViewForwardsToTheLeader(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	t.Setenv("PATH", filepath.Dir(plane.Assets().Program("kubectl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	kubectl := kubectlOf(t, plane)
	apply := func(manifest string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		must(t, os.WriteFile(file, []byte(manifest), 0o600))
		kubectl("apply", "--server-side", "-f", file)
	}
	kubectl("apply", "-f", "testdata/guarded/reader.yaml")
	apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: viewed, namespace: default}\n")
	endpoint := serveGuarded(t, plane, journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "viewed"})
	kubelet := httptest.NewTLSServer(&forwarder{to: strings.TrimPrefix(endpoint, "https://"), path: "/portForward/forwarded/shop-1"})
	t.Cleanup(kubelet.Close)
	host, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	must(t, err)

	apply("apiVersion: v1\nkind: Node\nmetadata: {name: forwarding}\n")
	kubectl("patch", "node", "forwarding", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"addresses":[{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, host, port))
	apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: forwarded}\n")
	apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: forwarded}\n")
	for _, pod := range []string{"shop-0", "shop-1"} {
		apply("apiVersion: v1\nkind: Pod\nmetadata: {name: " + pod + ", namespace: forwarded}\nspec:\n  nodeName: forwarding\n  containers: [{name: operator, image: shop}]\n")
		kubectl("patch", "pod", pod, "-n", "forwarded", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running"}}`)
	}
	lease := "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: %s, namespace: forwarded}\nspec: {holderIdentity: %s, leaseDurationSeconds: 3600, renewTime: %q}\n"
	apply(fmt.Sprintf(lease, "shop", "shop-1_6f1c", "2099-01-01T00:00:00.000000Z"))
	apply(fmt.Sprintf(lease, "old", "shop-0_6f1c", "2020-01-01T00:00:00.000000Z"))

	f := &viewFlags{operatorFlags: operatorFlags{kubeconfig: run.Kubeconfig{File: plane.Kubeconfig()}, token: kubectl("create", "token", "explainer"), insecure: true}, remotePort: "8443"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.endpoint, err = f.forward(ctx, &cobra.Command{}, plane.Config(), "forwarded/shop")
	must(t, err)
	checkViewPasses(t, plane, f)

	for name, want := range map[string]string{
		"forwarded/none": "there is no Lease forwarded/none: kubectl get lease -n forwarded lists them",
		"forwarded/old":  "no Pod holds the Lease forwarded/old now",
	} {
		if _, err := f.forward(ctx, &cobra.Command{}, plane.Config(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", name, err, want)
		}
	}
	apply(fmt.Sprintf(lease, "gone", "shop-2_6f1c", "2099-01-01T00:00:00.000000Z"))
	if _, err := f.forward(ctx, &cobra.Command{}, plane.Config(), "forwarded/gone"); err == nil || !strings.Contains(err.Error(), `pods "shop-2" not found`) {
		t.Errorf("a leader whose Pod is gone: got the error %v", err)
	}
}

// forwarder is as much of a kubelet as forwards port 8443 of one Pod: to an address of this
// machine.
type forwarder struct{ to, path string }

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != f.path {
		http.NotFound(w, r)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // it has answered
	}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		if stream.Headers().Get("port") != "8443" {
			return fmt.Errorf("port %s", stream.Headers().Get("port"))
		}
		if stream.Headers().Get("streamType") == "data" {
			go f.copy(stream)
		}
		return nil
	})
	if connection != nil {
		<-connection.CloseChan()
	}
}

func (f *forwarder) copy(stream httpstream.Stream) {
	defer stream.Close() //nolint:errcheck // the other end may have closed it
	c, err := net.Dial("tcp", f.to)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(c, stream); _ = c.Close() }()
	_, _ = io.Copy(stream, c)
}
