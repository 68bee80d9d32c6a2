// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/step"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func ownedBy(obj client.Object, owner *Project, apiVersion string) client.Object {
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: "Project", Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	return obj
}

func TestRelationsAreChecked(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		one := w.noting("one")
		one.Related = []step.Watch{
			{}, step.WatchLabeled(&corev1.Secret{}, ""), step.WatchNamed(&corev1.Secret{}, func(*Project) []client.ObjectKey { return nil }),
		}
		_, err := w.registry.Register(one)
		for _, want := range []string{"relation 1: no watched object", "relation 2: it relates nothing", "relation 3: the function of NamedBy is for *testkind.Object["} {
			if err == nil || !contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	})
}
