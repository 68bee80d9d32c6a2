// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/testdata/beyond"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/values"
)

// A valueCase is what a getter returns whose selectors refer to fields of many types.
type valueCase struct {
	change  func(*shopv1.Spec) // to the spec of the target
	get     func(c *cluster, s *values.ValuesState) ([]string, error)
	want    []string // NAMESPACE and PLACE stand for the test's namespaces
	wantErr string
}

var valueCases = map[string]valueCase{
	"several references": {
		want: []string{"shop-meta-NAMESPACE"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetMixed) },
	},
	"pointers": {
		want: []string{"PLACE/far"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
	},
	"a nil pointer at the beginning": {
		change: func(s *shopv1.Spec) { s.Ref = nil }, wantErr: "target.Spec.Ref is nil",
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
	},
	"a nil pointer on the way": {
		change: func(s *shopv1.Spec) { s.Ref.Next = nil }, wantErr: "target.Spec.Ref.Next is nil",
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
	},
	"a nil pointer at the end": {
		change: func(s *shopv1.Spec) { s.Ref.Namespace = nil }, wantErr: "target.Spec.Ref.Namespace is nil",
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
	},
	"an empty name after pointers": {
		change: func(s *shopv1.Spec) { s.Ref.Next.Name = "" }, wantErr: "name=${target.Spec.Ref.Next.Name} is empty",
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
	},
	"a negative number is not a label": {
		wantErr: `labels/level="-2"`,
		get:     func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetNumbers) },
	},
	"numbers": {
		change: func(s *shopv1.Spec) { s.Level = 2 }, want: []string{"numbers"},
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetNumbers) },
	},
	"truths": {
		want: []string{"truths"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetTruths) },
	},
	"a named string and a Stringer": {
		want: []string{"texts"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetTexts) },
	},
	"joined without text between": {
		want: []string{"a-gold"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetJoined) },
	},
	"all of them empty": {
		change: func(s *shopv1.Spec) { s.SecretName, s.Tier = "", "" }, wantErr: "name=${target.Spec.SecretName}${target.Spec.Tier} is empty",
		get: func(c *cluster, s *values.ValuesState) ([]string, error) { return one(c, s.GetJoined) },
	},
	"fields after pointers, nil in some objects": {
		want: []string{"shop"},
		get:  func(c *cluster, s *values.ValuesState) ([]string, error) { return list(c, s.GetByPointerField) },
	},
}

func TestValues(t *testing.T) {
	c := newCluster(t)
	place := c.newNamespace("place-")
	target := shopWithValues(c, place)
	c.create(target, &shopv1.Shop{ObjectMeta: c.named("no-pointers"), Spec: shopv1.Spec{Tier: "gold"}},
		configMap(c.named("shop-meta-"+c.namespace)), configMap(metaIn(place, "far")), configMap(c.named("a-gold")),
		configMap(c.named("numbers", "size=65535", "replicas=r3", "level=2")),
		configMap(c.named("truths", "open=false", "flag=true")),
		configMap(c.named("texts", "tier=gold", "hours=8-20")))
	reader := c.cache(values.IndexValues)

	for name, test := range valueCases {
		t.Run(name, func(t *testing.T) {
			changed := target.DeepCopy()
			if test.change != nil {
				test.change(&changed.Spec)
			}
			got, err := test.get(c, values.NewValuesState(reader, changed))
			checkError(t, err, test.wantErr)
			want := []string{}
			for _, name := range test.want {
				want = append(want, strings.NewReplacer("NAMESPACE", c.namespace, "PLACE", place).Replace(name))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// shopWithValues returns a Shop with a value in every field.
func shopWithValues(c *cluster, place string) *shopv1.Shop {
	replicas, flag, tier := int32(3), shopv1.Flag(true), shopv1.Tier("gold")
	return &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{
		SecretName: "a-", Tier: "gold", TierRef: &tier, Level: -2, Size: 65535, Replicas: &replicas, Open: false, Flag: &flag,
		Hours: shopv1.Hours{From: 8, To: 20}, Ref: &shopv1.Ref{Name: "shop", Namespace: &place, Next: &shopv1.Next{Name: "far"}},
	}}
}

// TestBeyondTheChecker has states that the checker rejects. The generated code does not rely on the
// checker.
func TestBeyondTheChecker(t *testing.T) {
	c := newCluster(t)
	place := c.newNamespace("place-")
	c.create(configMap(metaIn(place, "a")), configMap(c.named("b")))
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{Place: place}}
	s := beyond.NewBeyondState(c.cache(beyond.IndexBeyond), target)
	got, err := list(c, s.GetByNamespaceField)
	if want := []string{place + "/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("by the field of the namespace: %v, %v, want %v", got, err, want)
	}
	_, err = one(c, s.GetQuotes)
	checkError(t, err, `labels/app="say \"hi\"" is not a value that a label can have`)
}
