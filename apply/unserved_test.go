// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A request for a kind whose definition has gone is answered otherwise than one for an object, or a
// namespace, that is not there.
func TestUnservedKinds(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no such path":   {apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", widgets, "web", "404 page not found", 0, true), true},
		"no such object": {apierrors.NewNotFound(widgets, "web"), false},
		"no namespace":   {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), false},
		"nothing":        {nil, false},
	} {
		err := test.err
		if err != nil {
			err = fmt.Errorf("applying Widget default/web: %w", err)
		}
		if got := isUnserved(err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
