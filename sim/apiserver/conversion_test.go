// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

// A definition with a conversion webhook works as long as nothing has to be converted by it.
func TestConversionWebhook(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	d := widgetDefinition(map[string]map[string]apiextensionsv1.JSONSchemaProps{
		"v1beta1":  sizeSchema,
		"v1alpha1": {"large": {Type: "boolean"}},
	})
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "system", Name: "webhook"}},
		},
	}
	must(t, server.Install(d))
	w := world{t, server}
	stored := func(path string) map[string]any {
		_, answer := w.do("GET", path, "")
		return answer
	}
	service := stored("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")["spec"].(map[string]any)["conversion"].(map[string]any)["webhook"].(map[string]any)["clientConfig"].(map[string]any)["service"].(map[string]any)
	if service["port"] != 443.0 {
		t.Errorf("the port of the webhook is %v, want the default 443", service["port"])
	}
	if code, answer := w.do("POST", "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":3}}`); code != 201 {
		t.Fatal(answer)
	}
	same := stored("/apis/example.com/v1beta1/namespaces/default/widgets/w")
	if same["apiVersion"] != "example.com/v1beta1" || same["spec"].(map[string]any)["size"] != 3.0 {
		t.Errorf("the version with the same schema shows %v", same)
	}
	code, answer := w.do("GET", "/apis/example.com/v1alpha1/namespaces/default/widgets/w", "")
	if text, _ := answer["message"].(string); code != 501 || !strings.Contains(text, "version v1alpha1 has another schema than the stored version") {
		t.Errorf("the version with another schema: %d %v", code, answer)
	}
}
