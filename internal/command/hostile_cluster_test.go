// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets/secretstest"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A hostileCluster has hostile text in every field that an API server takes it in, and values of
// Secrets in every form beside them.
type hostileCluster struct {
	text       string
	server     *apiserver.Server
	kubeconfig string
	operator   string // the address of what its operator serves
	objects    []map[string]any
}

// hostileText has characters that act, markup of HTML and Markdown, lines that look like those of
// others, and is long.
func hostileText() string {
	long := 64 << 10
	if rings.Exploring() {
		long = 1 << 20
	}
	return strings.Join([]string{
		"red \x1b[31mred\x1b]0;title\a\x1b]8;;http://forged\a\u009b2J\b\x7f", "\u202e\u2066\u200f\u200b\u2028\U000e0001",
		`<img src=x onerror=FORGED><script>FORGED()</script>" onmouseover="FORGED`, "[FORGED](http://forged) ![FORGED](javascript:FORGED) `FORGED`",
		"\nFORGED a line\r\nFORGED another\n```\n# FORGED\n---\nkind: FORGED\n", strings.Repeat("long ", long/len("long ")),
	}, " ")
}

// key is hostile text that is as long as a key may be that YAML reads.
func (c *hostileCluster) key() string { return c.text[:strings.Index(c.text, " long")] }

// note is hostile text that is short enough for an annotation beside those of kubectl.
func (c *hostileCluster) note() string { return c.text[:min(len(c.text), 64<<10)] }

func newHostileCluster(t *testing.T) *hostileCluster {
	t.Helper()
	c := &hostileCluster{text: hostileText(), server: apiserver.New(apiserver.Options{}), kubeconfig: filepath.Join(t.TempDir(), "config")}
	c.define()
	c.add("v1", "Namespace", "vaults", nil)
	c.add("recorded.ctrlkit.dev/v1", "Vault", "main", map[string]any{
		"spec": map[string]any{"token": "main-token", "text": c.text, "x" + c.key(): c.text},
		"status": map[string]any{"phase": c.text, "conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": c.text, "message": c.text, "lastTransitionTime": "2026-01-01T00:00:00Z"},
			map[string]any{"type": c.text, "status": c.text, "reason": c.text, "message": c.text, "lastTransitionTime": c.text},
		}},
	})
	c.add("v1", "Secret", "credentials", map[string]any{"type": "Opaque", "data": map[string]any{"user": base64.StdEncoding.EncodeToString([]byte("postgres"))}})
	c.addCanaries()
	c.add("v1", "Event", "event", map[string]any{
		"type": "Warning", "reason": c.text, "message": c.text, "action": c.text, "count": int64(3), "reportingComponent": c.text, "lastTimestamp": "2026-01-01T00:00:00Z",
		"involvedObject": map[string]any{"apiVersion": "recorded.ctrlkit.dev/v1", "kind": "Vault", "namespace": "vaults", "name": "main", "uid": "vaults-2", "fieldPath": c.text},
	})
	for _, content := range c.objects {
		must(t, c.server.Import(content))
	}
	proxy := &httputil.ReverseProxy{Transport: c.server, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "memory"
	}}
	secure := httptest.NewUnstartedServer(proxy)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the commands end with connections that they have not used
	secure.StartTLS()
	t.Cleanup(secure.Close)
	writeKubeconfig(t, c.kubeconfig, secure.URL)
	c.operator = c.serveOperator(t)
	return c
}

// add adds an object as a server has it that checks nothing.
func (c *hostileCluster) add(apiVersion, kind, name string, fields map[string]any) map[string]any {
	number := len(c.objects) + 1
	metadata := map[string]any{
		"name": name, "uid": fmt.Sprintf("vaults-%d", number), "resourceVersion": fmt.Sprint(number), "creationTimestamp": "2026-01-01T00:00:00Z", "generation": int64(1),
		"annotations": map[string]any{"example.com/note": c.note()},
		"managedFields": []any{map[string]any{
			"manager": c.text, "operation": "Update", "apiVersion": apiVersion, "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:text": map[string]any{}, "f:" + c.key(): map[string]any{}}},
		}},
	}
	switch kind {
	case "Namespace":
	case "CustomResourceDefinition":
		delete(metadata, "managedFields") // also an import checks those of definitions
	default:
		metadata["namespace"] = "vaults"
	}
	content := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for field, value := range fields {
		content[field] = value
	}
	c.objects = append(c.objects, content)
	return content
}

