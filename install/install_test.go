// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var shared planetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The tests of upgrades run on the API server in memory, and by TestOnRealServer on the real one.
var upgrades = map[string]func(c *cluster){
	"what has not changed is not written": testUnchanged,
	"stored versions stay":                testStoredVersions,
	"newer revisions are kept":            testRevisions,
	"newer definitions are kept":          testWithoutRevision,
	"a caBundle of others is kept":        testBundle,
	"a replica that is faster":            testRace,
}

func TestUpgrades(t *testing.T) {
	for name, test := range upgrades {
		t.Run(name, func(t *testing.T) { test(newCluster(t)) })
	}
}

// The same on a real control plane, where names may also be taken.
func TestOnRealServer(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	for name, test := range upgrades {
		t.Run(name, func(t *testing.T) {
			c := connect(t, plane.Config())
			defer c.remove() // also after a failure: the next one begins without a definition
			test(c)
		})
	}
	t.Run("names that are taken", func(t *testing.T) {
		c := connect(t, plane.Config())
		c.mustInstall(1, install.Options{}, widgets(fields("v1", "size")))
		other := widgets(fields("v1", "size"))
		other.Spec.Group, other.Name = "other.example.com", "wigs.other.example.com"
		other.Spec.Names.Plural, other.Spec.Names.Kind = "wigs", "Wig"
		c.mustInstall(1, install.Options{}, other) // another group may have the short name
		other.Spec.Group, other.Name = "example.com", "wigs.example.com"
		_, err := c.install(install.Options{Timeout: 2 * time.Second}, other)
		late := (*install.WaitError)(nil)
		if !errors.As(err, &late) || !strings.Contains(late.Lacks, "NamesAccepted is False: ShortNamesConflict") {
			t.Errorf("%v", err)
		}
	})
}

// remove deletes the definition of Widgets, and waits until it is gone.
func (c *cluster) remove() {
	c.t.Helper()
	must(c.t, c.client.Delete(c.ctx, c.get()))
	err := wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(c.client.Get(ctx, client.ObjectKey{Name: "widgets.example.com"}, &install.Definition{})), nil
	})
	must(c.t, err)
}

// awaitCategory waits until the API server has accepted a category of Widgets.
func (c *cluster) awaitCategory(category string) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return slices.Contains(c.get().Status.AcceptedNames.Categories, category), nil
	})
	must(c.t, err)
}

func testUnchanged(c *cluster) {
	first := widgets(fields("v1", "size"))
	first.Labels = map[string]string{"app": "widgets"}
	c.mustInstall(1, install.Options{}, first)
	if err := c.client.Create(c.ctx, widget("v1")); err != nil {
		c.t.Errorf("it is installed, and not served: %v", err)
	}
	c.mustInstall(0, install.Options{}, first)
	c.mustInstall(0, install.Options{Revision: "2.0"}, first)
	c.patch(`{"metadata":{"labels":{"theirs":"x"}}}`)
	c.mustInstall(0, install.Options{}, first)
	c.patch(`{"spec":{"names":{"categories":["all"]}}}`)
	c.awaitCategory("all")                     // which is a write of the API server's
	c.mustInstall(1, install.Options{}, first) // which repairs it
	if err := c.client.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "a"}, widget("v1")); err != nil {
		c.t.Errorf("the object is lost: %v", err)
	}
	first.Labels = nil
	c.mustInstall(1, install.Options{}, first)
	if _, has := c.get().Labels["app"]; has {
		c.t.Errorf("labels %v: one that the definition had is still there", c.get().Labels)
	}
}

