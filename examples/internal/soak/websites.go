// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
)

const (
	checkParts      = "parts as the Websites want them"
	checkNoWebsites = "parts without a Website"
)

// A website is the model of one Website.
type website struct {
	text     string
	public   bool
	priority int32 // 0 for none
}

// websites are the Websites of examples/04_website. Their DNS records are not checked: they are in
// the memory of the operator.
type websites struct {
	*population
	model []website
}

func newWebsites(c client.WithWatch, o *options) subject {
	w := &websites{population: newPopulation(c, o, "Website", &v1.WebsiteList{}), model: make([]website, o.objects)}
	w.details = w
	for i := range w.model {
		w.renew(i)
	}
	return w
}

func (*websites) checks() []string { return []string{checkParts, checkNoWebsites} }

func (w *websites) renew(i int) {
	w.model[i] = website{text: w.text(), public: w.random.IntN(2) == 0, priority: w.random.Int32N(3)}
}

func (w *websites) text() string { return fmt.Sprint("text ", w.random.IntN(1000)) }

func (w *websites) object(i int) client.Object {
	m := w.model[i]
	obj := &v1.Website{ObjectMeta: name("soak", i), Spec: v1.WebsiteSpec{
		Host: fmt.Sprintf("soak-%d.example.com", i), CredentialsSecret: name("credentials", i).Name,
		Content: map[string]string{"index.html": m.text}, Public: m.public, Replicas: new(int32(1)),
	}}
	if m.priority > 0 {
		obj.Spec.Priority = new(m.priority)
	}
	return obj
}

func (w *websites) prepare(ctx context.Context, i int) error {
	return create(ctx, w.user, &corev1.Secret{ObjectMeta: name("credentials", i), StringData: map[string]string{"PASSWORD": "x"}})
}

func (w *websites) edit(i int, exists bool, k int) (edit, bool) {
	m := &w.model[i]
	switch {
	case !exists || k >= 72:
		return edit{}, false
	case k < 20:
		m.text = w.text()
		return edit{what: "content is " + m.text, apply: patching(w.object(i), `{"spec":{"content":{"index.html":%q}}}`, m.text)}, true
	case k < 32:
		m.public = !m.public
		return edit{what: fmt.Sprintf("public is %v", m.public), apply: patching(w.object(i), `{"spec":{"public":%v}}`, m.public)}, true
	case k < 44:
		m.priority = w.random.Int32N(3)
		priority := "null"
		if m.priority > 0 {
			priority = fmt.Sprint(m.priority)
		}
		return edit{what: "priority is " + priority, apply: patching(w.object(i), `{"spec":{"priority":%s}}`, priority)}, true
	}
	return w.editPart(i, k), true
}

// editPart deletes or overwrites a part. There may be none at the moment.
func (*websites) editPart(i, k int) edit {
	parts := []client.Object{&corev1.ConfigMap{ObjectMeta: name("soak", i)}, &corev1.Service{ObjectMeta: name("soak", i)}, &appsv1.Deployment{ObjectMeta: name("soak", i)}}
	part, what, do := parts[k%3], "deleted", deleting(parts[k%3])
	if k < 54 {
		part, what, do = parts[0], "overwritten", patching(parts[0], `{"data":{"index.html":"defaced"}}`)
	}
	return edit{what: fmt.Sprintf("%T %s", part, what), apply: func(ctx context.Context, c client.Client) error { return client.IgnoreNotFound(do(ctx, c)) }}
}

func (*websites) want(int) readiness { return readiness{ready: true} }

func (*websites) problem(_ int, obj client.Object) string {
	got := obj.(*v1.Website) //nolint:errcheck // nothing else is listed
	if got.Status.ObservedGeneration != got.Generation {
		return fmt.Sprintf("the status is about generation %d, want %d", got.Status.ObservedGeneration, got.Generation)
	}
	return ""
}

// parts returns the names of what a Website wants, by kind.
func (m website) parts(i int) []string {
	key := name("soak", i).Name
	all := []string{"ConfigMap " + key, "Service " + key, "Deployment " + key}
	if m.public {
		all = append(all, "Ingress "+key)
	}
	if m.priority > 0 {
		all = append(all, fmt.Sprintf("PriorityClass %s.%s-%d", namespace, key, m.priority))
	}
	return all
}

// check compares the parts with the Websites. What no Website wants is an orphan.
func (w *websites) check(ctx context.Context, d *population, found *checks) error {
	there, err := w.listParts(ctx)
	if err != nil {
		return err
	}
	for i, m := range w.model {
		if !d.lanes[i].exists {
			continue
		}
		for _, part := range m.parts(i) {
			obj := there[part]
			if delete(there, part); obj == nil {
				d.found(found, checkParts, i, "%s does not exist", part)
			} else if content, ok := obj.(*corev1.ConfigMap); ok && !maps.Equal(content.Data, map[string]string{"index.html": m.text}) {
				d.found(found, checkParts, i, "%s has %q, want %q", part, content.Data, m.text)
			}
		}
	}
	for _, part := range slices.Sorted(maps.Keys(there)) {
		found.add(checkNoWebsites, leftover(there[part]))
	}
	return nil
}

// listParts returns what may be a part, by kind and name.
func (w *websites) listParts(ctx context.Context) (map[string]client.Object, error) {
	there := map[string]client.Object{}
	for kind, list := range map[string]client.ObjectList{
		"ConfigMap": &corev1.ConfigMapList{}, "Service": &corev1.ServiceList{}, "Deployment": &appsv1.DeploymentList{},
		"Ingress": &networkingv1.IngressList{}, "PriorityClass": &schedulingv1.PriorityClassList{},
	} {
		if err := w.user.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the parts: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object) //nolint:errcheck // what has a list is an object
			ours := obj.GetNamespace() == namespace && obj.GetName() != "kube-root-ca.crt"
			if ours || kind == "PriorityClass" && strings.HasPrefix(obj.GetName(), namespace+".") {
				there[kind+" "+obj.GetName()] = obj
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return there, nil
}
