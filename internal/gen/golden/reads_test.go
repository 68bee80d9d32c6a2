// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
)

// counting counts what is read.
type counting struct {
	client.Reader
	reads int
}

func (r *counting) Get(ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption) error {
	r.reads++
	return r.Reader.Get(ctx, key, obj, opts...)
}

func (r *counting) List(ctx context.Context, objects client.ObjectList, opts ...client.ListOption) error {
	r.reads++
	return r.Reader.List(ctx, objects, opts...)
}

func TestStatesAreReadOnceAndCopied(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "password"}}
	c.create(target, secret(c.named("password", "key=value")), configMap(c.named("a", "shop=shop", "tier=")))
	reader := &counting{Reader: c.live}
	s := selectors.NewSelectorsState(reader, target)
	for range 3 {
		single, err := s.GetByName(t.Context())
		if err != nil || single.Labels["key"] != "value" {
			t.Fatalf("GetByName = %v, %v", single, err)
		}
		single.Labels["key"] = "changed by the caller"
		many, err := s.GetLabelled(t.Context())
		if err != nil || len(many) != 1 || many[0].Labels["shop"] != "shop" {
			t.Fatalf("GetLabelled = %v, %v", many, err)
		}
		many[0].Labels["shop"] = "changed by the caller"
	}
	if reader.reads != 2 {
		t.Errorf("%d reads of two states, want 2", reader.reads)
	}
}
