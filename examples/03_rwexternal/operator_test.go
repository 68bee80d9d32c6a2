// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The operator does its work against the real API server, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	c := startOperator(t, "config/admission/policy.yaml")

	c.Apply(t, "config/samples/rwexternal.yaml")
	divide := exampletest.Await(t, c, "divide", exampletest.Ready[*v1.RWExternal])
	waits := exampletest.Await(t, c, "waits", func(r *v1.RWExternal) bool { return exampletest.Reason(r, condition.Reconciling) == "SecretNotFound" })
	ctrlkittest.CheckConditions(t, divide)
	ctrlkittest.CheckConditions(t, waits)

	output := &corev1.Secret{}
	outputKey := client.ObjectKey{Namespace: c.Namespace, Name: "quotient"}
	exampletest.Must(t, c.Get(t.Context(), outputKey, output))
	if got, want := divide.Status.OutputSecret, (v1.SecretReference{Namespace: c.Namespace, Name: "quotient"}); got == nil || *got != want {
		t.Errorf("status.outputSecret: %v, want %v", got, want)
	}
	if string(output.Data["quotient"]) != "3" || string(output.Data["remainder"]) != "1" {
		t.Errorf("output %q, want the quotient of 7 and 2", output.Data)
	}

	missing := &corev1.Secret{ObjectMeta: c.In("missing"), StringData: map[string]string{"dividend": "1", "divisor": "0"}}
	exampletest.Must(t, c.Create(t.Context(), missing))
	after := exampletest.Await(t, c, "waits", func(r *v1.RWExternal) bool { return exampletest.Reason(r, condition.Stalled) == "DivisorIsZero" })
	ctrlkittest.CheckConditions(t, after)
	ctrlkittest.CheckConditionChange(t, waits, after)
	if !meta.IsStatusConditionTrue(after.Status.Conditions, v1.ConditionInputReady) || !meta.IsStatusConditionFalse(after.Status.Conditions, v1.ConditionOutputReady) {
		t.Errorf("a division by zero: %+v, want that the input is ready and the output is not", after.Status.Conditions)
	}

	// The output of an RWExternal is deleted with it.
	exampletest.Must(t, c.Delete(t.Context(), divide))
	c.Gone(t, divide)
	if err := c.Get(t.Context(), outputKey, output); !apierrors.IsNotFound(err) {
		t.Errorf("reading the output after the cleanup: %v, want that it does not exist", err)
	}
}

// startOperator runs the operator until the test ends.
func startOperator(t *testing.T, files ...string) *exampletest.Cluster {
	t.Helper()
	c := exampletest.NewCluster(t, &shared, simScheme(t), files...)
	mgr, err := rwExternal.Manager(c.Operator(t, "rwexternal"))
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	return c
}

// The message says which key is wrong, and never what is in it. The output has a default.
func TestMessagesNameTheKey(t *testing.T) {
	tests := []struct {
		name, want string
		data       map[string][]byte
	}{
		{"no dividend", "the key dividend is missing", map[string][]byte{"divisor": []byte("2")}},
		{"no divisor", "the key divisor is missing", map[string][]byte{"dividend": []byte("7")}},
		{"not a number", "the value of the key divisor is not an integer", map[string][]byte{"dividend": []byte("7"), "divisor": []byte("hunter2")}},
		{"both", "", map[string][]byte{"dividend": []byte("7"), "divisor": []byte("2")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, problem := divisionOf(&corev1.Secret{Data: test.data})
			if !strings.HasPrefix(problem, test.want) || (test.want == "") != (problem == "") || strings.Contains(problem, "hunter2") {
				t.Errorf("got %q, want %q", problem, test.want)
			}
		})
	}
}

func TestOutputByDefault(t *testing.T) {
	obj := &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "divide"}}
	if got, want := outputOf(obj).String(), "shop/divide-output"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A Secret of another owner is neither overwritten nor deleted.
func TestForeignSecretIsLeftAlone(t *testing.T) {
	c := startOperator(t)
	foreign := &corev1.Secret{ObjectMeta: c.In("quotient"), StringData: map[string]string{"quotient": "mine"}}
	exampletest.Must(t, c.Create(t.Context(), foreign))
	c.Apply(t, "config/samples/rwexternal.yaml")
	divide := exampletest.Await(t, c, "divide", func(r *v1.RWExternal) bool {
		return exampletest.Reason(r, condition.Stalled) == apply.ReasonOwnedByAnother
	})
	ctrlkittest.CheckConditions(t, divide)
	exampletest.Must(t, c.Delete(t.Context(), divide))
	c.Gone(t, divide)
	var now corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), &now); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the Secret of another owner: version %s and error %v, want that it is unchanged", now.ResourceVersion, err)
	}
}
