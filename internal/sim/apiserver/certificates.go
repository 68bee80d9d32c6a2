// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// signingRequestsStorage is the resource of CertificateSigningRequests. Nothing signs them.
var signingRequestsStorage = schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}

// isApproval reports whether a subresource of a kind approves or denies a certificate.
func (k *kind) isApproval(subresource string) bool {
	return k.storage == signingRequestsStorage && subresource == "approval"
}

// nameRequester writes into a new CertificateSigningRequest who asks for the certificate.
func (w *writeContext) nameRequester(obj *unstructured.Unstructured) {
	spec, ok := obj.Object["spec"].(map[string]any)
	if w.kind.storage != signingRequestsStorage || !ok {
		return
	}
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	who := w.request.user()
	spec["username"] = who.GetName()
	if uid := who.GetUID(); uid != "" {
		spec["uid"] = uid
	}
	if groups := who.GetGroups(); len(groups) > 0 {
		spec["groups"] = anys(groups)
	}
}

// stampConditions sets the times of conditions that a write of a CertificateSigningRequest does not
// set.
func (w *writeContext) stampConditions(g *registry, obj, before *unstructured.Unstructured) {
	if w.kind.storage == signingRequestsStorage && w.request.Subresource != "" {
		builtin.StampConditions(obj.Object, before.Object, g.now().UTC().Format("2006-01-02T15:04:05Z"))
	}
}

// authorizeApproval returns the answer 403 if the user of a request may not approve certificates of
// the signer. As upstream, that needs the verb approve beside the one of the request.
func (w *writeContext) authorizeApproval(g *registry, before *unstructured.Unstructured) *failure {
	if g.authorizer == nil || w.request.User == nil || !w.kind.isApproval(w.request.Subresource) {
		return nil
	}
	signer, _, _ := unstructured.NestedString(before.Object, "spec", "signerName")
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := g.authorizer.Authorize(context.Background(), authorizer.AttributesRecord{
			User: w.request.User, Verb: "approve", Name: name, APIGroup: "certificates.k8s.io", APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return nil
		}
	}
	return fail(apierrors.NewForbidden(w.kind.gvr.GroupResource(), w.request.Name, fmt.Errorf("user not permitted to approve requests with signerName %q", signer)))
}