func (c *hostileCluster) define() {
	c.add("apiextensions.k8s.io/v1", "CustomResourceDefinition", vaultKindName, map[string]any{"spec": map[string]any{
		"group": vaultKind.Group, "scope": "Namespaced", "names": map[string]any{"kind": "Vault", "plural": "vaults", "singular": "vault", "listKind": "VaultList"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": c.text, "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}})
}

// addCanaries adds two Secrets, and what has their values in every form.
func (c *hostileCluster) addCanaries() {
	data, written, env := map[string]any{}, map[string]any{}, []any{}
	for i, canary := range secretstest.Canaries {
		data[fmt.Sprint("key-", i)] = base64.StdEncoding.EncodeToString([]byte(canary))
		for j, name := range secretstest.Names() {
			text := "it is x=" + secretstest.Forms[name](canary) + " !"
			written[fmt.Sprintf("written-%d-%d", i, j)] = text
			env = append(env, map[string]any{"name": fmt.Sprintf("WRITTEN_%d_%d", i, j), "value": text})
		}
	}
	applied := func(content map[string]any) map[string]any {
		text, err := json.Marshal(map[string]any{"data": content["data"], "stringData": written, "metadata": map[string]any{"annotations": map[string]any{}}})
		if err != nil {
			panic(err) // it consists of texts
		}
		annotations := content["metadata"].(map[string]any)["annotations"].(map[string]any) //nolint:errcheck // made by add
		annotations[corev1.LastAppliedConfigAnnotation] = string(text)
		annotations["example.com/password"] = secretstest.Canaries[0]
		return content
	}
	applied(c.add("v1", "Secret", "db", map[string]any{"type": "Opaque", "data": data}))
	applied(c.add("v1", "Secret", "main-token", map[string]any{"type": "Opaque", "data": map[string]any{"token": data["key-0"]}}))
	applied(c.add("v1", "ConfigMap", "rendered", map[string]any{"data": written}))
	c.add("v1", "ConfigMap", "main-settings", map[string]any{"data": map[string]any{"url": "https://vault:" + secretstest.Canaries[7] + "@old", "text": c.text}})
	c.add("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "web", "image": "web", "env": env, "args": []any{c.text}}},
		}},
	}})
}

// file returns a file with the objects, as kubectl writes them.
func (c *hostileCluster) file(t *testing.T) string {
	var all []any
	for _, content := range c.objects {
		if content["kind"] != "Event" {
			all = append(all, content)
		}
	}
	return c.write(t, "cluster.yaml", all...)
}

// change returns a file with a change of a Secret, as users write it, and of what has its values.
func (c *hostileCluster) change(t *testing.T) string {
	written := map[string]any{}
	for i, name := range secretstest.Names() {
		written[fmt.Sprintf("written-0-%d", i)] = "changed: " + secretstest.Forms[name](secretstest.Canaries[1])
	}
	metadata := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": "vaults", "annotations": map[string]any{"example.com/note": "changed " + c.note(), "example.com/password": secretstest.Canaries[1]}}
	}
	return c.write(t, "change.yaml",
		map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata("main-token"), "stringData": map[string]any{"token": secretstest.Canaries[1]}},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("rendered"), "data": written},
	)
}

// recording returns the file that is recorded of the cluster.
func (c *hostileCluster) recording(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "stuck.yaml")
	c.run(t, "text", "record", "-o", file, "vault/main", "-n", "vaults", "--endpoint", noEndpoint)
	return file
}

// document returns the file of a document of the language.
func (c *hostileCluster) document(t *testing.T) string {
	return writeDocument(t, "hostile.ctrlkit", "operator hostile\n"+c.text)
}

// write writes documents of JSON, which are YAML, to a file.
func (c *hostileCluster) write(t *testing.T, name string, documents ...any) string {
	t.Helper()
	var text strings.Builder
	for i, document := range documents {
		content, err := json.Marshal(document)
		must(t, err)
		if i > 0 {
			text.WriteString("\n---\n")
		}
		text.WriteString(printable.Text(string(content)))
	}
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// observe passes the events of an operator that has read the hostile cluster to an observer.
func (c *hostileCluster) observe(t *testing.T, observer journal.Observer) {
	vault := journal.Object{Group: vaultKind.Group, Kind: vaultKind.Kind, Namespace: "vaults", Name: "main"}
	err := errors.New(c.text)
	outcome := journal.Outcome{Err: err, Class: string(failure.ClassInvalid), Remedy: c.text, Waits: []journal.Wait{{For: c.text}}, Stalled: c.text}
	run := journal.NewRun(observer, "1", "vault", vault)
	for _, event := range []journal.Event{
		journal.Started{Generation: 1, ResourceVersion: "2", Finalizer: vaultFinalizer, Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Object: vault}}},
		journal.Read{Step: "open", Object: vault, Err: err}, journal.Called{Step: "open", What: c.text, Duration: time.Second, Err: err},
		journal.Wrote{Step: "open", Verb: "patch", Object: vault, Fields: []string{c.text}}, journal.Gated{Reason: c.text, Message: c.text},
		journal.ActionEnded{Step: "open", Action: "dial", Outcome: outcome}, journal.ActionBlocked{Step: "open", Action: "wait", By: []string{c.text}},
		journal.HotLoop{Reconciles: 9, Within: time.Minute, Fields: []string{c.text}, Managers: []string{c.text}},
		journal.Requeued{After: time.Second, Why: c.text}, journal.StepEnded{Step: "open", Phase: journal.PhaseDo, Outcome: outcome},
		journal.Finished{Result: journal.ResultFailed, Outcome: outcome, Duration: time.Second},
	} {
		run.Note(t.Context(), event)
	}
}

// page returns the page of that operator.
func (c *hostileCluster) page(t *testing.T) http.Handler {
	t.Helper()
	cluster, err := view.NewCluster(t.Context(), c.server.Config(), "vaults", schema.GroupKind{Group: vaultKind.Group, Kind: vaultKind.Kind})
	must(t, err)
	ring, activity := journal.NewRing(journal.RingOptions{}), view.NewActivity()
	c.observe(t, journal.Observers(ring, activity))
	return view.New(view.Options{Name: c.text, Objects: cluster, Activity: activity, Entries: ring.Entries, Known: ring.Objects, Queues: func() map[string]int { return map[string]int{"vault": 1} }})
}
