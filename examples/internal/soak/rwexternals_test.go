// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
)

// A cluster is what is compared.
type cluster struct {
	owners  []v1.RWExternal
	secrets []corev1.Secret
}

func (c *cluster) secret(name string) *corev1.Secret {
	return &c.secrets[slices.IndexFunc(c.secrets, func(s corev1.Secret) bool { return s.Name == name })]
}

func (c *cluster) remove(name string) {
	c.secrets = slices.DeleteFunc(c.secrets, func(s corev1.Secret) bool { return s.Name == name })
}

// asWanted returns the cluster of a perfect operator.
func (r *rwExternals) asWanted() *cluster {
	c := &cluster{}
	for i, m := range r.model {
		if m.own.exists {
			c.secrets = append(c.secrets, corev1.Secret{ObjectMeta: r.inputKey(i), Data: m.own.data()})
		}
		if m.foreign != "" {
			c.secrets = append(c.secrets, corev1.Secret{ObjectMeta: r.outputKey(i), Data: map[string][]byte{"foreign": []byte(m.foreign)}})
		}
		if !m.exists {
			continue
		}
		obj := r.object(i)
		obj.Generation, obj.Status.ObservedGeneration = 2, 2
		obj.Finalizers = []string{"demo.ctrlkit.dev/rwexternal"}
		if m.label != "" {
			obj.Labels = map[string]string{coWriter: m.label}
		}
		obj.Status.Conditions = conditionsAs(r.want(m), 2)
		c.owners = append(c.owners, *obj)
		if quotient, remainder, ok := r.model[m.input].own.quotient(); ok && m.foreign == "" {
			output := corev1.Secret{ObjectMeta: r.outputKey(i), Data: map[string][]byte{"quotient": []byte(quotient), "remainder": []byte(remainder)}}
			output.Annotations = map[string]string{apply.OwnerAnnotation: ownerOf(r.name(i))}
			c.secrets = append(c.secrets, output)
		}
	}
	return c
}

func testedRWExternals() *rwExternals {
	good := input{exists: true, dividend: "7", divisor: "2"}
	return &rwExternals{options: &options{}, random: newRandom(1, "test"), model: []rwExternal{
		{exists: true, input: 0, label: "5", own: good},
		{exists: true, input: 0, own: input{exists: true, dividend: "many", divisor: "2"}}, // reads the input of another one
		{exists: true, input: 1}, // its input is not valid, and its own does not exist
		{exists: true, input: 2}, // its input does not exist
		{exists: true, input: 0, foreign: "12"},
		{own: good},                 // deleted
		{foreign: "13", input: 999}, // deleted, and its output is foreign
	}}
}

var staleOutput = corev1.Secret{Data: map[string][]byte{"quotient": []byte("old")}}

// A rwExternalsCase is a case of TestRWExternalsChecks.
type rwExternalsCase struct {
	name  string
	plant func(r *rwExternals, c *cluster)
	want  []string
}

