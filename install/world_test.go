// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

const (
	day      = 24 * time.Hour
	dnsName  = "shop-webhook.shop-system.svc"
	longName = dnsName + ".cluster.local"
)

var (
	service   = client.ObjectKey{Namespace: "shop-system", Name: "shop-webhook"}
	secretKey = client.ObjectKey{Namespace: "shop-system", Name: "shop-webhook-certificates"}
)

// A world is a cluster with two configurations and a definition, and the replicas of an operator.
// Whenever something is written, what the replicas serve is verified. It lives in a bubble.
type world struct {
	*testing.T
	ctx      context.Context
	server   *apiserver.Server
	user     client.Client
	options  install.RotatorOptions
	replicas []*replica
	bundles  map[string][][]byte // of the webhooks that point to our Service, by object
	verified map[string]time.Time
	written  []string // by replicas: "update secrets"
	log      strings.Builder
}

// A replica is a process of the operator.
type replica struct {
	*install.Rotator
	w      *world
	dead   bool
	writes int
	before func(write int) // what happens in the cluster before a write
	crash  int             // at this write, from 1; negative: after it
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, server: apiserver.New(apiserver.Options{Seed: 1, Now: time.Now}), bundles: map[string][][]byte{}, verified: map[string]time.Time{}}
	w.ctx = logr.NewContext(context.Background(), funcr.New(func(_, args string) { w.log.WriteString(args + "\n") }, funcr.Options{}))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionv1.AddToScheme, apiextensionsv1.AddToScheme} {
		must(t, add(scheme))
	}
	var err error
	w.user, err = client.New(w.server.Config(), client.Options{Scheme: scheme})
	must(t, err)
	w.options = install.RotatorOptions{
		Service: service, Validating: []string{"shop"}, Mutating: []string{"shop"}, Conversions: []string{"carts.shop.example.com"}, Interval: day,
	}
	w.server.OnChange(w.observe)
	must(t, w.user.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: service.Namespace}}))
	must(t, w.user.Create(w.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Webhooks:   []admissionv1.ValidatingWebhook{{Name: "a.example.com", ClientConfig: at(service)}, {Name: "b.example.com", ClientConfig: at(service)}},
	}))
	must(t, w.user.Create(w.ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "a.example.com", ClientConfig: at(service)}},
	}))
	must(t, w.user.Create(w.ctx, carts()))
	return w
}

func at(service client.ObjectKey) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: new("/")}}
}

func carts() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: name == "v1", Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "carts.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "carts", Singular: "cart", Kind: "Cart", ListKind: "CartList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v2")},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: new("/convert")},
				},
			}},
		},
	}
}

// start starts a replica that does nothing until its pass is called.
func (w *world) start() *replica {
	w.Helper()
	r := &replica{w: w}
	config := w.server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return r.roundTrip(next, request) })
	})
	r.Rotator = w.rotator(config)
	w.replicas = append(w.replicas, r)
	return r
}

func (w *world) rotator(config *rest.Config) *install.Rotator {
	w.Helper()
	rotator, err := install.NewRotator(config, w.options)
	must(w.T, err)
	return rotator
}

var errCrashed = errors.New("the process has ended")

func (r *replica) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if r.dead {
		return nil, errCrashed
	}
	if request.Method == http.MethodGet {
		return next.RoundTrip(request)
	}
	r.writes++
	if r.before != nil {
		r.before(r.writes)
	}
	if r.writes == r.crash {
		r.dead = true
		return nil, errCrashed
	}
	path := strings.Split(request.URL.Path, "/")
	object := path[len(path)-1]
	if request.Method == http.MethodPut {
		object = path[len(path)-2]
	}
	response, err := next.RoundTrip(request)
	if err == nil && response.StatusCode < 300 {
		r.w.written = append(r.w.written, strings.ToLower(request.Method)+" "+object)
	}
	if r.writes == -r.crash {
		r.dead = true
		return nil, errCrashed
	}
	return response, err
}

// pass lets a replica do what it does once in an interval.
func (r *replica) pass() error {
	err := r.Pass(r.w.ctx)
	r.w.verify()
	return err
}

func (r *replica) mustPass() {
	r.w.Helper()
	must(r.w.T, r.pass())
}

func (r *replica) leaf() *x509.Certificate {
	r.w.Helper()
	c, err := r.GetCertificate(nil)
	must(r.w.T, err)
	return c.Leaf
}

// observe keeps the caBundles that are in the cluster.
func (w *world) observe(c apiserver.Change) {
	if c.Resource.Resource != "validatingwebhookconfigurations" && c.Resource.Resource != "mutatingwebhookconfigurations" && c.Resource.Resource != "customresourcedefinitions" {
		return
	}
	w.bundles[c.Resource.Resource+"/"+c.Name] = bundlesOf(w.T, c.New)
	w.verify()
}

// verify verifies what each replica that is ready serves against each caBundle, as an API server
// would now.
func (w *world) verify() {
	w.Helper()
	for n, r := range w.replicas {
		if r.dead || r.Ready(nil) != nil {
			continue
		}
		for object, bundles := range w.bundles {
			for _, bundle := range bundles {
				key := string(bundle) + r.leaf().SerialNumber.String()
				if time.Now().Before(w.verified[key]) {
					continue // the times that follow are those of the same certificates
				}
				if err := trusts(bundle, r.leaf()); err == nil {
					w.verified[key] = r.leaf().NotAfter // an authority lives longer
				} else {
					w.Errorf("%s: the API server does not trust replica %d because of %s: %v", time.Now().Format(time.DateOnly), n, object, err)
				}
			}
		}
	}
}

func trusts(bundle []byte, leaf *x509.Certificate) error {
	roots, err := certutil.NewPoolFromBytes(bundle)
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: dnsName, Roots: roots, CurrentTime: time.Now()})
	return errors.Join(err, leaf.VerifyHostname(longName))
}

// bundlesOf returns the caBundles that an object has.
func bundlesOf(t *testing.T, content map[string]any) [][]byte {
	t.Helper()
	var found [][]byte
	switch content["kind"] {
	case "CustomResourceDefinition":
		crd := convert[apiextensionsv1.CustomResourceDefinition](t, content)
		if c := crd.Spec.Conversion; c != nil && c.Webhook != nil {
			found = append(found, c.Webhook.ClientConfig.CABundle)
		}
	case "ValidatingWebhookConfiguration":
		for _, webhook := range convert[admissionv1.ValidatingWebhookConfiguration](t, content).Webhooks {
			found = append(found, webhook.ClientConfig.CABundle)
		}
	case "MutatingWebhookConfiguration":
		for _, webhook := range convert[admissionv1.MutatingWebhookConfiguration](t, content).Webhooks {
			found = append(found, webhook.ClientConfig.CABundle)
		}
	}
	var set [][]byte
	for _, bundle := range found {
		if len(bundle) > 0 {
			set = append(set, bundle)
		}
	}
	return set
}

func convert[T any](t *testing.T, content map[string]any) *T {
	t.Helper()
	typed := new(T)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed))
	return typed
}

func (w *world) secret() *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	must(w.T, w.user.Get(w.ctx, secretKey, s))
	return s
}

func (w *world) storedLeaf() *x509.Certificate {
	w.Helper()
	all, err := certutil.ParseCertsPEM(w.secret().Data[corev1.TLSCertKey])
	must(w.T, err)
	return all[0]
}

func (w *world) authorities() []*x509.Certificate {
	w.Helper()
	all, err := certutil.ParseCertsPEM(w.secret().Data["ca.crt"])
	must(w.T, err)
	return all
}
