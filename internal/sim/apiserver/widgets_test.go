// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// newWidgets returns a server with the widget default/w.
func newWidgets(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	must(t, server.Install(definition(t, "widgets.yaml")))
	code, answer := world{t, server}.do("POST", "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	if code != 201 {
		t.Fatal(answer)
	}
	return server
}
