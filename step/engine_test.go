// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

var (
	errFirst  = errors.New("the first thing broke")
	errSecond = errors.New("the second thing broke")
	errThird  = errors.New("the third thing broke")
)

func TestNewListsAllMistakes(t *testing.T) {
	w := newWorld(t)
	declaring := func(name, kind string) step.Step[*Thing] { return keeping(name, passes, kind) }
	tests := []struct {
		name    string
		options step.Options[*Thing]
		steps   []step.Step[*Thing]
		want    []string // in the error
	}{
		{"a name that is no label", step.Options[*Thing]{Name: "Two Words", Client: w.client}, nil, []string{`"Two Words"`, "DNS label"}},
		{"no client", step.Options[*Thing]{Name: "things"}, nil, []string{"no client"}},
		{"a step without a name", w.options(), []step.Step[*Thing]{doing("", passes)}, []string{"step 1", "name"}},
		{"a step with a line break", w.options(), []step.Step[*Thing]{doing("a\nb", passes)}, []string{"step 1", `"a\nb"`}},
		{"two steps of a name", w.options(), []step.Step[*Thing]{doing("Same", passes), doing("Same", passes)}, []string{`two steps have the name "Same"`}},
		{"two steps of a name, deep inside", w.options(),
			[]step.Step[*Thing]{doing("Same", passes), step.Group("g", step.When("w", always, doing("Same", passes)))},
			[]string{`two steps have the name "Same"`}},
		{"a condition that is computed", w.options(), []step.Step[*Thing]{declaring("S", condition.Ready)}, []string{`"Ready"`}},
		{"a condition twice", w.options(), []step.Step[*Thing]{declaring("S", "Found"), declaring("T", "Found")}, []string{`"Found"`, "twice"}},
		{"a finalizer that no step needs", withFinalizer(w.options(), "example.com/x"), []step.Step[*Thing]{doing("S", passes)}, []string{`"example.com/x"`}},
		{"a finalizer that is retired and in use", step.Options[*Thing]{Name: "things", Client: w.client, RetiredFinalizers: []string{finalizer}},
			[]step.Step[*Thing]{cleaning("A", passes, passes)}, []string{"RetiredFinalizers"}},
		{"a finalizer that is none", withFinalizer(w.options(), "x"), []step.Step[*Thing]{cleaning("S", passes, passes)},
			[]string{`"x"`, "qualified name"}},
		{"all at once", withFinalizer(step.Options[*Thing]{Name: "Two Words", Client: w.client}, "x"),
			[]step.Step[*Thing]{cleaning("", passes, passes), declaring("Same", "Ready"), declaring("Same", "Found")},
			[]string{`"Two Words"`, "step 1", `two steps have the name "Same"`, `"Ready"`, `finalizer "x"`}},
		{"all at once, and no client", step.Options[*Thing]{Name: "Two Words"}, []step.Step[*Thing]{doing("", passes)},
			[]string{`"Two Words"`, "step 1", "no client"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := step.New(test.options, test.steps...)
			if err == nil {
				t.Fatal("there was no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// A Go type that does not say the kind is refused with what to do instead.
func TestNewRefusesAnUnknownKind(t *testing.T) {
	w := newWorld(t)
	_, untyped := step.New(step.Options[*unstructured.Unstructured]{Name: "things", Client: w.client})
	_, metadata := step.New(step.Options[*metav1.PartialObjectMetadata]{Name: "things", Client: w.client})
	_, typed := step.New(step.Options[*Thing]{Name: "things", Client: w.client, Kind: thingVersion.WithKind("Thing")})
	for want, err := range map[string]error{
		"set Options.Kind to the one that is meant": untyped, "metadata alone has no status": metadata, "leave Options.Kind empty": typed,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func always(*request) bool { return true }
func never(*request) bool  { return false }

func withFinalizer(o step.Options[*Thing], finalizer string) step.Options[*Thing] {
	o.Finalizer = finalizer
	return o
}

func TestNewRefusesTypes(t *testing.T) {
	t.Run("not in the scheme", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
		if _, err := step.New(step.Options[*Thing]{Name: "things", Client: c}); err == nil || !strings.Contains(err.Error(), "scheme") {
			t.Errorf("got %v, want an error about the scheme", err)
		}
	})
	t.Run("conditions on a type without them", func(t *testing.T) {
		options := step.Options[*corev1.ConfigMap]{Name: "maps", Client: newWorld(t).client}
		_, err := step.New(options, step.Step[*corev1.ConfigMap]{Name: "Keep", Conditions: []condition.Declaration{{Type: "Found"}}})
		if !errors.Is(err, condition.ErrNone) {
			t.Errorf("got %v, want condition.ErrNone", err)
		}
	})
	t.Run("a finalizer of the core group has no default", func(t *testing.T) {
		options := step.Options[*corev1.ConfigMap]{Name: "maps", Client: newWorld(t).client}
		_, err := step.New(options, step.Step[*corev1.ConfigMap]{Name: "Keep", Cleanup: func(context.Context, *step.Request[*corev1.ConfigMap]) error { return nil }})
		if err == nil || !strings.Contains(err.Error(), "qualified name") {
			t.Errorf("got %v, want an error about the finalizer", err)
		}
	})
}

// What makes no sense is a mistake, and so is a step that its package could not make.
func TestNewRefusesSteps(t *testing.T) {
	claim := doing("A", passes)
	claim.Claim = passes
	selective := doing("B", passes)
	selective.Cleans = func(*request) bool { return true }
	_, err := step.New(newWorld(t).options(), claim, selective, step.Step[*Thing]{Name: "C", Err: errors.New("no identity")})
	for _, want := range []string{`step "A" has a Claim`, `step "B" has a Claim or a Cleans without a Cleanup`, `step "C": no identity`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestFinalizerOfAnEngine(t *testing.T) {
	w := newWorld(t)
	same(t, "by default", finalizer, w.engine(cleaning("A", passes, passes)).Finalizer())
	same(t, "not needed", "", w.engine(doing("A", passes)).Finalizer())
	same(t, "named", "example.com/named", w.engineWith(withFinalizer(w.options(), "example.com/named"), cleaning("A", passes, passes)).Finalizer())
}
