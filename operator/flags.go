// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"crypto/tls"
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
)

// BindFlags adds flags for what an operator serves, with the names that kubebuilder gives them, and
// sets options as they say:
//
//		--metrics-bind-address, --health-probe-bind-address   "0" serves nothing
//		--metrics-secure                                      serve metrics over TLS
//		--metrics-cert-path, -name, --metrics-cert-key        their certificate; without it, one is made
//		--webhook-cert-path, -name, --webhook-cert-key        that of the webhooks
//		--enable-http2                                        also HTTP/2
//
//	  - A value that options has already is the default of a flag. A WebhookServer that it has is
//	    left alone, and there are no flags for it.
//	  - HTTP/2 is off, because a few of its requests can cost a server much (CVE-2023-44487,
//	    CVE-2023-39325), and neither Prometheus nor an API server needs it.
//	  - Unless options has a Metrics.FilterProvider, requests for /metrics that come from this
//	    machine without TLS have to ask for localhost, as those for explanations do. After the
//	    flags are parsed, replace it for TLS by filters.WithAuthenticationAndAuthorization.
func BindFlags(flags *flag.FlagSet, options *manager.Options) {
	http2 := flags.Bool("enable-http2", false, "serve metrics and webhooks also over HTTP/2")
	limit := func(config *tls.Config) {
		if !*http2 {
			config.NextProtos = []string{"http/1.1"}
		}
	}
	m := &options.Metrics
	m.TLSOpts = append([]func(*tls.Config){limit}, m.TLSOpts...)
	if m.FilterProvider == nil {
		m.FilterProvider = localhost.Filter
	}
	flags.StringVar(&m.BindAddress, "metrics-bind-address", cmp.Or(m.BindAddress, "0"), "serve metrics and the reports for ctrlkit explain at this `address`, such as localhost:8080; 0 disables both")
	flags.BoolVar(&m.SecureServing, "metrics-secure", m.SecureServing, "serve them over TLS")
	bindCertificate(flags, "metrics", &m.CertDir, &m.CertName, &m.KeyName)
	flags.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", cmp.Or(options.HealthProbeBindAddress, "0"), "serve /healthz and /readyz at this `address`, such as :8081; 0 disables both")
	if options.WebhookServer == nil {
		server := &webhook.DefaultServer{Options: webhook.Options{TLSOpts: []func(*tls.Config){limit}}}
		bindCertificate(flags, "webhook", &server.Options.CertDir, &server.Options.CertName, &server.Options.KeyName)
		options.WebhookServer = server
	}
}

// bindCertificate adds the flags of a certificate.
func bindCertificate(flags *flag.FlagSet, of string, dir, name, key *string) {
	flags.StringVar(dir, of+"-cert-path", *dir, "`directory` with the certificate of the "+of+" server")
	flags.StringVar(name, of+"-cert-name", cmp.Or(*name, "tls.crt"), "`file` with the certificate in it")
	flags.StringVar(key, of+"-cert-key", cmp.Or(*key, "tls.key"), "`file` with its key in it")
}
