// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A target is a kind of objects with a caBundle, and the names of those that the options name.
type target struct {
	kind     schema.GroupVersionKind
	resource string
	option   string
	names    []string
}

func (o *RotatorOptions) targets() []target {
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return []target{
		{admission.WithKind("MutatingWebhookConfiguration"), "mutatingwebhookconfigurations", "Mutating", o.Mutating},
		{admission.WithKind("ValidatingWebhookConfiguration"), "validatingwebhookconfigurations", "Validating", o.Validating},
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
			"customresourcedefinitions", "Conversions", o.Conversions},
		{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", "APIServices", o.APIServices},
	}
}

// trust writes the authorities into the caBundle of every webhook, and reports whether one lacked
// any. The notes say what was left alone, and the error what can't be written.
func (r *Rotator) trust(ctx context.Context, authorities []*x509.Certificate, now time.Time) (wrote bool, notes []string, err error) {
	var errs []error
	for _, t := range r.options.targets() {
		for _, name := range t.names {
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				obj := &unstructured.Unstructured{}
				obj.SetGroupVersionKind(t.kind)
				if err := r.client.Get(ctx, client.ObjectKey{Name: name}, obj); apierrors.IsNotFound(err) {
					notes = append(notes, fmt.Sprintf("%s %s does not exist yet", t.kind.Kind, name))
					return nil
				} else if err != nil {
					return err
				}
				changed, left := r.inject(obj, t.option, authorities, now)
				notes = append(notes, left...)
				if !changed {
					return nil
				}
				wrote = true
				return r.client.Update(ctx, obj)
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("writing the caBundle of %s %s: %w", t.kind.Kind, name, err))
			}
		}
	}
	return wrote, notes, errors.Join(errs...)
}

// inject sets the caBundle of the webhooks of an object that point to our Service, and reports
// whether that changes any.
func (r *Rotator) inject(obj *unstructured.Unstructured, option string, authorities []*x509.Certificate, now time.Time) (changed bool, notes []string) {
	place := obj.GetKind() + " " + obj.GetName()
	for _, annotation := range slices.Sorted(maps.Keys(obj.GetAnnotations())) {
		if strings.HasPrefix(annotation, "cert-manager.io/inject-") || annotation == "service.beta.openshift.io/inject-cabundle" {
			return false, []string{fmt.Sprintf("%s is left alone: its annotation %s leaves the caBundle to another controller. "+
				"Remove the annotation, or the name from RotatorOptions.%s", place, annotation, option)}
		}
	}
	found := false
	for i, config := range clientConfigs(obj) {
		service, _, _ := unstructured.NestedMap(config, "service")
		if service["name"] != r.options.Service.Name || service["namespace"] != r.options.Service.Namespace {
			notes = append(notes, fmt.Sprintf("clientConfig %d of %s is left alone: it does not point to the Service %s", i, place, r.options.Service))
			continue
		}
		found = true
		old, _ := config["caBundle"].(string)
		if bundle := bundle(old, authorities, now); bundle != old {
			config["caBundle"], changed = bundle, true
		}
	}
	if !found {
		notes = append(notes, fmt.Sprintf("%s has no webhook at the Service %s: correct RotatorOptions.Service, or remove the name from RotatorOptions.%s",
			place, r.options.Service, option))
	}
	return changed, notes
}

// clientConfigs returns the parts of an object that have a service and a caBundle.
func clientConfigs(obj *unstructured.Unstructured) []map[string]any {
	switch obj.GetKind() {
	case "APIService":
		return asMaps(obj.Object["spec"])
	case "CustomResourceDefinition":
		config, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "conversion", "webhook", "clientConfig")
		return asMaps(config)
	}
	webhooks, _ := obj.Object["webhooks"].([]any)
	configs := asMaps(webhooks...)
	for i, webhook := range configs {
		configs[i], _ = webhook["clientConfig"].(map[string]any)
	}
	return configs
}

func asMaps(values ...any) []map[string]any {
	var all []map[string]any
	for _, value := range values {
		if m, ok := value.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// bundle returns the caBundle that is to follow the old one. Authorities of this package that old has
// stay until they expire: a replica may still serve what they have signed, when the Secret was made
// anew. Any other content is replaced.
func bundle(old string, authorities []*x509.Certificate, now time.Time) string {
	text, _ := base64.StdEncoding.DecodeString(old)
	present, _ := certutil.ParseCertsPEM(text) // an error means that there is no certificate
	all := slices.Clone(authorities)
	for _, c := range alive(present, now) {
		if c.IsCA && slices.Equal(c.Subject.Organization, []string{organization}) {
			all = append(all, c)
		}
	}
	text, err := certutil.EncodeCertificates(union(all...)...)
	if err != nil {
		return old // writing to a buffer never fails
	}
	return base64.StdEncoding.EncodeToString(text)
}
