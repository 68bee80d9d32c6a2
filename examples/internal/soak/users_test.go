// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
)

// Two Users with their accounts, and one that was deleted. What is done to the server is found, and
// by the check that is for it.
func TestChecksOfUsers(t *testing.T) {
	for title, test := range map[string]struct{ statement, want string }{
		"all is well":         {"", ""},
		"a missing account":   {"DROP USER soak_0_a", checkAccounts},
		"too many grants":     {"GRANT DELETE ON shop.* TO soak_0_a", checkAccounts},
		"a missing grant":     {"REVOKE SELECT ON shop.* FROM soak_0_a", checkAccounts},
		"another password":    {"ALTER USER soak_1_a IDENTIFIED BY 'x'", checkPasswords},
		"an orphaned account": {"CREATE USER soak_2_a", checkUnowned},
	} {
		t.Run(title, func(t *testing.T) {
			system, err := startMySQL()
			must(t, err)
			defer func() { must(t, system.close()) }()
			admin, err := login(system.direct, mysqlserver.Username, mysqlserver.Password)
			must(t, err)
			defer admin.Close() //nolint:errcheck // the test has its answers
			exec := func(statements string) {
				t.Helper()
				for statement := range strings.SplitSeq(statements, ";") {
					_, err := admin.ExecContext(t.Context(), statement)
					must(t, err)
				}
			}
			scheme, err := newScheme()
			must(t, err)
			api := fake.NewClientBuilder().WithScheme(scheme).Build()
			u := newUsers(api, &options{objects: 3}, system).(*users)
			u.lanes[2] = lane{}
			for i := range u.model[:2] {
				account := fmt.Sprintf("soak_%d_a", i)
				u.model[i] = user{generation: 4, privileges: []v1.Privilege{"SELECT", "INSERT"}}
				exec("CREATE USER " + account + " IDENTIFIED BY 'secret';GRANT SELECT, INSERT ON shop.* TO " + account)
				obj := u.object(i).(*v1.User)
				obj.Status = v1.UserStatus{ObservedGeneration: 3, PasswordGeneration: 4, Username: account, Accounts: []string{account}}
				secret := &corev1.Secret{ObjectMeta: name("soak", i), Data: map[string][]byte{"username": []byte(account), "password": []byte("secret")}}
				secret.Name += "-mysql"
				must(t, api.Create(t.Context(), u.done(i, obj)))
				must(t, api.Create(t.Context(), secret))
			}
			var want []string
			if test.want != "" {
				exec(test.statement)
				want = []string{test.want}
			}
			checks, err := u.compare(t.Context(), time.Time{})
			must(t, err)
			if diff := cmp.Diff(want, violatedIn(checks)); diff != "" {
				t.Errorf("violated checks (-want +got):\n%s\n%+v", diff, checks)
			}
		})
	}
}
