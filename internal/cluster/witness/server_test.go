// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const ours = "ctrlkit"

// server is one of the two API servers.
type server struct {
	name   string
	client dynamic.Interface
	owner  string // the UID of ConfigMap owner
}

func memoryServer(t testing.TB) *server {
	t.Helper()
	crds := envtest.CRDInstallOptions{Paths: []string{"testdata/crd.yaml"}, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&crds); err != nil {
		t.Fatal(err)
	}
	s := apiserver.New(apiserver.Options{})
	if err := s.Install(crds.CRDs...); err != nil {
		t.Fatal(err)
	}
	return newServer(t, "memory", s.Config())
}

func realServer(t *testing.T) *server {
	t.Helper()
	rings.Test(t, "starts a control plane")
	plane := planetest.Start(t, controlplane.Options{CRDs: []string{"testdata/crd.yaml"}})
	config := rest.CopyConfig(plane.Config())
	config.QPS = -1
	return newServer(t, "real", config)
}

func newServer(t testing.TB, name string, config *rest.Config) *server {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "owner"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &server{name: name, client: client, owner: string(owner.GetUID())}
}

// resources are those of the kinds in the cases.
var resources = map[string]string{
	"Deployment": "deployments", "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "Pod": "pods", "Thing": "things",
}

// A child is an object of a case on a server. Its methods end the test if the server refuses.
type child struct {
	t       testing.TB
	api     dynamic.ResourceInterface
	clients dynamic.Interface
	intent  map[string]any
	name    string
}

// child returns one with the intent, which is YAML without a name.
func (s *server) child(t testing.TB, name, intent string) *child {
	t.Helper()
	c := &child{t: t, clients: s.client, name: name, intent: parse(t, strings.ReplaceAll(intent, "{owner}", s.owner))}
	metadata, ok := c.intent["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		c.intent["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = name, "default"
	c.use(c.intent["apiVersion"].(string))
	return c
}

// use has the requests that follow use an API version.
func (c *child) use(apiVersion string) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	c.must(err)
	c.api = c.clients.Resource(gv.WithResource(resources[c.intent["kind"].(string)])).Namespace("default")
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := map[string]any{}
	if err := utiljson.Unmarshal(data, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

func (c *child) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// apply applies the intent as the operator does.
func (c *child) apply() *unstructured.Unstructured {
	c.t.Helper()
	return c.applyAs(ours, true, withHash(c.intent))
}

func withHash(intent map[string]any) map[string]any {
	metadata := maps.Clone(intent["metadata"].(map[string]any))
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[witness.Annotation] = witness.Hash(intent)
	metadata["annotations"] = annotations
	intent = maps.Clone(intent)
	intent["metadata"] = metadata
	return intent
}

func (c *child) applyAs(manager string, force bool, content map[string]any, subresources ...string) *unstructured.Unstructured {
	c.t.Helper()
	u, err := c.tryApply(manager, force, content, subresources...)
	c.must(err)
	return u
}

func (c *child) tryApply(manager string, force bool, content map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(content)
	c.must(err)
	return c.api.Patch(c.t.Context(), c.name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: &force}, subresources...)
}

// theirs is an apply configuration of another manager.
func (c *child) theirs(text string) map[string]any {
	content := parse(c.t, text)
	content["apiVersion"], content["kind"] = c.intent["apiVersion"], c.intent["kind"]
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["name"] = c.name
	return content
}

// patch patches the object with YAML.
func (c *child) patch(manager string, kind types.PatchType, text string, subresources ...string) {
	c.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	c.must(err)
	_, err = c.api.Patch(c.t.Context(), c.name, kind, data, metav1.PatchOptions{FieldManager: manager}, subresources...)
	c.must(err)
}

func (c *child) merge(manager, text string) {
	c.t.Helper()
	c.patch(manager, types.MergePatchType, text)
}

// update changes the object by an Update.
func (c *child) update(manager string, change func(content map[string]any)) {
	c.t.Helper()
	for {
		u := c.get()
		change(u.Object)
		_, err := c.api.Update(c.t.Context(), u, metav1.UpdateOptions{FieldManager: manager})
		if apierrors.IsConflict(err) {
			continue
		}
		c.must(err)
		return
	}
}

// updateCached changes the object by an Update of a typed copy, as it is in a cache with the
// transform.
func (c *child) updateCached(manager string, change func(content map[string]any)) {
	c.t.Helper()
	d := &appsv1.Deployment{}
	c.must(runtime.DefaultUnstructuredConverter.FromUnstructured(c.get().Object, d))
	_, err := apply.CacheTransform()(d)
	c.must(err)
	if len(d.ManagedFields) != 1 {
		c.t.Fatalf("the transform has kept %v", d.ManagedFields)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	c.must(err)
	change(content)
	_, err = c.api.Update(c.t.Context(), &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{FieldManager: manager})
	c.must(err)
}

func (c *child) get() *unstructured.Unstructured {
	c.t.Helper()
	u, err := c.api.Get(c.t.Context(), c.name, metav1.GetOptions{})
	c.must(err)
	return u
}

func (c *child) remove() {
	c.t.Helper()
	zero := int64(0)
	c.must(c.api.Delete(c.t.Context(), c.name, metav1.DeleteOptions{GracePeriodSeconds: &zero}))
}

// unchanged is what the operator asks of the object in its cache.
func (c *child) unchanged(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[witness.Annotation] == witness.Hash(c.intent) && witness.Covers(live.GetManagedFields(), ours, c.intent)
}

// unchangedWhy returns why the object is not unchanged.
func (c *child) unchangedWhy(live *unstructured.Unstructured) string {
	if live.GetAnnotations()[witness.Annotation] != witness.Hash(c.intent) {
		return "another hash"
	}
	if gap, found := witness.Why(live.GetManagedFields(), ours, c.intent); found {
		return gap.String()
	}
	return ""
}

// managedFields returns the managed fields as text, for failures.
func managedFields(u *unstructured.Unstructured) string {
	var b strings.Builder
	for _, e := range u.GetManagedFields() {
		fmt.Fprintf(&b, "  %s %s %s %s: %s\n", e.Manager, e.Operation, e.Subresource, e.APIVersion, e.FieldsV1.GetRawString())
	}
	return b.String()
}

// eventually waits for the real server to do what it does in its own time.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for timeout := time.After(30 * time.Second); !done(); {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatal("timeout waiting for " + what)
		}
	}
}

// decode decodes the content of an unstructured object, and reports whether the text is one.
func decode(text string, content *map[string]any) bool {
	return utiljson.Unmarshal([]byte(text), content) == nil && *content != nil
}
