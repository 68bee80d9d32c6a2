// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
)

func newTestedWebsites(user client.WithWatch) subject {
	w := newWebsites(user, &options{objects: 3}).(*websites)
	w.lanes = []lane{{exists: true, label: "5"}, {exists: true}, {}}
	w.model = []website{{text: "a", public: true, priority: 2}, {text: "b"}, {text: "c"}}
	return w
}

func (w *websites) perfect() (objects []client.Object) {
	for i, m := range w.model {
		if !w.lanes[i].exists {
			continue
		}
		obj := w.object(i).(*v1.Website)
		obj.Status.ObservedGeneration = 3
		objects = append(objects, w.done(i, obj), &corev1.ConfigMap{ObjectMeta: name("soak", i), Data: map[string]string{"index.html": m.text}},
			&corev1.Service{ObjectMeta: name("soak", i)}, &appsv1.Deployment{ObjectMeta: name("soak", i)})
	}
	return append(objects, &networkingv1.Ingress{ObjectMeta: name("soak", 0)}, priorityClass("soak.soak-00-2"),
		priorityClass("system-node-critical"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}})
}

func priorityClass(name string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

var plantsInWebsites = plants{
	"a part is missing":        {func(w *world) { w.remove("soak.soak-00-2") }, checkParts},
	"a part is defaced":        {func(w *world) { of[*corev1.ConfigMap](w, "soak-01").Data = nil }, checkParts},
	"an Ingress is left":       {func(w *world) { w.add(&networkingv1.Ingress{ObjectMeta: name("soak", 1)}) }, checkNoWebsites},
	"a PriorityClass is left":  {func(w *world) { w.add(priorityClass("soak.soak-00-1")) }, checkNoWebsites},
	"parts of none are left":   {func(w *world) { w.add(&appsv1.Deployment{ObjectMeta: name("soak", 2)}) }, checkNoWebsites},
	"an old status":            {func(w *world) { of[*v1.Website](w, "soak-00").Status.ObservedGeneration = 2 }, checkParts},
	"parts elsewhere are fine": {func(w *world) { w.add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "y"}}) }, ""},
}
