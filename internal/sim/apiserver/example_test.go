// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

func Example() {
	server := apiserver.New(apiserver.Options{})
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	if err := c.Create(ctx, cm); err != nil {
		log.Fatal(err)
	}
	stale := cm.DeepCopy()
	cm.Data = map[string]string{"a": "1"}
	fmt.Println(c.Update(ctx, cm))
	fmt.Println(apierrors.IsConflict(c.Update(ctx, stale)))
	// Output:
	// <nil>
	// true
}

// A fixed clock and a seed make the answers reproducible, UIDs and times included.
func ExampleNew() {
	epoch := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	server := apiserver.New(apiserver.Options{Seed: 7, Now: func() time.Time { return epoch }})
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: "default"}}
	if err := c.Create(context.Background(), cm); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cm.Name, cm.CreationTimestamp.UTC().Format(time.RFC3339))
	// Output: x-l2gh2 2030-01-01T00:00:00Z
}

// Requests can be sent without a client. Actor names the client in the changes that follow.
func ExampleServer_Serve() {
	server := apiserver.New(apiserver.Options{})
	request, err := apiserver.NewRequest("DELETE", "/api/v1/namespaces/default/configmaps/x", "application/json", nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Actor = "kubectl"
	fmt.Println(server.Serve(request).Code)
	// Output: 404
}

// A watch does not block: Next returns the events that are pending.
func ExampleServer_Watch() {
	server := apiserver.New(apiserver.Options{})
	request, err := apiserver.NewRequest("GET", "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Ddefault", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	watch, refused := server.Watch(request)
	if refused != nil {
		log.Fatalf("%s", refused.Body)
	}
	defer watch.Stop()
	for {
		event, ok := watch.Next()
		if !ok {
			break
		}
		fmt.Println(event.Type, event.Name)
	}
	// Output: ADDED default
}

// OnChange observes all writes, which says more than the objects that remain.
func ExampleServer_OnChange() {
	server := apiserver.New(apiserver.Options{})
	server.OnChange(func(c apiserver.Change) {
		fmt.Println(c.Type, c.Resource.Resource, c.Name)
	})
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	if err := c.Create(context.Background(), cm); err != nil {
		log.Fatal(err)
	}
	if err := c.Delete(context.Background(), cm); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ADDED configmaps x
	// DELETED configmaps x
}
