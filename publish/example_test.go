// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"

	"github.com/ctrlkit/ctrlkit/publish"
	"github.com/ctrlkit/ctrlkit/step"
)

// A password in a Secret as a connection string, an address in a ConfigMap, and all of it for another
// namespace, which allows that.
func ExampleNew() {
	connection := publish.New("Connection", publish.Options[*Database]{
		Targets: func(db *Database) []publish.Target {
			return []publish.Target{
				{Secret: db.Name, Keys: map[string]string{"dsn": "postgres://{{.user}}:{{.password | urlquery}}@{{.host}}"}},
				{ConfigMap: db.Name, Keys: map[string]string{"host": "{{.host}}"}},
				{Secret: db.Name, Namespace: "monitoring"},
			}
		},
		ConfigMaps: true, Public: []string{"host"}, Elsewhere: true,
	})
	database := step.Step[*Database]{Name: "Database", Do: func(ctx context.Context, req *step.Request[*Database]) error {
		details := publish.Details{Values: map[string][]byte{"host": []byte("db.example.com"), "user": []byte("shop"), "password": []byte("...")}}
		return connection.Publish(ctx, req, details)
	}}
	_, _ = step.New(step.Options[*Database]{Name: "databases"}, connection.Step(), database)
}
