// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish writes what the users of an object need to reach what it stands for, such as an
// address and a password, to Secrets and ConfigMaps:
//
//	connection := publish.New("Connection", publish.Options[*v1.Database]{
//		Targets: func(db *v1.Database) []publish.Target {
//			return []publish.Target{
//				{Secret: db.Name, Keys: map[string]string{"dsn": "postgres://{{.user}}:{{.password}}@{{.host}}/{{.name}}"}},
//				{ConfigMap: db.Name, Keys: map[string]string{"host": "{{.host}}"}},
//			}
//		},
//		Public: []string{"host"},
//	})
//
// A step of an engine publishes them, or external.Options.Publish. The values are in no message, no
// log and no journal.
package publish
