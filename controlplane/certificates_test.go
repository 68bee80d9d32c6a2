// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

func TestAuthorityIssuesWhatItVerifies(t *testing.T) {
	authority, err := newAuthority()
	must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority.bundle()) {
		t.Fatal("the bundle holds no certificate")
	}
	serving, err := authority.issueServing()
	must(t, err)
	client, err := authority.issueClient("jane", []string{"a", "b"})
	must(t, err)
	tests := map[string]struct {
		pair    keyPair
		options x509.VerifyOptions
		valid   bool
	}{
		"server by address": {serving, x509.VerifyOptions{DNSName: "127.0.0.1"}, true},
		"server by name":    {serving, x509.VerifyOptions{DNSName: "localhost"}, true},
		"server elsewhere":  {serving, x509.VerifyOptions{DNSName: "example.com"}, false},
		"server as client":  {serving, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, false},
		"client":            {client, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true},
		"client as server":  {client, x509.VerifyOptions{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := tls.X509KeyPair(test.pair.certificate, test.pair.key)
			must(t, err)
			test.options.Roots = roots
			if _, err := pair.Leaf.Verify(test.options); (err == nil) != test.valid {
				t.Errorf("Verify: %v, want valid: %v", err, test.valid)
			}
		})
	}
}
