// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var (
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
	secrets    = schema.GroupKind{Kind: "Secret"}
)

func newShard(held bool) *Shard {
	s := &Shard{
		name: "a", ring: "things", main: map[schema.GroupKind]bool{configMaps: true}, controlled: map[schema.GroupKind]bool{secrets: true},
		controllers: map[schema.GroupKind]string{}, handed: map[object]*handover{},
	}
	if held {
		s.tenure.Renew(time.Now(), time.Hour)
	}
	return s
}

func configMap(labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "1", Labels: labels}}
}

func TestCheck(t *testing.T) {
	const ours, drain = "shard.alpha.sharding.timebertt.dev/things", "drain.alpha.sharding.timebertt.dev/things"
	for _, tt := range []struct {
		name   string
		shard  *Shard
		labels map[string]string
		want   Verdict
		left   map[string]string
	}{
		{"without a ring", nil, map[string]string{"keep": ""}, VerdictOurs, map[string]string{"keep": ""}},
		{"ours", newShard(true), map[string]string{ours: "a"}, VerdictOurs, map[string]string{ours: "a"}},
		{"of another one", newShard(true), map[string]string{ours: "b"}, VerdictElsewhere, map[string]string{ours: "b"}},
		{"of another one that hands it over", newShard(true), map[string]string{ours: "b", drain: ""}, VerdictElsewhere, map[string]string{ours: "b", drain: ""}},
		{"of none", newShard(true), nil, VerdictElsewhere, nil},
		{"to be moved", newShard(true), map[string]string{ours: "a", drain: "", "keep": "x"}, VerdictDrained, map[string]string{"keep": "x"}},
		{"to be moved, without the Lease", newShard(false), map[string]string{ours: "a", drain: ""}, VerdictExpired, map[string]string{ours: "a", drain: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(configMap(tt.labels)).Build()
			var obj, after corev1.ConfigMap
			key := client.ObjectKey{Namespace: "default", Name: "x"}
			if err := c.Get(t.Context(), key, &obj); err != nil {
				t.Fatal(err)
			}
			got, err := tt.shard.Check(t.Context(), c, configMaps, &obj)
			if err != nil || got != tt.want {
				t.Errorf("verdict %v, %v; want %v", got, err, tt.want)
			}
			if err := c.Get(t.Context(), key, &after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.left, after.Labels); diff != "" {
				t.Errorf("labels: %s", diff)
			}
		})
	}
}

// An object that was handed over is left alone until the cache has noticed, and is not taken for a
// deleted one. When it comes back it is ours again.
func TestHandedOver(t *testing.T) {
	s := newShard(true)
	obj := configMap(map[string]string{s.Label(): "a", s.DrainLabel(): ""})
	c := fake.NewClientBuilder().WithGlobalResourceVersionCounter().WithObjects(obj).Build()
	key := client.ObjectKeyFromObject(obj)
	if err := c.Get(t.Context(), key, obj); err != nil {
		t.Fatal(err)
	}
	stale := obj.DeepCopy()
	expect := func(obj *corev1.ConfigMap, want Verdict) {
		t.Helper()
		if got, err := s.Check(t.Context(), c, configMaps, obj); got != want || err != nil {
			t.Errorf("verdict %v, %v; want %v", got, err, want)
		}
	}
	expect(obj, VerdictDrained)
	expect(stale, VerdictElsewhere)
	if !s.Left(configMaps, stale) || !s.Moves(configMaps, key) || !s.Forget(configMaps, key) || s.Moves(configMaps, key) {
		t.Error("the shard does not know that it has handed the object over, or does not forget it")
	}
	if s.Left(configMaps, configMap(map[string]string{s.Label(): "a"})) {
		t.Error("an object that was deleted is taken for a moved one")
	}

	var back corev1.ConfigMap
	if err := c.Get(t.Context(), key, &back); err != nil {
		t.Fatal(err)
	}
	back.Labels = map[string]string{s.Label(): "a"}
	if err := c.Update(t.Context(), &back); err != nil {
		t.Fatal(err)
	}
	expect(&back, VerdictOurs)
}

func TestClaim(t *testing.T) {
	s := newShard(true)
	for _, tt := range []struct {
		kind       schema.GroupKind
		controller string
		want       string
	}{
		{configMaps, "one", ""},
		{configMaps, "one", ""},
		{configMaps, "two", `controller "one" of this process reconciles ConfigMap, too`},
		{secrets, "one", `the ring "things" assigns no Secret, only ConfigMap: add it to spec.resources`},
	} {
		err := s.Claim(tt.kind, tt.controller)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s by %s: %v, want %q", tt.kind, tt.controller, err, tt.want)
		}
	}
	if err := s.refuseUnclaimed(context.Background()); err != nil {
		t.Error(err)
	}
	if err := newShard(true).refuseUnclaimed(context.Background()); err == nil || !strings.Contains(err.Error(), "assigns objects of ConfigMap, which no controller") {
		t.Errorf("got %v", err)
	}
}

func TestSelects(t *testing.T) {
	s := newShard(true)
	app := labels.SelectorFromSet(labels.Set{"app": "x"})
	for _, tt := range []struct {
		kind  schema.GroupKind
		given labels.Selector
		want  string
	}{
		{configMaps, nil, s.Label() + "=a"},
		{secrets, app, "app=x," + s.Label() + "=a"},
		{schema.GroupKind{Kind: "Node"}, app, "app=x"},
	} {
		if got := s.Selects(tt.kind, tt.given).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.kind, got, tt.want)
		}
	}
}

func TestWrongNames(t *testing.T) {
	for _, tt := range []struct {
		options Options
		want    string
	}{
		{Options{Ring: "Things", Name: "a", Namespace: "x"}, `"Things" as the name of the ring`},
		{Options{Ring: "things", Name: strings.Repeat("a", 64), Namespace: "x"}, "as the name of the shard"},
		{Options{Ring: "things", Name: "a"}, "set ShardOptions.Namespace"},
		{Options{Ring: "things", Name: "a", Namespace: "x"}, ""},
	} {
		err := tt.options.complete("")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.options, err, tt.want)
		}
	}
}
