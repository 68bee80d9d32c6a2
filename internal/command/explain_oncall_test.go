// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// says runs "ctrlkit explain" and wants parts of what it says, an error included.
func (d *demo) says(t *testing.T, args string, code int, wants ...string) string {
	t.Helper()
	output, got, err := d.run(t, strings.Fields(args)...)
	if err != nil {
		output += err.Error()
	}
	if got != code {
		t.Errorf("%s: exit code %d, want %d", args, got, code)
	}
	for _, want := range wants {
		if !strings.Contains(output, want) {
			t.Errorf("%s: want %q", args, want)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
	return output
}

func TestExplainNamesNearKinds(t *testing.T) {
	d := newDemo(t)
	for kind, near := range map[string]string{
		"rwexternl": `; did you mean "rwexternal"?`, "RWExternl": `; did you mean "rwexternal"?`, "rwexternalss": `; did you mean "rwexternals"?`, "secert": `; did you mean "secret"?`,
		"rwexternals.demo.ctrlkit.def": `; did you mean "rwexternals.demo.ctrlkit.dev"?`, "rwexternals.v1.demo.ctrlkt.dev": "", "rwexternal.example.com": `; did you mean "rwexternal.demo.ctrlkit.dev"?`,
		"elephant": ": is its definition installed? kubectl api-resources lists the kinds there are",
	} {
		d.says(t, kind+"/waits --endpoint none", 1, `finding out what "`+kind+`" is: the API server serves no such kind`+near)
	}
	// An operator that does not know it either changes nothing.
	d.says(t, "rwexternl/waits --endpoint "+listen(t, explained(t)), 1, `did you mean "rwexternal"?`)
}

func TestExplainOfKindsWithoutConditions(t *testing.T) {
	d := newDemo(t)
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}}}
	if _, err := d.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	output := d.says(t, "secret/s --endpoint "+listen(t, explained(t)), 0, "Secret default/s exists\n  A Secret has no conditions: explain the object whose operator reads or writes it\n")
	if strings.Contains(output, "operator runs") {
		t.Error(output)
	}
}

// A definition that was removed takes its objects with it. That is another thing than an object
// that was deleted.
func TestExplainOfARemovedDefinition(t *testing.T) {
	d := newDemo(t)
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	endpoint := listen(t, explained(t))
	d.says(t, "rwexternal/gone --endpoint "+endpoint, 1, "RWExternal default/gone does not exist\n")
	must(t, d.dynamic.Resource(definitions).Delete(t.Context(), "rwexternals.demo.ctrlkit.dev", metav1.DeleteOptions{}))
	for _, kind := range []string{"rwexternal", "rwexternals", "RWExternal", "rwexternals.demo.ctrlkit.dev", "rwexternals.v1.demo.ctrlkit.dev"} {
		output := d.says(t, kind+"/waits --endpoint "+endpoint, 1,
			"RWExternal default/waits can't be read: the API server serves no RWExternal any more: its definition was removed, and the objects with it; install it again", "ReadInput waits for Secret default/missing")
		if strings.Contains(output, "does not exist") {
			t.Error(output)
		}
	}
	d.says(t, "rwexternals.example.com/waits --endpoint "+endpoint, 1, "the API server serves no such kind")
	d.says(t, "rwexternal/other --endpoint "+endpoint, 1, "the API server serves no such kind")
	d.says(t, "rwexternal/waits --endpoint none", 1, "the API server serves no such kind")
}

// What the operator knows is shown, with the error of the API server beside it.
func TestExplainWithoutAnAPIServer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	refuses := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	for name, server := range map[string]struct{ url, want string }{"dead": {closed.URL, "connection refused"}, "refuses": {refuses.URL, "asking the API server at "}} {
		t.Run(name, func(t *testing.T) {
			d := &demo{kubeconfig: filepath.Join(t.TempDir(), "config")}
			writeKubeconfig(t, d.kubeconfig, server.url)
			endpoint := listen(t, explained(t))
			d.says(t, "rwexternal/waits --endpoint "+endpoint, 1, `RWExternal default/waits can't be read: finding out what "rwexternal" is: `, server.want, "ReadInput waits for Secret default/missing", "Steps of controller rwexternal")
			d.says(t, "rwexternal/nothing --endpoint "+endpoint, 1, server.want, "; and the operator at "+endpoint+" knows no rwexternal default/nothing")
			d.says(t, "rwexternal/waits --endpoint "+closed.URL, 1, server.want, "; and the operator does not answer at "+closed.URL)
			output, _, _ := d.run(t, "rwexternal/waits", "-o", "json", "--endpoint", endpoint)
			var x explanation.Explanation
			if err := json.Unmarshal([]byte(output), &x); err != nil || !strings.Contains(x.NoObject, server.want) || x.Report == nil {
				t.Errorf("in JSON, error %v: %s", err, output)
			}
		})
	}
}

// A kind that may not be read is explained by what the operator knows.
func TestExplainOfAnObjectThatMayNotBeRead(t *testing.T) {
	d := newDemo(t)
	d.refuse = "/rwexternals/"
	d.says(t, "rwexternal/waits --endpoint "+listen(t, explained(t)), 1, "RWExternal default/waits can't be read: reading RWExternal waits: ", "ReadInput waits for Secret default/missing")
	d.says(t, "rwexternal/waits --endpoint none", 1, "reading RWExternal waits: ")
}

// follower answers like a replica that is not the leader.
func follower(host, namespace string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(explanation.LeaderHeader, "false")
		w.Header().Set(explanation.HostHeader, host)
		w.Header().Set(explanation.NamespaceHeader, namespace)
		http.Error(w, explanation.Unknown+" of it: this process is not the leader", http.StatusNotFound)
	})
}