var rwExternalsCases = []rwExternalsCase{
	{name: "all is well", plant: func(*rwExternals, *cluster) {}},
	{name: "a wrong output", plant: func(_ *rwExternals, c *cluster) { c.secret("output-00").Data["quotient"] = []byte("4") }, want: []string{"outputs"}},
	{name: "too much in an output", plant: func(_ *rwExternals, c *cluster) { c.secret("output-01").Data["x"] = nil }, want: []string{"outputs"}},
	{name: "an output is missing", plant: func(_ *rwExternals, c *cluster) { c.remove("output-00") }, want: []string{"outputs"}},
	{name: "an output names another owner", plant: func(_ *rwExternals, c *cluster) {
		c.secret("output-00").Annotations[apply.OwnerAnnotation] = ownerOf("soak-01")
	}, want: []string{"outputs"}},
	{name: "what was written from an earlier input stays", plant: func(r *rwExternals, c *cluster) {
		old := staleOutput
		old.ObjectMeta = r.outputKey(3)
		old.Annotations = map[string]string{apply.OwnerAnnotation: ownerOf("soak-03")}
		c.secrets = append(c.secrets, old)
	}},
	{name: "an orphan", plant: func(r *rwExternals, c *cluster) {
		old := staleOutput
		old.ObjectMeta = r.outputKey(5)
		old.Annotations = map[string]string{apply.OwnerAnnotation: ownerOf("soak-05")}
		c.secrets = append(c.secrets, old)
	}, want: []string{"orphaned Secrets"}},
	{name: "a Secret under no known name", plant: func(_ *rwExternals, c *cluster) {
		old := staleOutput
		old.ObjectMeta = metav1.ObjectMeta{Namespace: outputsNamespace, Name: "output-00"}
		c.secrets = append(c.secrets, old)
	}, want: []string{"orphaned Secrets"}},
	{name: "a foreign Secret is overwritten", plant: func(_ *rwExternals, c *cluster) {
		c.secret("output-04").Data = map[string][]byte{"quotient": []byte("3")}
	}, want: []string{"foreign Secrets touched"}},
	{name: "a foreign Secret is deleted with the owner", plant: func(_ *rwExternals, c *cluster) { c.remove("output-06") }, want: []string{"foreign Secrets touched"}},
	{name: "an input is deleted", plant: func(_ *rwExternals, c *cluster) { c.remove("input-05") }, want: []string{"foreign Secrets touched"}},
	{name: "an input that was deleted is there", plant: func(r *rwExternals, c *cluster) {
		c.secrets = append(c.secrets, corev1.Secret{ObjectMeta: r.inputKey(2)})
	}, want: []string{"orphaned Secrets"}},
	{name: "ready without an input", plant: func(_ *rwExternals, c *cluster) { c.owners[3].Status.Conditions = c.owners[0].Status.Conditions }, want: []string{"Ready"}},
	{name: "the wrong reason", plant: func(_ *rwExternals, c *cluster) { c.owners[3].Status.Conditions = c.owners[2].Status.Conditions }, want: []string{"Ready"}},
	{name: "an old status", plant: func(_ *rwExternals, c *cluster) { c.owners[0].Status.ObservedGeneration = 1 }, want: []string{"Ready"}},
	{name: "a co-writer's label is removed", plant: func(_ *rwExternals, c *cluster) { c.owners[0].Labels = nil }, want: []string{"labels of a co-writer"}},
	{name: "a finalizer is stuck", plant: func(r *rwExternals, c *cluster) {
		r.model[5].exists = true
		stuck := r.object(5)
		r.model[5].exists = false
		stuck.DeletionTimestamp = &metav1.Time{Time: epoch}
		c.owners = append(c.owners, *stuck)
	}, want: []string{"missing or superfluous objects"}},
	{name: "an object is missing", plant: func(_ *rwExternals, c *cluster) { c.owners = c.owners[1:] }, want: []string{"missing or superfluous objects"}},
	{name: "an object that was never made", plant: func(_ *rwExternals, c *cluster) {
		c.owners = append(c.owners, v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	}, want: []string{"missing or superfluous objects"}},
}

// The checks find what is planted, and nothing else.
func TestRWExternalsChecks(t *testing.T) {
	for _, test := range rwExternalsCases {
		t.Run(test.name, func(t *testing.T) {
			r := testedRWExternals()
			c := r.asWanted()
			test.plant(r, c)
			checks := r.compareWith(c.owners, c.secrets, time.Time{})
			if diff := cmp.Diff(test.want, violatedIn(checks)); diff != "" {
				t.Errorf("violated checks (-want +got):\n%s\n%+v", diff, checks)
			}
		})
	}
}

// When all edits are made, the cluster is what the model says, as far as no operator is needed for
// that.
func TestEditsOfRWExternalsMakeTheModel(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		user := fake.NewClientBuilder().WithScheme(scheme).Build()
		r := newRWExternals(user, &options{objects: 5, seed: seed, chaos: 15 * time.Second, edits: span{100 * time.Millisecond, 400 * time.Millisecond}}).(*rwExternals)
		if err := r.create(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range r.edits() {
			if err := e.apply(t.Context(), user); err != nil {
				t.Fatalf("seed %d, object %d: %s: %v", seed, e.lane, e.what, err)
			}
		}
		checks, err := r.compare(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		// The operator is missing.
		got := slices.DeleteFunc(violatedIn(checks), func(name string) bool { return name == "Ready" || name == "outputs" })
		if len(got) > 0 {
			t.Fatalf("seed %d: violated checks %q: %+v", seed, got, checks)
		}
		perfect := r.asWanted()
		if violated := violatedIn(r.compareWith(perfect.owners, perfect.secrets, time.Time{})); len(violated) > 0 {
			t.Errorf("seed %d: the model does not agree with itself: %q", seed, violated)
		}
	}
}

// A division by zero is another reason than an input that can't be read.
func TestReasonsOfAnInput(t *testing.T) {
	for _, test := range []struct {
		in   input
		want string
	}{
		{input{exists: true, dividend: "7", divisor: "2"}, ""},
		{input{exists: true, dividend: "7", divisor: "0"}, "DivisorIsZero"},
		{input{exists: true, dividend: "seven", divisor: "0"}, "InvalidInput"},
		{input{exists: true, dividend: "7", divisor: "two"}, "InvalidInput"},
		{input{}, "SecretNotFound"},
	} {
		r := &rwExternals{model: []rwExternal{{own: test.in}}}
		if got := r.want(r.model[0]).reason; got != test.want {
			t.Errorf("%s: reason %q, want %q", test.in, got, test.want)
		}
	}
}
