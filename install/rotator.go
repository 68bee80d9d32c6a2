// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// serviceAnnotation marks the Secret as one of this package. The value is the Service that it is for:
// "NAMESPACE/NAME".
const serviceAnnotation = "certificates.ctrlkit.dev/service"

// fieldOwner is the field owner of all writes.
const fieldOwner = "ctrlkit-certificates"

// RotatorOptions are the options of NewRotator. Service is needed, and a name in one of the lists.
type RotatorOptions struct {
	// Service is the one through which the API server reaches the webhooks. Without a namespace, it
	// is that of the Pod. Certificates are for NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.cluster.local.
	Service client.ObjectKey

	// Secret is where the certificates are kept, by default SERVICE-certificates in the namespace of
	// the Service. It is created, or filled if it has no data. One of someone else, without the
	// annotation certificates.ctrlkit.dev/service, is never overwritten: Ready and the log say so.
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

func (o *RotatorOptions) complete() error {
	if o.Service.Namespace == "" {
		// The file that client-go reads. Without it, the process runs outside a cluster.
		text, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		o.Service.Namespace = strings.TrimSpace(string(text))
	}
	o.Secret.Namespace = cmp.Or(o.Secret.Namespace, o.Service.Namespace)
	o.Secret.Name = cmp.Or(o.Secret.Name, o.Service.Name+"-certificates")
	o.AuthorityLifetime = cmp.Or(o.AuthorityLifetime, 365*24*time.Hour)
	o.ServingLifetime = cmp.Or(o.ServingLifetime, 90*24*time.Hour)
	o.Interval = cmp.Or(o.Interval, time.Minute)
	switch {
	case o.Service.Name == "" || o.Service.Namespace == "":
		return errors.New("the Service of the webhooks has no name, or no namespace outside a Pod: set RotatorOptions.Service")
	case len(o.Validating)+len(o.Mutating)+len(o.Conversions)+len(o.APIServices) == 0:
		return errors.New("there is no object to write a caBundle to: name one in RotatorOptions.Validating, Mutating, Conversions or APIServices")
	case o.Interval < 0 || o.ServingLifetime < 20*o.Interval || o.AuthorityLifetime < 3*o.ServingLifetime:
		return fmt.Errorf("lifetimes %s and %s do not go with the interval %s: a serving certificate must live 20 intervals, an authority three times as long",
			o.AuthorityLifetime, o.ServingLifetime, o.Interval)
	}
	return nil
}

func (o *RotatorOptions) dnsNames() []string {
	name := o.Service.Name + "." + o.Service.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}

// A Rotator keeps the certificates of one Service. It may be used concurrently.
type Rotator struct {
	options RotatorOptions
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

// NewRotator returns a Rotator that is not started yet. It makes no request. The error is about the
// options.
func NewRotator(config *rest.Config, options RotatorOptions) (*Rotator, error) {
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

// requestTimeout bounds a pass, so that an API server that doesn't answer does not end the rotation.
const requestTimeout = time.Minute

// pass brings the Secret, then every caBundle, and then what is served up to date. The order is what
// makes it safe to stop at any point, and for other replicas to be at another one.
func (r *Rotator) pass(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("certificates").WithValues("secret", r.options.Secret))
	now := time.Now()

	stored, err := r.store(ctx, now)
	var notes []string
	if err == nil {
		r.latest = stored
		notes, err = r.publish(ctx, stored, now)
		r.serve(stored, now)
	}
	if r.ready = r.ready || err == nil; r.ready {
		r.state.Store(new(error))
	} else {
		r.state.Store(&err)
	}
	r.report(ctx, notes, err)
	return err
}

// store reads the Secret, and writes what it should hold if that is something else. Of several
// replicas that write at the same time one wins; the others read what it has written.
func (r *Rotator) store(ctx context.Context, now time.Time) (*contents, error) {
	var stored *contents
	lost := func(err error) bool { // a race with another replica
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(retry.DefaultBackoff, lost, func() error {
		secret := &corev1.Secret{}
		err := r.client.Get(ctx, r.options.Secret, secret)
		found := err == nil
		if found {
			err = r.checkOwner(secret)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		current := r.latest // what is gone or broken is made again as it was
		parsed, err := parse(secret.Data)
		if err == nil {
			current = parsed
		} else if hasData(secret) {
			log.FromContext(ctx).Info("The Secret is broken and is made anew", "problem", err.Error(), "fromMemory", current != nil)
		}
		next, why, err := r.options.renew(current, now, r.isTrusted(current, now))
		if err != nil {
			return err
		}
		stored = next
		if found && next == parsed {
			return nil
		}
		log.FromContext(ctx).Info("Writing certificates", "why", cmp.Or(why, "they were lost"), "expires", next.serving.Leaf.NotAfter)
		return r.write(ctx, secret, next, found)
	})
	if err != nil {
		return nil, fmt.Errorf("keeping certificates in Secret %s: %w", r.options.Secret, err)
	}
	return stored, nil
}

func (r *Rotator) write(ctx context.Context, secret *corev1.Secret, c *contents, found bool) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, c.data)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, serviceAnnotation, r.options.Service.String())
	if found {
		return r.client.Update(ctx, secret) // with the resource version that was read
	}
	secret.Namespace, secret.Name, secret.Type = r.options.Secret.Namespace, r.options.Secret.Name, corev1.SecretTypeTLS
	return r.client.Create(ctx, secret)
}

// checkOwner returns an error if someone else has made the Secret. One without data may be filled:
// who installs the operator can make it, so that the operator needs no permission to create Secrets.
func (r *Rotator) checkOwner(secret *corev1.Secret) error {
	const remedy = "delete it, or name another one in RotatorOptions.Secret"
	switch owner, marked := secret.Annotations[serviceAnnotation]; {
	case marked && owner != r.options.Service.String():
		return fmt.Errorf("it has the certificates of the Service %s, not of %s: %s", owner, r.options.Service, remedy)
	case !marked && hasData(secret):
		return fmt.Errorf("it was made by someone else, without the annotation %s: %s", serviceAnnotation, remedy)
	}
	return nil
}

func hasData(secret *corev1.Secret) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(secret.Data)), func(value []byte) bool { return len(value) > 0 })
}

