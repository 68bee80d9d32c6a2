// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/step"
)

const (
	tokenAnnotation = "example.com/token"
	idAnnotation    = "example.com/bucket"
)

// bucketService makes buckets. It answers a token that it has seen with the bucket that it has made
// for it.
type bucketService map[string]string

func (s bucketService) Create(_ context.Context, token string) (id string, err error) {
	if _, ok := s[token]; !ok {
		s[token] = fmt.Sprint("bucket-", len(s)+1)
	}
	return s[token], nil
}

// An intent is saved before the act, so that a crash between the two does not make a second bucket.
func ExampleRequest_Save() {
	buckets := bucketService{}
	crash := true
	makeBucket := func(ctx context.Context, req *step.Request[*corev1.ConfigMap]) error {
		token := req.Object.Annotations[tokenAnnotation]
		if token == "" {
			token = string(req.Object.UID)
			metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, tokenAnnotation, token)
			if err := req.Save(ctx); err != nil { // the intent is written down ...
				return err
			}
		}
		id, err := buckets.Create(ctx, token) // ... before the act, which the token makes repeatable
		if err != nil {
			return err
		}
		if crash {
			panic("out of memory")
		}
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, idAnnotation, id)
		return nil
	}

	key := types.NamespacedName{Namespace: "default", Name: "photos"}
	cluster := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "7f3a"}}).Build()
	engine, err := step.New(step.Options[*corev1.ConfigMap]{Name: "buckets", Client: cluster}, step.Step[*corev1.ConfigMap]{Name: "MakeBucket", Do: makeBucket})
	if err != nil {
		panic(err)
	}
	for range 2 {
		_, err := engine.Reconcile(context.Background(), reconcile.Request{NamespacedName: key})
		fmt.Println("failed:", err != nil)
		crash = false
	}
	var obj corev1.ConfigMap
	if err := cluster.Get(context.Background(), client.ObjectKey(key), &obj); err != nil {
		panic(err)
	}
	fmt.Println(obj.Annotations[idAnnotation], "of", len(buckets))
	// Output:
	// failed: true
	// failed: false
	// bucket-1 of 1
}
