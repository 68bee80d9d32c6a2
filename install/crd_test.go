// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A cluster is an API server, and a client of it that is no installer.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	config *rest.Config
	client client.Client
	writes atomic.Int64 // of installers
	// before is called before each request of an installer; it may be nil.
	before func(r *http.Request)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return connect(t, apiserver.New(apiserver.Options{Seed: 1}).Config())
}

func connect(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, apiextensionsv1.AddToScheme(scheme))
	direct, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	return &cluster{t: t, ctx: log.IntoContext(context.Background(), logr.Discard()), config: config, client: direct}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// installer returns an installer whose writes are counted.
func (c *cluster) installer(options install.Options) *install.Installer {
	c.t.Helper()
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				c.writes.Add(1)
			}
			if c.before != nil {
				c.before(r)
			}
			return next.RoundTrip(r)
		})
	})
	if options.Name == "" {
		options.Name = "widgets-operator"
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	i, err := install.New(config, options)
	must(c.t, err)
	return i
}

// install installs definitions, and returns the error and the number of writes.
func (c *cluster) install(options install.Options, definitions ...*install.Definition) (int64, error) {
	c.t.Helper()
	before := c.writes.Load()
	err := c.installer(options).Install(c.ctx, definitions...)
	return c.writes.Load() - before, err
}

// mustInstall installs definitions with so many writes.
func (c *cluster) mustInstall(writes int64, options install.Options, definitions ...*install.Definition) {
	c.t.Helper()
	if n, err := c.install(options, definitions...); err != nil || n != writes {
		c.t.Fatalf("%d writes, want %d: %v", n, writes, err)
	}
}

// get returns the definition of Widgets.
func (c *cluster) get() *install.Definition {
	c.t.Helper()
	d := &install.Definition{}
	must(c.t, c.client.Get(c.ctx, client.ObjectKey{Name: "widgets.example.com"}, d))
	return d
}

// versions describes the versions of the definition of Widgets: "v1 stored served, v2".
func (c *cluster) versions() string {
	c.t.Helper()
	var all []string
	for _, v := range c.get().Spec.Versions {
		text := v.Name
		if v.Storage {
			text += " stored"
		}
		if v.Served {
			text += " served"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// patch changes the definition of Widgets as another client does.
func (c *cluster) patch(patch string, options ...client.PatchOption) {
	c.t.Helper()
	err := c.client.Patch(c.ctx, c.get(), client.RawPatch("application/merge-patch+json", []byte(patch)), append(options, client.FieldOwner("another"))...)
	must(c.t, err)
}

// fields returns a version whose spec has these fields.
func fields(version string, names ...string) apiextensionsv1.CustomResourceDefinitionVersion {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, name := range names {
		spec.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(` "x" `)}}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
	}}
}

// widgets returns a definition with versions of which the last one is stored.
func widgets(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *install.Definition {
	versions = slices.Clone(versions)
	versions[len(versions)-1].Storage = true
	return &install.Definition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Versions: versions,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", Plural: "widgets", ShortNames: []string{"w"}},
		},
	}
}

func widget(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": map[string]any{"size": "big"},
	}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