func testStoredVersions(c *cluster) {
	c.mustInstall(1, install.Options{}, widgets(fields("v1alpha1", "size")))
	c.mustInstall(1, install.Options{}, widgets(fields("v1alpha1", "size"), fields("v1", "size")))
	n, err := c.install(install.Options{}, widgets(fields("v1", "size")))
	stored := (*install.StoredVersionError)(nil)
	if n != 0 || !errors.As(err, &stored) || stored.Version != "v1alpha1" || !strings.Contains(err.Error(), "Migrate first") {
		c.t.Errorf("%d writes: %v", n, err)
	}
	c.mustInstall(1, install.Options{KeepStored: true}, widgets(fields("v1", "size", "color")))
	if got, want := c.versions(), "v1 stored served, v1alpha1"; got != want {
		c.t.Errorf("versions %s, want %s", got, want)
	}
	c.mustInstall(0, install.Options{KeepStored: true}, widgets(fields("v1", "size", "color")))
	must(c.t, c.client.Status().Patch(c.ctx, c.get(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"storedVersions":["v1"]}}`))))
	c.mustInstall(1, install.Options{}, widgets(fields("v1", "size", "color", "weight"))) // once it is migrated
	if got, want := c.versions(), "v1 stored served"; got != want {
		c.t.Errorf("versions %s, want %s", got, want)
	}
}

func testRevisions(c *cluster) {
	older, newer := widgets(fields("v1", "size")), widgets(fields("v1", "color"))
	c.mustInstall(1, install.Options{Revision: "1.9.0"}, older)
	c.mustInstall(1, install.Options{Revision: "v1.10.0"}, newer)
	c.mustInstall(0, install.Options{Revision: "1.9.0"}, older)
	c.mustInstall(0, install.Options{}, widgets(fields("v1", "color", "size"))) // of no revision
	if _, has := c.get().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["color"]; !has {
		c.t.Error("the older one has replaced the newer one")
	}
	c.mustInstall(1, install.Options{Revision: "1.9.0", ReplaceNewer: true}, older)
	c.mustInstall(1, install.Options{Revision: "1.10.0"}, newer)
	_, err := c.install(install.Options{Revision: "1.9.0", Timeout: 300 * time.Millisecond}, widgets(fields("v1beta1", "size")))
	if late := (*install.WaitError)(nil); !errors.As(err, &late) {
		c.t.Errorf("what is kept does not serve v1beta1: %v", err)
	}
}

func testWithoutRevision(c *cluster) {
	c.mustInstall(1, install.Options{}, widgets(fields("v1", "size", "color")))
	c.mustInstall(0, install.Options{}, widgets(fields("v1", "size")))
	c.mustInstall(1, install.Options{}, widgets(fields("v1", "size", "color"), fields("v2", "size")))
	c.mustInstall(0, install.Options{KeepStored: true}, widgets(fields("v1", "size", "color")))
	if got, want := c.versions(), "v1 served, v2 stored served"; got != want {
		c.t.Errorf("versions %s, want %s", got, want)
	}
	c.mustInstall(1, install.Options{ReplaceNewer: true}, widgets(fields("v2", "size"), fields("v1", "size")))
}

func testBundle(c *cluster) {
	certificate := newCertificate(c.t)
	converted := func(bundle string) *install.Definition {
		d := widgets(fields("v1", "size"), fields("v2", "size"))
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{
				CABundle: []byte(bundle), Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "hook", Port: ptr.To[int32](443)},
			},
		}}
		return d
	}
	c.mustInstall(1, install.Options{}, converted("\n")) // the placeholder of generators
	c.patch(fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":%q}}}}}`, base64.StdEncoding.EncodeToString([]byte(certificate))))
	c.mustInstall(0, install.Options{}, converted("\n"))
	changed := converted("")
	for _, v := range changed.Spec.Versions {
		v.Schema.OpenAPIV3Schema.Description = "Changed."
	}
	c.mustInstall(1, install.Options{}, changed)
	if got := string(c.get().Spec.Conversion.Webhook.ClientConfig.CABundle); got != certificate {
		c.t.Errorf("caBundle %q", got)
	}
}

// newCertificate returns a certificate as the API server accepts it.
func newCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
}

// Another replica writes between the read and the write: what it has installed is looked at again.
func testRace(c *cluster) {
	c.mustInstall(1, install.Options{Revision: "1.0"}, widgets(fields("v1", "size")))
	c.before = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			c.before = nil
			c.mustInstall(1, install.Options{Revision: "3.0"}, widgets(fields("v1", "weight")))
		}
	}
	if _, err := c.install(install.Options{Revision: "2.0"}, widgets(fields("v1", "color"))); err != nil {
		c.t.Fatal(err)
	}
	if got := c.get().Annotations[install.RevisionAnnotation]; got != "3.0" {
		c.t.Errorf("the definition is of revision %s, and 3.0 was faster", got)
	}
}
