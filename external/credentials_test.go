// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/external"
)

// The nearest scope decides, and a wider one is used only if a nearer one is certainly not there.
func TestCredentialScopes(t *testing.T) {
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	all := []client.Object{secret("shop", "own"), secret("shop", "team"), secret("system", "all")}
	scopes := external.CredentialScopes{Namespace: "team", Operator: client.ObjectKey{Namespace: "system", Name: "all"}}
	named := scopes
	named.Named = "own"
	for _, tt := range []struct {
		name    string
		scopes  external.CredentialScopes
		in      string
		objects []client.Object
		broken  string
		want    string
	}{
		{"named", named, "shop", all, "", "shop/own"},
		{"of the namespace", scopes, "shop", all, "", "shop/team"},
		{"of the operator", scopes, "other", all, "", "system/all"},
		{"of a cluster-scoped object", scopes, "", all, "", "system/all"},
		{"the named one is missing", named, "shop", all[1:], "", `none of the Secrets ["shop/own"] exists`},
		{"none is there", scopes, "shop", nil, "", `none of the Secrets ["shop/team" "system/all"] exists`},
		{"that of the namespace can't be read", scopes, "shop", all, "team", "reading the credentials in Secret shop/team: forbidden"},
	} {
		c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(tt.objects...).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == tt.broken {
					return errors.New("forbidden")
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		got, err := tt.scopes.Get(t.Context(), c, tt.in)
		if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && client.ObjectKeyFromObject(got).String() != tt.want {
			t.Errorf("%s: %v, error %v; want %s", tt.name, got, err, tt.want)
		}
	}
}
