// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// widgetDefinition returns a definition with the versions v1, in which widgets are stored, and
// others of the given schemas.
func widgetDefinition(others map[string]map[string]apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, spec map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: spec}},
			}},
		}
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", sizeSchema)},
		},
	}
	for _, name := range []string{"v1alpha1", "v1beta1"} {
		if spec, ok := others[name]; ok {
			d.Spec.Versions = append(d.Spec.Versions, version(name, spec))
		}
	}
	return d
}

var sizeSchema = map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}

// newWidgets returns a server with the widget default/w.
func newWidgets(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	must(t, server.Install(widgetDefinition(nil)))
	code, answer := world{t, server}.do("POST", "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	if code != 201 {
		t.Fatal(answer)
	}
	return server
}
