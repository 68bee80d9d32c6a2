// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const signingRequest = "certificates.k8s.io/CertificateSigningRequest"

// decisions are the conditions that only the subresource approval can set.
var decisions = []string{string(certificatesv1.CertificateApproved), string(certificatesv1.CertificateDenied)}

// approve resets what a write of the subresource approval cannot change: everything but the metadata
// and the conditions.
func approve(obj, old object) {
	conditions := child(obj, "status")["conditions"]
	keepAllBut(obj, old, "metadata", "apiVersion", "kind")
	status := object{}
	for k, v := range child(old, "status") {
		status[k] = v
	}
	delete(status, "conditions")
	if conditions != nil {
		status["conditions"] = conditions
	}
	obj["status"] = status
}

// StampConditions sets the times that the conditions of a changed object lack. The time of a
// transition is kept as long as the status of the condition is the same.
func StampConditions(obj, old map[string]any, now string) {
	each(child(obj, "status"), "conditions", func(c object) {
		if c["lastUpdateTime"] == nil {
			c["lastUpdateTime"] = now
		}
		if c["lastTransitionTime"] != nil {
			return
		}
		c["lastTransitionTime"] = now
		each(child(old, "status"), "conditions", func(o object) {
			if o["type"] == c["type"] && o["status"] == c["status"] && o["lastTransitionTime"] != nil {
				c["lastTransitionTime"] = o["lastTransitionTime"]
			}
		})
	})
}

func validSigningRequest(o object) field.ErrorList {
	spec, at := child(o, "spec"), field.NewPath("spec")
	var errs field.ErrorList
	request, _ := spec["request"].(string)
	if err := parseSigningRequest(request); err != nil {
		errs = append(errs, field.Invalid(at.Child("request"), request, err.Error()))
	}
	if usages, _ := spec["usages"].([]any); len(usages) == 0 {
		errs = append(errs, field.Required(at.Child("usages"), ""))
	}
	signer, _ := spec["signerName"].(string)
	switch domain, path, ok := strings.Cut(signer, "/"); {
	case signer == "":
		errs = append(errs, field.Required(at.Child("signerName"), ""))
	case !ok || domain == "" || path == "":
		errs = append(errs, field.Invalid(at.Child("signerName"), signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'"))
	}
	if seconds, ok := spec["expirationSeconds"].(int64); ok && seconds < 600 {
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return append(errs, validDecisions(o)...)
}

func parseSigningRequest(text string) error {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("decoding the request: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	_, err = x509.ParseCertificateRequest(block.Bytes)
	return err
}

// validDecisions checks the conditions of a CertificateSigningRequest.
func validDecisions(o object) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	at := field.NewPath("status", "conditions")
	conditions, _ := child(o, "status")["conditions"].([]any)
	for i, entry := range conditions {
		c, _ := entry.(object)
		kind, _ := c["type"].(string)
		status, _ := c["status"].(string)
		allowed := []string{"False", "True", "Unknown"}
		if slices.Contains(decisions, kind) || kind == string(certificatesv1.CertificateFailed) {
			allowed = []string{"True"}
		}
		if kind == "" {
			errs = append(errs, field.Required(at.Index(i).Child("type"), ""))
		}
		switch {
		case status == "":
			errs = append(errs, field.Required(at.Index(i).Child("status"), ""))
		case !slices.Contains(allowed, status):
			errs = append(errs, field.NotSupported(at.Index(i).Child("status"), status, allowed))
		}
		if other := slices.Index(decisions, kind); other >= 0 && seen[decisions[1-other]] {
			errs = append(errs, field.Invalid(at, `{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}`,
				"must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"))
		}
		if seen[kind] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("type"), kind))
		}
		seen[kind] = true
	}
	return errs
}

// changedSigningRequest checks what a write through a subresource, or of the object, has changed.
func changedSigningRequest(obj, old object, subresource string) field.ErrorList {
	errs := validSigningRequest(obj)
	at := field.NewPath("status", "conditions")
	for _, kind := range append(slices.Clone(decisions), string(certificatesv1.CertificateFailed)) {
		if before, now := conditionsOf(old, kind), conditionsOf(obj, kind); len(now) < len(before) {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("updates may not remove a condition of type %q", kind)))
		} else if slices.Contains(decisions, kind) && subresource != "approval" && !equal(now, before) {
			verb := map[bool]string{true: "add", false: "modify"}[len(now) > len(before)]
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("updates may not %s a condition of type %q", verb, kind)))
		}
	}
	before, now := child(old, "status")["certificate"], child(obj, "status")["certificate"]
	if before != nil && before != "" && before != now {
		errs = append(errs, field.Forbidden(field.NewPath("status", "certificate"), "updates may not modify existing certificate content"))
	}
	return errs
}

// conditionsOf returns the conditions of a type.
func conditionsOf(o object, kind string) (list []any) {
	each(child(o, "status"), "conditions", func(c object) {
		if c["type"] == kind {
			list = append(list, c)
		}
	})
	return list
}