// publish writes the authorities to every caBundle, and remembers since when all have them. A
// served certificate needs its authority as long as it is served, also when the Secret was made
// anew without it.
func (r *Rotator) publish(ctx context.Context, c *contents, now time.Time) ([]string, error) {
	authorities := slices.Clone(c.authorities)
	if served := r.served.Load(); served != nil {
		authorities = append(authorities, alive(served.authorities, now)...)
	}
	wrote, notes, err := r.trust(ctx, authorities, now)
	switch {
	case err != nil:
		r.trusted = nil
	case wrote || !bytes.Equal(r.trusted, c.data[authorityKey]):
		r.trusted, r.since = c.data[authorityKey], now
	}
	return notes, err
}

// isTrusted reports whether every webhook has had the authorities of c for an interval. API servers
// read configurations through a cache, which takes a moment.
func (r *Rotator) isTrusted(c *contents, now time.Time) bool {
	return c != nil && bytes.Equal(r.trusted, c.data[authorityKey]) && now.Sub(r.since) >= r.options.Interval
}

// serve replaces what is served, unless some webhook may not trust the new certificate yet.
func (r *Rotator) serve(c *contents, now time.Time) {
	served := r.served.Load()
	if served == nil || expired(served.serving.Leaf, now) || r.isTrusted(c, now) ||
		bytes.Equal(served.serving.Leaf.AuthorityKeyId, c.serving.Leaf.AuthorityKeyId) {
		r.served.Store(c)
	}
}

// report logs what is to be said, once as long as it stays the same.
func (r *Rotator) report(ctx context.Context, notes []string, err error) {
	for _, note := range notes {
		if !slices.Contains(r.notes, note) {
			log.FromContext(ctx).Info("A caBundle is not written", "reason", note)
		}
	}
	if err != nil {
		if notes = append(notes, err.Error()); !slices.Contains(r.notes, err.Error()) {
			log.FromContext(ctx).Error(err, "The certificates of the webhooks are not up to date")
		}
	}
	r.notes = notes
}
