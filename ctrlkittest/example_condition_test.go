// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// The conditions of an operator in any language, as "kubectl get -o yaml" shows them.
func ExampleConditionProblems() {
	var database unstructured.Unstructured
	err := yaml.Unmarshal([]byte(`
apiVersion: example.com/v1
kind: Database
metadata: {name: db, generation: 2}
status:
  conditions:
  - type: Ready
    status: "False"
    reason: Error
    message: "dial tcp: request 1b4e28ba-2fa1-11d2-883f-0016d3cca427 refused"
    observedGeneration: 2
    lastTransitionTime: "2026-07-01T12:00:00Z"
`), &database)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range ctrlkittest.ConditionProblems(&database) {
		fmt.Println(wrap(p.String()))
	}
	// Output:
	// status.conditions[0] "Ready" is False, and nothing says what comes next:
	//   set Reconciling if the operator continues by itself, or Stalled if a person must act [says-why]
	// status.conditions[0] "Ready":
	//   the message has a UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca427":
	//   name the thing, and leave request ids to the log [holds-still]
}

// A printer stands for the *testing.T of a test.
type printer struct{ testing.TB }

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) { fmt.Println(wrap(fmt.Sprintf(format, args...))) }

func wrap(text string) string { return strings.ReplaceAll(text, ": ", ":\n  ") }

// In a test, pass its *testing.T, and the object as the idle operator has left it.
func ExampleCheckConditions() {
	var t testing.TB = printer{}
	backup := &unstructured.Unstructured{Object: map[string]any{"kind": "Backup"}}
	backup.SetNamespace("shop")
	backup.SetName("nightly")
	ctrlkittest.CheckConditions(t, backup)
	// Output:
	// Backup shop/nightly:
	//   status.conditions has no "Ready":
	//   set it from the first reconcile on, Unknown as long as nothing is known [has-ready]
}
