// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package externaltest checks that a client of package external keeps its contract:
//
//	func TestClient(t *testing.T) {
//		server := startServer(t)
//		externaltest.Run(t, externaltest.Config[*v1.Stream]{
//			Identity: identity,
//			Connect:  server.connect,
//			New:      newStream,
//			Drift:    func(obj *v1.Stream) { obj.Spec.Subjects = []string{"other"} },
//			Refuse:   func(obj *v1.Stream) { obj.Spec.Replicas = 4 },
//			Canary:   server.password,
//		})
//	}
//
// Each [Rule] is a subtest. What is not configured skips the rules that need it, and the test says
// so. The kit calls the client as package external does: for each reconcile with a new client. It
// creates resources of its own, and deletes them.
//
// The kit shows how a client behaves in a system that works. Package sim shows how the operator
// behaves when it does not: with lost answers, crashes, and outages of the system.
package externaltest
