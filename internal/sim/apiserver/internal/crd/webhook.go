// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// HasWebhook reports whether a definition has a conversion webhook.
func HasWebhook(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// DefaultWebhook sets the defaults of the conversion webhook, if the definition has one.
func DefaultWebhook(d *apiextensionsv1.CustomResourceDefinition) {
	if c := d.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		apiextensionsv1.SetDefaults_ServiceReference(c.Webhook.ClientConfig.Service)
	}
}

// noteUnconvertible marks the versions that only the webhook can convert.
func (d *Definition) noteUnconvertible(definition *apiextensionsv1.CustomResourceDefinition) {
	schemas := map[string]*apiextensionsv1.CustomResourceValidation{}
	for _, v := range definition.Spec.Versions {
		schemas[v.Name] = v.Schema
	}
	for _, v := range d.Versions {
		v.Unconvertible = !apiequality.Semantic.DeepEqual(schemas[v.GVK.Version], schemas[d.Storage])
	}
}
