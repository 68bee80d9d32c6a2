// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func drawRequirement(t *rapid.T) Requirement {
	text := rapid.SampledFrom([]string{"", "x", "y", "z"})
	r := Requirement{Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")}
	r.Operator = rapid.SampledFrom([]selection.Operator{
		selection.In, selection.NotIn, selection.Equals, selection.NotEquals, selection.Exists, selection.DoesNotExist,
	}).Draw(t, "operator")
	switch r.Operator {
	case selection.In, selection.NotIn:
		r.Values = rapid.SliceOfN(text, 1, 3).Draw(t, "values")
	case selection.Equals, selection.NotEquals:
		r.Values = []string{text.Draw(t, "value")}
	}
	return r
}

// A requirement holds exactly where one of a label selector with the same words matches.
func TestRequirementsMeanWhatLabelSelectorsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequirement(t)
		have := rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"", "x", "y"})).Draw(t, "labels")
		upstream, err := labels.NewRequirement(r.Key, r.Operator, r.Values)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.holds(have), upstream.Matches(labels.Set(have)); got != want {
			t.Errorf("%v of %v: got %v, want %v", r, have, got, want)
		}
		if mismatches := unmet("label", []Requirement{r}, have); (len(mismatches) == 0) != upstream.Matches(labels.Set(have)) {
			t.Errorf("%v of %v: %q", r, have, mismatches)
		}
	})
	if (Requirement{Key: "a", Operator: selection.GreaterThan, Values: []string{"1"}}).holds(map[string]string{"a": "2"}) {
		t.Error("an operator that is not known holds")
	}
}

// Different requirements make different keys.
func TestKeyHasRequirements(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []Selection{
		{}, {Where: []Requirement{{Key: "a", Operator: "exists"}}}, {FieldWhere: []Requirement{{Key: "a", Operator: "exists"}}}, {Annotations: []Requirement{{Key: "a", Operator: "exists"}}},
		{Where: []Requirement{{Key: "a", Operator: "!"}}}, {Where: []Requirement{{Key: "a", Operator: "in", Values: []string{"b"}}}},
		{Where: []Requirement{{Key: "a", Operator: "in", Values: []string{"b", "c"}}}}, {Where: []Requirement{{Key: "a", Operator: "in", Values: []string{"b c"}}}},
	} {
		if seen[s.Key()] {
			t.Errorf("the key of %v is that of another one", s)
		}
		seen[s.Key()] = true
	}
}

// An event enqueues the targets if the object satisfies the requirements now or did so before.
func TestEnqueueOnly(t *testing.T) {
	only := Selection{
		Where:       []Requirement{{Key: "tier", Operator: selection.In, Values: []string{"a", "b"}}},
		Annotations: []Requirement{{Key: "hidden", Operator: selection.DoesNotExist}},
	}
	with := func(labels, annotations map[string]string) *corev1.Secret {
		secret := secretNamed("ns", "two")
		secret.Labels, secret.Annotations = labels, annotations
		return secret
	}
	selected := with(map[string]string{"tier": "a"}, nil)
	otherwise := with(map[string]string{"tier": "c"}, nil)
	hidden := with(map[string]string{"tier": "a"}, map[string]string{"hidden": ""})
	for name, test := range map[string]struct {
		from, to *corev1.Secret
		want     []string
	}{
		"stays":          {selected, selected, []string{"ns/c"}},
		"comes":          {otherwise, selected, []string{"ns/c"}},
		"leaves":         {selected, hidden, []string{"ns/c"}},
		"never selected": {otherwise, hidden, nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			Enqueue(indexed(), &corev1.ConfigMapList{}, bySecret, offerSecret, only).
				Update(t.Context(), event.UpdateEvent{ObjectOld: test.from, ObjectNew: test.to}, queue)
			var got []string
			for queue.Len() > 0 {
				request, _ := queue.Get()
				got = append(got, request.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("enqueued %q, want %q", got, test.want)
			}
		})
	}
}

// The index of targets leaves out what no object determines.
func TestTargetIndexLeavesOutRequirements(t *testing.T) {
	index := TargetIndex("ctrlkit:v1/Secret", func(target *corev1.ConfigMap) (Selection, error) {
		s, err := selectSecret(target)
		s.Where, s.Annotations = []Requirement{{Key: "a", Operator: selection.Exists}}, []Requirement{{Key: "b", Operator: selection.Exists}}
		return s, err
	})
	same(t, "values", bySecret.Values(selecting("ns", "a", "one")), index.Values(selecting("ns", "a", "one")))
}

// What a field requires is what a label does, but an empty field is missing to Exists and
// DoesNotExist. An index that is not given is an error, and no item has the field.
func TestHaving(t *testing.T) {
	index := Index[*corev1.Pod]{Name: "ctrlkit:.spec.nodeName", Values: func(p *corev1.Pod) []string {
		if p.Name == "unset" {
			return nil
		}
		return []string{p.Spec.NodeName}
	}}
	pods := func() []corev1.Pod {
		var pods []corev1.Pod
		for _, name := range []string{"a", "b", "", "unset"} {
			p := corev1.Pod{Spec: corev1.PodSpec{NodeName: name}}
			if p.Name = name; name == "" {
				p.Name = "empty"
			}
			pods = append(pods, p)
		}
		return pods
	}
	for text, want := range map[string][]string{
		"in a": {"a"}, "in a,": {"a", "empty"}, "notin a": {"b", "empty", "unset"}, "!= b": {"a", "empty", "unset"}, "= a": {"a"},
		"exists": {"a", "b"}, "!": {"empty", "unset"},
	} {
		operator, values, some := strings.Cut(text, " ")
		r := Requirement{Key: index.Name, Operator: selection.Operator(operator)}
		if some {
			r.Values = strings.Split(values, ",")
		}
		var got []string
		for _, p := range Having([]Requirement{r}, pods(), index) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
		if got := Having([]Requirement{r}, pods()); len(got) > 0 {
			t.Errorf("%s: without the index, got %v", text, got)
		}
	}
}
