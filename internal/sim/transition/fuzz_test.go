// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package transition_test

import (
	"encoding/json"
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// unstructuredJSON decodes whole numbers as API machinery does.
var unstructuredJSON = unstructured.UnstructuredJSONScheme

// FuzzOf lets an API server answer each changed object: it accepts or refuses it, and fails at none.
// The first transitions are those that come each time, and all of them differ.
func FuzzOf(f *testing.F) {
	f.Add("size: {type: integer, minimum: 1, maximum: 5}", "{size: 3}")
	f.Add("image: {type: string, minLength: 1}\nports: {type: array, items: {type: object, properties: {name: {type: string}, port: {x-kubernetes-int-or-string: true}}}}", "{image: a:1, ports: [{name: web, port: 80}]}")
	f.Add("labels: {type: object, additionalProperties: {type: string}}\nmode: {type: string, enum: [a, b]}", "{labels: {a: b, c: d}, mode: a}")
	f.Add("ratio: {type: number, minimum: 0.5}\nany: {x-kubernetes-preserve-unknown-fields: true}", "{ratio: 0.75, any: [1, {a: null}]}")
	f.Add("every: {type: string, format: duration}\nuntil: {type: string, format: date-time, nullable: true}", "{every: 5m, until: null}")
	f.Fuzz(func(t *testing.T, properties, spec string) {
		props := map[string]apiextensionsv1.JSONSchemaProps{}
		if yaml.Unmarshal([]byte(properties), &props) != nil {
			t.Skip("not properties")
		}
		data, err := yaml.YAMLToJSON([]byte("{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: default}, spec: " + spec + "}"))
		if err != nil {
			t.Skip("not an object")
		}
		object, err := runtime.Decode(unstructuredJSON, data)
		if err != nil {
			t.Skip("not an object")
		}
		d := definitionOf(t, "none: {type: string}")
		root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		root.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: props}
		schema, err := transition.SchemaOf(d, "v1")
		if err != nil {
			t.Skip("not a structural schema")
		}
		server := apiserver.New(apiserver.Options{})
		if server.Install(d) != nil {
			t.Skip("the API server refuses the definition")
		}
		content := object.(*unstructured.Unstructured).Object
		seen := map[string]bool{}
		for _, c := range transition.Of(schema, content) {
			if seen[c.String()] {
				t.Errorf("%s comes twice", c)
			}
			seen[c.String()] = true
			body, err := json.Marshal(c.Of(content))
			if err != nil {
				t.Fatal(err)
			}
			request, err := apiserver.NewRequest(http.MethodPost, "/apis/example.com/v1/namespaces/default/shops?dryRun=All", "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			if code := server.Serve(request).Code; code >= http.StatusInternalServerError {
				t.Errorf("%s is answered with %d", c, code)
			}
		}
	})
}
