// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Server returns a webhook server, for manager.Options.WebhookServer, that serves with the
// certificates of the Rotator and runs it. CertDir and what belongs to it is not used. Its
// StartedChecker also needs [Rotator.Ready]. HTTP/2 is off, unless a function of TLSOpts sets
// NextProtos.
//
// A manager starts it before its caches, and a cache may need a conversion webhook. Therefore the
// Rotator is no Runnable of its own here: a manager starts those after the caches.
func (r *Rotator) Server(options webhook.Options) webhook.Server {
	options.TLSOpts = slices.Concat(
		[]func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }}, options.TLSOpts,
		[]func(*tls.Config){func(config *tls.Config) { config.GetCertificate = r.GetCertificate }})
	return &server{Server: webhook.NewServer(options), rotator: r}
}

type server struct {
	webhook.Server
	rotator *Rotator
}

// Start runs the server and the Rotator until the context ends, or the server does.
func (s *server) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.rotator.Start(ctx) // returns nil
	}()
	defer func() {
		cancel()
		<-done
	}()
	return s.Server.Start(ctx)
}

func (s *server) StartedChecker() healthz.Checker {
	started := s.Server.StartedChecker()
	return func(request *http.Request) error {
		if err := s.rotator.Ready(request); err != nil {
			return err
		}
		return started(request)
	}
}

// Rules returns what the Rotator needs to be allowed: in a Role in the namespace of the Secret, and
// in a ClusterRole. All rules are for single objects; package permission prints them as markers. The
// first one, to create the Secret, can't have a name. It is not needed where an empty Secret is
// installed with the operator.
func (r *Rotator) Rules() (role, clusterRole []rbacv1.PolicyRule) {
	named := func(group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "update"}}
	}
	role = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		named("", "secrets", r.options.Secret.Name),
	}
	for _, t := range r.options.targets() {
		if len(t.names) > 0 {
			clusterRole = append(clusterRole, named(t.kind.Group, t.resource, t.names...))
		}
	}
	return role, clusterRole
}
