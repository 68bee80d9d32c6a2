// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

func newDivide() *v1.RWExternal {
	return &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Name: "divide"}, Spec: v1.RWExternalSpec{InputSecret: "numbers", OutputSecret: v1.SecretReference{Name: "quotient"}}}
}

func newSecret(name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: make(map[string][]byte)}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func TestReadInput(t *testing.T) {
	for _, tt := range []struct {
		name      string
		input     map[string]string // nil for none
		condition string
		passed    bool
	}{
		{"there is none", nil, "False SecretNotFound: Secret default/numbers does not exist: create it with the keys dividend and divisor", false},
		{"it is empty", map[string]string{}, "False InvalidInput: Secret default/numbers: the key dividend is missing: add it with an integer", false},
		{"zero can be read", map[string]string{"dividend": "7", "divisor": "0"}, "True InputRead", true},
		{"two numbers", map[string]string{"dividend": "7", "divisor": "2"}, "True InputRead", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := []ctrlkittest.Option{ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases")}
			if tt.input != nil {
				options = append(options, ctrlkittest.WithObjects(newSecret("numbers", tt.input)))
			}
			got := ctrlkittest.Do(t, input, newDivide(), options...)
			if got.Conditions[v1.ConditionInputReady] != tt.condition || got.Passed != tt.passed || got.Err != nil {
				t.Errorf("got %+v, want the condition %q, passed: %t", got, tt.condition, tt.passed)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	foreign := newSecret("quotient", map[string]string{"quotient": "mine"})
	for _, tt := range []struct {
		name  string
		there []client.Object
		want  map[string]string
		class failure.Class
	}{
		{"there is none", nil, map[string]string{"quotient": "3", "remainder": "1"}, ""},
		{"it is another owner's", []client.Object{foreign}, map[string]string{"quotient": "mine"}, failure.ClassTerminal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ctrlkittest.Do(t, newOutput(), newDivide(), kit(t, division{7, 2}, tt.there...)...)
			var output corev1.Secret
			if err := got.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "quotient"}, &output); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(newSecret("quotient", tt.want).Data, output.Data); diff != "" || got.Class != tt.class {
				t.Errorf("failure class %q (%v), want %q; output (-want +got):\n%s", got.Class, got.Err, tt.class, diff)
			}
		})
	}
}

func kit(t *testing.T, numbers division, objects ...client.Object) []ctrlkittest.Option {
	return []ctrlkittest.Option{
		ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases"), ctrlkittest.WithObjects(objects...),
		ctrlkittest.WithSetup(func(req *step.Request[*v1.RWExternal]) { step.Put(req, divisionKey, numbers) }),
	}
}

func TestNoOutputForADivisionByZero(t *testing.T) {
	got := ctrlkittest.Do(t, newOutput(), newDivide(), kit(t, division{7, 0})...)
	want := "False DivisorIsZero: division by zero: change the key divisor of Secret default/numbers"
	if got.Conditions[v1.ConditionOutputReady] != want || got.Passed || len(got.Writes) > 0 {
		t.Errorf("got %+v, want the condition %q and no write", got, want)
	}
}

func TestRemoveOutput(t *testing.T) {
	written := ctrlkittest.Do(t, newOutput(), newDivide(), kit(t, division{7, 2})...)
	output := newSecret("quotient", nil)
	if err := written.Client.Get(t.Context(), client.ObjectKeyFromObject(output), output); err != nil {
		t.Fatal(err)
	}
	for key, value := range written.Object.GetAnnotations() { // in another world, the output has another UID
		written.Object.Annotations[key] = strings.ReplaceAll(value, " "+string(output.UID), "")
	}
	// The output is gone only when a read does not find it any more.
	got := ctrlkittest.Cleanup(t, newOutput(), written.Object, kit(t, division{7, 2}, output)...)
	if diff := cmp.Diff([]string{"delete Secret default/quotient"}, got.Writes); diff != "" || got.Passed || got.Err != nil {
		t.Errorf("got %+v; writes (-want +got):\n%s", got, diff)
	}
	again := ctrlkittest.Cleanup(t, newOutput(), written.Object, kit(t, division{7, 2})...)
	if !again.Passed || again.Object != nil || len(again.Writes) > 0 {
		t.Errorf("without the output: got %+v", again)
	}
	if got := again.Conditions[condition.Ready]; got != "" {
		t.Errorf("an object that is gone is Ready %q", got)
	}
}
