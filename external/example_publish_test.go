// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

// A password in a Secret as a connection string, an address in a ConfigMap, and all of it for another
// namespace, which allows that.
func ExamplePublisher() {
	connection := &external.Publisher[*Database]{
		Targets: func(db *Database) []external.Target {
			return []external.Target{
				{Secret: db.Name, Keys: map[string]string{"dsn": "postgres://{{.user}}:{{.password | urlquery}}@{{.host}}"}},
				{ConfigMap: db.Name, Keys: map[string]string{"host": "{{.host}}"}},
				{Secret: db.Name, Namespace: "monitoring"},
			}
		},
		Public: []string{"host"}, Elsewhere: true,
	}
	database := step.Step[*Database]{Name: "Database", Do: func(ctx context.Context, req *step.Request[*Database]) error {
		details := external.Details{Values: map[string][]byte{"host": []byte("db.example.com"), "user": []byte("shop"), "password": []byte("...")}}
		return connection.Publish(ctx, req, details)
	}}
	_, _ = step.New(step.Options[*Database]{Name: "databases"}, connection.Step("Connection"), database)
}
