// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

var shop = client.ObjectKey{Namespace: "default", Name: "shop"}

func connect(t *testing.T) (client.Client, *apply.Applier) {
	t.Helper()
	server := sim.NewServer(sim.ServerOptions{Seed: 1, Now: time.Now})
	c, err := client.New(server.Config(), client.Options{})
	exampletest.Must(t, err)
	return c, &apply.Applier{Client: c, FieldOwner: "manifests"}
}

func TestInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := connect(t)
		var out bytes.Buffer
		exampletest.Must(t, install(t.Context(), a, shop, "manifests/shop", &out))
		catalog := &unstructured.Unstructured{}
		catalog.SetAPIVersion("example.com/v1")
		catalog.SetKind("Catalog")
		key := client.ObjectKey{Namespace: "shop", Name: "spring"}
		if err := c.Get(t.Context(), key, catalog); err != nil || !strings.Contains(out.String(), "waits for") {
			t.Errorf("%v\n%s", err, &out)
		}
		if err := uninstall(t.Context(), a, shop, &out); err != nil {
			t.Error(err)
		}
		if err := c.Get(t.Context(), key, catalog); err == nil {
			t.Error("the Catalog is still there")
		}
		if err := install(t.Context(), a, shop, t.TempDir(), &out); err == nil {
			t.Error("an empty directory is installed")
		}
	})
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := connect(t)
		dir := t.TempDir()
		exampletest.Must(t, os.CopyFS(filepath.Join(dir, "shop"), os.DirFS("manifests/shop")))
		broken := filepath.Join(dir, "another")
		exampletest.Must(t, os.MkdirAll(broken, 0o755))
		exampletest.Must(t, os.WriteFile(filepath.Join(broken, "a.yaml"), []byte("a: [\n"), 0o600))
		ctx, stop := context.WithCancel(t.Context())
		var out bytes.Buffer
		done := make(chan error)
		go func() { done <- follow(ctx, a, "default", dir, 10*time.Second, &out) }()
		time.Sleep(time.Minute)
		settings := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "shop", Name: "settings"}
		if err := c.Get(ctx, key, settings); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		settings.Data["currency"] = "USD"
		exampletest.Must(t, c.Update(ctx, settings))
		time.Sleep(time.Minute)
		if err := c.Get(ctx, key, settings); err != nil || settings.Data["currency"] != "EUR" {
			t.Errorf("the drift is still there: %v %v", settings.Data, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "shop/shop.yaml"))
		exampletest.Must(t, err)
		last := bytes.LastIndex(text, []byte("---"))
		exampletest.Must(t, os.WriteFile(filepath.Join(dir, "shop/shop.yaml"), text[:last], 0o600))
		time.Sleep(time.Minute)
		if err := c.Get(ctx, key, settings); !apierrors.IsNotFound(err) {
			t.Errorf("what has left the file: %v", err)
		}
		stop()
		if err := <-done; err != nil || !strings.Contains(out.String(), "another: ") {
			t.Errorf("%v\n%s", err, &out)
		}
	})
}
