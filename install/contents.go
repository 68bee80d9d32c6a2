// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The keys of the Secret.
const (
	authorityKey        = "ca.crt" // the authorities that are trusted, the newest first
	authorityPrivateKey = "ca.key" // of the first authority
)

// organization marks the authorities of this package, whichever Secret they are from.
const organization = "admission.ctrlkit.dev"

// tolerance is by how much a certificate is valid before it is made, for clocks that are slow.
const tolerance = 10 * time.Minute

// contents are what the Secret holds. They are never changed.
type contents struct {
	authorities []*x509.Certificate // the newest first
	signer      crypto.Signer       // the key of the first authority
	serving     tls.Certificate     // with its Leaf
	data        map[string][]byte
}

// parse reads contents. The error says what is broken in them.
func parse(data map[string][]byte) (*contents, error) {
	c := &contents{data: map[string][]byte{}}
	for _, key := range []string{authorityKey, authorityPrivateKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		c.data[key] = data[key]
	}
	authority, err := tls.X509KeyPair(data[authorityKey], data[authorityPrivateKey])
	if err != nil {
		return nil, fmt.Errorf("reading %s and %s: %w", authorityKey, authorityPrivateKey, err)
	}
	c.signer, _ = authority.PrivateKey.(crypto.Signer)
	if c.authorities, err = certutil.ParseCertsPEM(data[authorityKey]); err != nil {
		return nil, fmt.Errorf("reading %s: %w", authorityKey, err)
	}
	if c.serving, err = tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
		return nil, fmt.Errorf("reading %s and %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	if !slices.ContainsFunc(c.authorities, func(a *x509.Certificate) bool { return c.serving.Leaf.CheckSignatureFrom(a) == nil }) {
		return nil, fmt.Errorf("%s is signed by none of %s", corev1.TLSCertKey, authorityKey)
	}
	return c, nil
}

// renew returns what is to follow old at the given time, and why; old itself if that is nothing.
// With trusted, every webhook has the authorities of old.
//
// An authority loses its key when it gets a successor. It signs once more before, so that there is
// the whole life of a serving certificate to bring the successor to every webhook.
func (o *RotatorOptions) renew(old *contents, now time.Time, trusted bool) (next *contents, why string, err error) {
	if old == nil {
		next = &contents{}
		if err = o.addAuthority(next, now); err == nil {
			err = o.addServing(next, now)
		}
		return next, "there was none", next.encode(err)
	}
	first, leaf := old.authorities[0], old.serving.Leaf
	own, late := leaf.CheckSignatureFrom(first) == nil, expired(leaf, now)
	next = &contents{authorities: alive(old.authorities, now), signer: old.signer, serving: old.serving}
	switch {
	case due(first, now):
		why = "the authority is old"
		if own && !expired(first, now) {
			err = o.addServing(next, now)
		}
		if err == nil {
			err = o.addAuthority(next, now)
		}
		if err == nil && expired(next.serving.Leaf, now) {
			err = o.addServing(next, now)
		}
	case !own && (trusted || late):
		why = "the new authority signs"
		err = o.addServing(next, now)
	case own && due(leaf, now):
		why = "the serving certificate is old"
		err = o.addServing(next, now)
	case len(next.authorities) < len(old.authorities):
		why = "an old authority has expired"
	default:
		return old, "", nil
	}
	return next, why, next.encode(err)
}

// addAuthority puts a new authority in front, which may sign for our Service only.
func (o *RotatorOptions) addAuthority(c *contents, now time.Time) error {
	certificate, key, err := issue(&x509.Certificate{
		Subject:                     pkix.Name{Organization: []string{organization}, CommonName: "webhooks " + now.UTC().Format(time.RFC3339)},
		NotAfter:                    now.Add(o.AuthorityLifetime),
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		PermittedDNSDomains:         o.dnsNames(),
		PermittedDNSDomainsCritical: true,
	}, nil, nil, now)
	if err != nil {
		return fmt.Errorf("making an authority: %w", err)
	}
	c.authorities, c.signer = slices.Insert(c.authorities, 0, certificate), key
	return nil
}

// addServing replaces the serving certificate by a new one of the first authority.
func (o *RotatorOptions) addServing(c *contents, now time.Time) error {
	end := slices.MinFunc([]time.Time{now.Add(o.ServingLifetime), c.authorities[0].NotAfter}, time.Time.Compare)
	certificate, key, err := issue(&x509.Certificate{
		Subject:               pkix.Name{Organization: []string{organization}, CommonName: "webhooks"},
		NotAfter:              end,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              o.dnsNames(),
	}, c.authorities[0], c.signer, now)
	if err != nil {
		return fmt.Errorf("making a serving certificate: %w", err)
	}
	c.serving = tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}
	return nil
}

// issue makes a key, and a certificate that the parent signs; one that signs itself without parent.
func issue(template, parent *x509.Certificate, signer crypto.Signer, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, signer = template, key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = now.Add(-tolerance)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

// encode fills in the data, unless there is an error already.
func (c *contents) encode(err error) error {
	if err != nil {
		return err
	}
	authorities, err1 := certutil.EncodeCertificates(c.authorities...)
	signer, err2 := keyutil.MarshalPrivateKeyToPEM(c.signer)
	leaf, err3 := certutil.EncodeCertificates(c.serving.Leaf)
	key, err4 := keyutil.MarshalPrivateKeyToPEM(c.serving.PrivateKey)
	c.data = map[string][]byte{
		authorityKey: authorities, authorityPrivateKey: signer, corev1.TLSCertKey: leaf, corev1.TLSPrivateKeyKey: key,
	}
	return errors.Join(err1, err2, err3, err4)
}

// alive returns the certificates that have not expired.
func alive(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c *x509.Certificate) bool { return expired(c, now) })
}

func expired(c *x509.Certificate, now time.Time) bool { return !now.Before(c.NotAfter) }

// due reports whether two thirds of the life of a certificate are over.
func due(c *x509.Certificate, now time.Time) bool {
	made := c.NotBefore.Add(tolerance)
	return !now.Before(made.Add(c.NotAfter.Sub(made) / 3 * 2))
}

// union returns each certificate once, the newest first, so that all replicas write the same.
func union(certificates ...*x509.Certificate) []*x509.Certificate {
	slices.SortFunc(certificates, func(a, b *x509.Certificate) int {
		return cmp.Or(b.NotBefore.Compare(a.NotBefore), bytes.Compare(a.Raw, b.Raw))
	})
	return slices.CompactFunc(certificates, (*x509.Certificate).Equal)
}
