// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// Store stands for the client library of an object store.
type Store interface {
	Get(ctx context.Context, name string) (class, owner string, ok bool, err error)
	Put(ctx context.Context, name, class, owner string) error
	Remove(ctx context.Context, name string) error
	Close() error
}

// Bucket stands for the kind of an operator.
type Bucket = corev1.ConfigMap

type buckets struct{ stores *external.Pool[Store] }

func (b buckets) Connect(ctx context.Context, req *step.Request[*Bucket]) (external.Client[*Bucket], error) {
	secret := &corev1.Secret{}
	if err := req.Client.Get(ctx, client.ObjectKey{Namespace: req.Object.Namespace, Name: "store"}, secret); err != nil {
		return nil, failure.Mark(err, failure.WithRemedy("create the Secret store with the credentials"))
	}
	lease, err := b.stores.Get(ctx, string(secret.Data["address"]), secret.ResourceVersion, func(ctx context.Context) (Store, error) {
		return dial(ctx, secret.Data)
	})
	return bucketClient{lease}, err
}

type bucketClient struct{ lease external.Lease[Store] }

func (c bucketClient) Close() error { return c.lease.Release() }

func (c bucketClient) Observe(ctx context.Context, obj *Bucket, id string) (external.Observation, error) {
	class, owner, ok, err := c.lease.Conn.Get(ctx, id)
	switch {
	case err != nil:
		return external.Observation{}, err
	case !ok:
		return external.Observation{State: external.Absent}, nil
	case class != obj.Data["class"]:
		return external.Observation{State: external.Drifted, Drift: []string{"data.class"}, Owner: owner}, nil
	}
	return external.Observation{State: external.UpToDate, Owner: owner}, nil
}

func (c bucketClient) Create(ctx context.Context, obj *Bucket, creation external.Creation) (string, error) {
	return creation.Name, c.lease.Conn.Put(ctx, creation.Name, obj.Data["class"], external.OwnerOf(obj))
}

func (c bucketClient) Update(ctx context.Context, obj *Bucket, id string) error {
	return c.lease.Conn.Put(ctx, id, obj.Data["class"], external.OwnerOf(obj))
}

func (c bucketClient) Delete(ctx context.Context, _ *Bucket, id string) error {
	return c.lease.Conn.Remove(ctx, id)
}

// An operator of buckets in an object store whose clients choose the names.
func Example() {
	rules := external.NameRules{Prefix: "example-", MaxLength: 63}
	bucket := external.New("Bucket", buckets{&external.Pool[Store]{Close: Store.Close}}, external.Options[*Bucket]{
		Identity: external.ByName(func(obj *Bucket) (string, error) { return rules.NameOf(obj) }),
		Poll:     5 * time.Minute,
		Reads:    []client.Object{&corev1.Secret{}}, // a change of the credentials reconciles the object
		Calls:    external.Calls[*Bucket]{PerSecond: 10, Burst: 20},
	})
	fmt.Println(bucket.Name)
	// Output: Bucket
}

func dial(context.Context, map[string][]byte) (Store, error) { return nil, fmt.Errorf("no store") }
