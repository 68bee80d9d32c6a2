// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAnnotation marks the Secret as one of this package. The value is the Service that it is for:
// "NAMESPACE/NAME".
const ServiceAnnotation = "certificates.ctrlkit.dev/service"

// fieldOwner is the field owner of all writes.
const fieldOwner = "ctrlkit-certificates"

// Options are the options of New. Service is needed, and a name in one of the lists.
type Options struct {
	// Service is the one through which the API server reaches the webhooks. Without a namespace, it
	// is that of the Pod. Certificates are for NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.cluster.local.
	Service client.ObjectKey

	// Secret is where the certificates are kept, by default SERVICE-certificates in the namespace of
	// the Service. It is created, or filled if it has no data. One of someone else, without the
	// [ServiceAnnotation], is never overwritten: Ready and the log say so.
	Secret client.ObjectKey

	// Validating, Mutating, Conversions and APIServices are names of ValidatingWebhookConfigurations,
	// MutatingWebhookConfigurations, CustomResourceDefinitions with a conversion webhook, and
	// APIServices. Those of their webhooks that point to Service get the caBundle. Others, those with
	// a URL, and all objects that cert-manager has to inject are left alone; the log says which.
	Validating, Mutating, Conversions, APIServices []string

	// AuthorityLifetime is a year by default, ServingLifetime 90 days. Each is replaced after two
	// thirds of it. An authority must live three times as long as what it signs.
	AuthorityLifetime, ServingLifetime time.Duration

	// Interval is how often each replica reads the Secret and the objects, and thus how long a
	// caBundle is lost that someone has removed. The default is a minute. It is at most a twentieth of
	// ServingLifetime.
	Interval time.Duration
}

func (o *Options) complete() error {
	if o.Service.Namespace == "" {
		// The file that client-go reads. Without it, the process runs outside a cluster.
		text, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		o.Service.Namespace = strings.TrimSpace(string(text))
	}
	if o.Secret.Namespace == "" {
		o.Secret.Namespace = o.Service.Namespace
	}
	if o.Secret.Name == "" {
		o.Secret.Name = o.Service.Name + "-certificates"
	}
	for d, preset := range map[*time.Duration]time.Duration{
		&o.AuthorityLifetime: 365 * 24 * time.Hour, &o.ServingLifetime: 90 * 24 * time.Hour, &o.Interval: time.Minute,
	} {
		if *d == 0 {
			*d = preset
		}
	}
	switch {
	case o.Service.Name == "" || o.Service.Namespace == "":
		return errors.New("the Service of the webhooks has no name, or no namespace outside a Pod: set Options.Service")
	case len(o.Validating)+len(o.Mutating)+len(o.Conversions)+len(o.APIServices) == 0:
		return errors.New("there is no object to write a caBundle to: name one in Options.Validating, Mutating, Conversions or APIServices")
	case o.Interval < 0 || o.ServingLifetime < 20*o.Interval || o.AuthorityLifetime < 3*o.ServingLifetime:
		return fmt.Errorf("lifetimes %s and %s do not go with the interval %s: a serving certificate must live 20 intervals, an authority three times as long",
			o.AuthorityLifetime, o.ServingLifetime, o.Interval)
	}
	return nil
}

func (o *Options) dnsNames() []string {
	name := o.Service.Name + "." + o.Service.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}

// A Rotator keeps the certificates of one Service. It may be used concurrently.
type Rotator struct {
	options Options
	client  client.Client
	served  atomic.Pointer[contents]
	state   atomic.Pointer[error] // of the latest pass, nil before the first

	mu      sync.Mutex // for the fields below: one pass at a time
	latest  *contents  // as last read from or written to the Secret
	trusted []byte     // the authorities that every webhook has had since then
	since   time.Time
	notes   []string // of the last pass
	ready   bool
}

// New returns a Rotator that is not started yet. It makes no request. The error is about the options.
func New(config *rest.Config, options Options) (*Rotator, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("certificates of webhooks: %w", err)
	}
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil) // which needs no discovery
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	for _, t := range options.targets() {
		mapper.Add(t.kind, meta.RESTScopeRoot)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper, FieldOwner: fieldOwner})
	if err != nil {
		return nil, fmt.Errorf("certificates of webhooks: %w", err)
	}
	return &Rotator{options: options, client: c}, nil
}

// Start keeps the certificates until the context ends, and then returns nil. [Rotator.Server] calls it.
func (r *Rotator) Start(ctx context.Context) error {
	for {
		pause := r.options.Interval
		if err := r.pass(ctx); err != nil {
			pause /= 10
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.Jitter(pause, 0.1)):
		}
	}
}

// NeedLeaderElection is false: every replica serves webhooks.
func (r *Rotator) NeedLeaderElection() bool { return false }

// GetCertificate returns the certificate to serve, for tls.Config. It makes no request.
func (r *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c := r.served.Load()
	if c == nil {
		return nil, errors.New("the certificate of the webhooks has not been read yet")
	}
	return &c.serving, nil
}

// Ready is a healthz.Checker. It passes once there is a certificate to serve that every webhook
// trusts, and from then on; before, its error says what is missing.
func (r *Rotator) Ready(*http.Request) error {
	if err := r.state.Load(); err != nil {
		return *err
	}
	return errors.New("the certificate of the webhooks has not been read yet")
}
