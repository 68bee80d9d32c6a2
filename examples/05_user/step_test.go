// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
)

// rejecting is a server that rejects every login.
func rejecting(context.Context, Login, client.Object) (Accounts, error) {
	return nil, fmt.Errorf("connecting to db.example.com:3307: %w", ErrRejected)
}

// What only a person can correct names the object to correct.
func TestCredentials(t *testing.T) {
	empty := newCredentials()
	empty.Data = nil
	server, embedded := newServer(), newServer()
	embedded.Spec.Address, embedded.Spec.Embedded = "", true
	for _, s := range []*v1.Server{server, embedded} {
		s.Status.Conditions = []metav1.Condition{{Type: condition.Ready, Status: metav1.ConditionTrue, Reason: condition.ReasonReady, LastTransitionTime: metav1.Unix(1, 0)}}
	}
	for _, tt := range []struct {
		name    string
		objects []client.Object
		want    string
		remedy  string
	}{
		{"rejected", []client.Object{server, newCredentials()}, "False CredentialsRejected: User: connecting to db.example.com:3307: the server rejects the username or the password", "correct the username and the password in Secret default/db-admin"},
		{"incomplete", []client.Object{server, empty}, "False CredentialsIncomplete: User: the key username is missing in Secret default/db-admin", "add the keys username and password to the Secret"},
		{"no embedded server", []client.Object{embedded, newCredentials()}, "False EmbeddedServerDisabled: User: the operator has no embedded server, which Server db wants", "set spec.address instead of spec.embedded"},
		{"no Secret", []client.Object{server}, "False CredentialsNotFound: ServerFound: Secret db-admin with the credentials of Server db does not exist: create it", "create it again"},
		{"no Server", nil, "False ServerNotFound: ServerFound: Server db does not exist: create it", "create it again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of := accounts{dependencies{connect: rejecting, newPassword: newPassword}, newUserServerReference()}
			users := of.step()
			options := []ctrlkittest.Option{ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases"), ctrlkittest.WithObjects(tt.objects...)}
			got := ctrlkittest.Do(t, users, newShop(), options...)
			if ready := got.Conditions[condition.Ready]; !strings.HasPrefix(ready, tt.want) || got.Passed {
				t.Errorf("Ready is %q, want %q", ready, tt.want)
			}

			// The deletion of a User that was claimed waits, and the condition has the remedies.
			claimed := newShop()
			claimed.UID = "u"
			metav1.SetMetaDataAnnotation(&claimed.ObjectMeta, v1.AccountAnnotation, baseOf(claimed))
			if got = ctrlkittest.Cleanup(t, users, claimed, options...); got.Object == nil {
				t.Fatalf("deletion: got %+v, want that it waits", got)
			}
			remedy := "; to leave its accounts " + baseOf(got.Object) + "_* on the server, annotate the User with policy.ctrlkit.dev/reconcile=detach-on-delete"
			if ready := got.Conditions[condition.Ready]; !strings.Contains(ready, tt.remedy) || !strings.Contains(ready, remedy) {
				t.Errorf("deletion: got %+v, want that it names both remedies", got)
			}

			// One that was not claimed is gone at once.
			if got := ctrlkittest.Cleanup(t, users, newShop(), options...); got.Object != nil || got.Err != nil {
				t.Errorf("deletion of a User that was never claimed: %+v", got)
			}
		})
	}
}

// No User can take over an account of another one, or of the administrator.
func TestNamesAreUnique(t *testing.T) {
	one, other := newShop(), newShop()
	one.UID, other.UID = "1", "2"
	long := newShop()
	long.Spec.Name = strings.Repeat("x", 20)
	if a, b := namesOf(one), namesOf(other); a == b || a[0] == a[1] || otherOf(one, a[0]) != a[1] || otherOf(one, a[1]) != a[0] || otherOf(one, "root") != a[0] {
		t.Errorf("names %q and %q", a, b)
	}
	if n := namesOf(long)[1]; len(n) > 32 {
		t.Errorf("%s has %d characters, and MySQL allows 32", n, len(n))
	}
	if a, b := newPassword(), newPassword(); a == b || len(a) < 26 {
		t.Error("passwords are equal, or short")
	}
}
