// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctrlkittest tests the parts of an operator: a step, conditions, the client of an external
// system, a workflow. And it starts a real control plane. Package sim tests the operator as a whole.
//
// # A step
//
// [Do] and [Cleanup] run one step as an engine of package step would:
//
//	func TestDivide(t *testing.T) {
//		seven := &v1.Simple{Spec: v1.SimpleSpec{Dividend: 7, Divisor: 2}}
//		got := ctrlkittest.Do(t, step.Step[*v1.Simple]{Name: "Divide", Do: divide}, seven)
//		want := `{"status":{"quotient":3,"remainder":1}}`
//		if got.Saved != want || got.Err != nil {
//			t.Errorf("saved %s and error %v, want %s", got.Saved, got.Err, want)
//		}
//	}
//
// The object, and what else [WithObjects] puts into the cluster, live in an API server in memory,
// that of sim.NewServer: it validates, keeps resource versions and field owners, and refuses what
// the real one refuses. With [WithCRDs] it knows the schemas of the operator's own kinds; without,
// it accepts any fields. A test takes some milliseconds. In a testing/synctest bubble the time
// stands still.
//
// There is no stale cache, no second reconcile and no fault but those of [WithInterceptor]: package
// sim tests an operator with all of that.
//
// # Conditions
//
// [CheckConditions] checks the conditions of objects of any operator: whether other tools can read
// them, whether they are consistent, and, with [CheckConditionChange], whether they change only for
// a reason.
//
//	ctrlkittest.CheckConditions(t, backup)              // when the operator is idle
//	ctrlkittest.CheckConditionChange(t, before, backup) // for two consecutive versions
//
// An object is a pointer to a struct with a field Status.Conditions, a condition.Accessor, or an
// *unstructured.Unstructured. [ConditionProblems] and [ConditionChangeProblems] return what is wrong
// as a list, each with the [ConditionRule] that is broken, for tests that filter.
//
// The rules come from the API server, from kstatus, which "kubectl wait", Argo CD and Flux
// understand, and from watches: a condition that changes without a reason causes a write, and a
// write causes a reconcile. The meaning of an operator's conditions is left to its own tests.
//
// # A client of an external system
//
// [CheckClient] checks that a client of package external keeps its contract:
//
//	func TestClient(t *testing.T) {
//		server := startServer(t)
//		ctrlkittest.CheckClient(t, ctrlkittest.ClientConfig[*v1.Stream]{
//			Identity: identity,
//			Connect:  server.connect,
//			New:      newStream,
//			Drift:    func(obj *v1.Stream) { obj.Spec.Subjects = []string{"other"} },
//			Refuse:   func(obj *v1.Stream) { obj.Spec.Replicas = 4 },
//			Canary:   server.password,
//		})
//	}
//
// Each [ClientRule] is a subtest. A rule that needs an option which is not set is skipped, and the
// test says so. The kit calls the client as package external does: for each reconcile with a new
// client. It creates resources of its own, and deletes them. It shows how a client behaves in a
// system that works. Package sim shows how the operator behaves when it does not: with lost
// answers, crashes, and outages of the system.
//
// # A workflow
//
// With [AttachDiagram], the log of a test that fails ends with the workflow and the outcome of each
// action:
//
//	ctx := ctrlkittest.AttachDiagram(t.Context(), t, workflow)
//	result, err := workflow.Run(ctx)
//
// With CTRLKIT_DIAGRAMS set to a directory, every test writes the same as an SVG file into it,
// whether it fails or not:
//
//	CTRLKIT_DIAGRAMS=/tmp/diagrams go test ./...
//
// # A control plane
//
// [StartControlPlane] starts one of package controlplane for a single test and stops it when the
// test ends. A package whose tests can use the same control plane declares a [SharedControlPlane]
// and starts it in TestMain:
//
//	plane := ctrlkittest.StartControlPlane(t, controlplane.Options{
//		Parts: controlplane.AllParts,
//		CRDs:  []string{"config/crd"},
//	})
//	mgr, err := manager.New(plane.Config(), manager.Options{})
package ctrlkittest