// The shard that is asked names the one that has the object, also when it knows something itself.
func TestExplainNamesTheShard(t *testing.T) {
	d := newDemo(t)
	const label, drain = "shard.alpha.sharding.timebertt.dev/things", "drain.alpha.sharding.timebertt.dev/things"
	shard := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, value := range map[string]string{
				explanation.ShardHeader: "op-a", explanation.RingHeader: "things", explanation.AssignedHeader: label, explanation.DrainHeader: drain,
				explanation.HostHeader: "op-a", explanation.NamespaceHeader: "ops",
			} {
				w.Header().Set(name, value)
			}
			next.ServeHTTP(w, r)
		})
	}
	knows := listen(t, shard(explained(t)))
	unknown := listen(t, shard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, explanation.Unknown+" of it", http.StatusNotFound)
	})))
	const none, other = "The object is assigned to no shard, it has no label " + label, `The object is assigned to shard "op-b": kubectl port-forward -n ops pod/op-b 8443`
	d.says(t, "rwexternal/waits --endpoint "+knows, 1, none, "ReadInput waits for Secret default/missing")
	d.says(t, "rwexternal/waits --endpoint "+unknown, 1, none, "Steps and causes are not known")
	patch := []byte(`{"metadata":{"labels":{"` + label + `":"op-b"}}}`)
	_, err := d.dynamic.Resource(schema.GroupVersionResource{Group: "demo.ctrlkit.dev", Version: "v1", Resource: "rwexternals"}).
		Namespace("default").Patch(t.Context(), "waits", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	d.says(t, "rwexternal/waits --endpoint "+knows, 1, other, "ReadInput waits for Secret default/missing")
	d.says(t, "rwexternal/waits --endpoint "+unknown, 1, other)
}

func TestExplainNamesTheLeader(t *testing.T) {
	d := newDemo(t)
	client := kubernetes.NewForConfigOrDie(d.config)
	lease := func(name, holder string, renewed time.Duration) {
		t.Helper()
		seconds := int32(15)
		at := metav1.NewMicroTime(time.Now().Add(-renewed))
		_, err := client.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	lease("op.example.com", "operator-5f9c-x2x2x_0123", time.Second)
	lease("old.example.com", "former-5f9c-x2x2x_0123", time.Hour)
	lease("a.example.com", "twin-5f9c-x2x2x_0123", time.Second)
	lease("b.example.com", "twin-5f9c-y2y2y_0123", time.Second)
	lease("c.example.com", "odd-5f9c-$(x)_0123", time.Second)
	const find = "; kubectl get lease -n default names the leader in its column HOLDER"
	for host, want := range map[string]string{
		"operator-5f9c-abcde": "; the leader is operator-5f9c-x2x2x, says Lease default/op.example.com: kubectl port-forward -n default pod/operator-5f9c-x2x2x 8443",
		"operator-77aa-abcde": "; the leader is operator-5f9c-x2x2x, says Lease",
		"another-5f9c-abcde":  find, "former-5f9c-abcde": find, "twin-5f9c-abcde": find, "odd-5f9c-abcde": find, "host": find,
	} {
		d.says(t, "rwexternal/waits --endpoint "+listen(t, follower(host, "default")), 1, "this process is not the leader"+want)
	}
	d.says(t, "rwexternal/waits --endpoint "+listen(t, follower("operator-5f9c-abcde", "")), 1, "; the leader is operator-5f9c-x2x2x, says Lease default/op.example.com\n")
	d.says(t, "rwexternal/waits --endpoint "+listen(t, follower("operator-5f9c-abcde", "$(x)")), 1, "; the leader is operator-5f9c-x2x2x, says Lease default/op.example.com\n")
	d.refuse = "/leases"
	d.says(t, "rwexternal/waits --endpoint "+listen(t, follower("operator-5f9c-abcde", "default")), 1, find+" (reading it: ")
}

// JSON has no control characters either, and keeps them.
func TestExplainInJSONHasNoControlCharacters(t *testing.T) {
	const message = "a\x1b[2J\u009b31m\u202e\u2066\U000e0041\x7fé\n🙂"
	var text strings.Builder
	must(t, writeJSON(&text, map[string]string{"message": message}))
	for _, r := range text.String() {
		if !unicode.IsGraphic(r) && r != '\n' {
			t.Errorf("%U in %q", r, text.String())
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(text.String()), &back); err != nil || back["message"] != message {
		t.Errorf("it has become %q (%v)", back["message"], err)
	}
}

// The exit codes that docs/operate.md lists.
func TestExplainExitCodes(t *testing.T) {
	d := newDemo(t)
	for args, want := range map[string]int{
		"rwexternal/divide": 0, "rwexternal/divide -o json": 0, "rwexternal/waits": 1, "rwexternal/waits -o json": 1, "rwexternal/nothing": 1, "rwexternl/waits": 1,
		"rwexternal": 2, "rwexternal/waits -o yaml": 2, "rwexternal/waits --nothing": 2, "rwexternal/waits --context other": 1,
	} {
		if output, code, err := d.run(t, append(strings.Fields(args), "--endpoint", "none")...); code != want {
			t.Errorf("%s: exit code %d, want %d (%v)\n%s", args, code, want, err, output)
		}
	}
}

func writeKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	config := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
		clusters: [{name: a, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}], users: [{name: a, user: {token: of-the-kubeconfig}}]}`
	if strings.HasPrefix(server, "http:") {
		config = strings.Replace(config, ", insecure-skip-tls-verify: true", "", 1)
	}
	must(t, os.WriteFile(file, []byte(config), 0o600))
}
