// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

// A slot is a name that an object of a sequence may have.
type slot struct {
	tracked bool // an object there has no owner reference
	cluster bool // it is cluster-scoped
	empty   func(r *run) client.Object
}

var slots = map[string]slot{
	"config-a": {empty: func(r *run) client.Object { return &corev1.ConfigMap{ObjectMeta: r.named("a")} }},
	"config-b": {empty: func(r *run) client.Object { return &corev1.ConfigMap{ObjectMeta: r.named("b")} }},
	"secret-a": {empty: func(r *run) client.Object { return &corev1.Secret{ObjectMeta: r.named("a")} }},
	"far": {tracked: true, empty: func(r *run) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.elsewhere(), Name: "a"}}
	}},
	"role": {tracked: true, cluster: true, empty: func(r *run) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-role"}}
	}},
}

var slotNames = slices.Sorted(maps.Keys(slots))

// A run is a sequence on a cluster.
type run struct {
	*cluster
	model    *model
	operator *operator
	shops    []*Shop
	uids     map[types.UID]string // the controllers of the model
}

func newRun(c *cluster) *run {
	r := &run{cluster: c, model: newModel(2), uids: map[types.UID]string{}}
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.elsewhere()}})
	for i := range r.model.shops {
		r.shops = append(r.shops, nil)
		r.open(i)
	}
	r.restart()
	return r
}

func (r *run) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

func (r *run) elsewhere() string { return r.namespace + "-elsewhere" }

// open creates a Shop.
func (r *run) open(i int) {
	r.t.Helper()
	r.shops[i] = r.shop(shopName(i))
	r.uids[r.shops[i].UID] = r.model.controller(i)
}

// restart starts the operator again.
func (r *run) restart() {
	r.operator = r.cluster.operator(func(shop *Shop, set *apply.Set) {
		for i := range r.model.shops {
			if shop.Name == shopName(i) {
				r.build(r.model.shops[i].wanted, set)
			}
		}
	}, []apply.SetOption{
		apply.Owns(&corev1.ConfigMap{}, &corev1.Secret{}), apply.Tracks(&corev1.ConfigMap{}, &corev1.Secret{}, &rbacv1.ClusterRole{}),
	}).watch()
}

func (r *run) build(wanted map[string]wish, set *apply.Set) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		w := wanted[name]
		items := []any{withData(slots[name].empty(r), w.data), apply.Wave(w.wave)}
		for _, p := range w.policies {
			items = append(items, p)
		}
		set.Add(items...)
	}
}

// withData sets the data of an object, where its kind has some.
func withData(obj client.Object, data map[string]string) client.Object {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		obj.Data = data
	case *corev1.Secret:
		obj.StringData = data
	default:
		annotations := make(map[string]string)
		for key, value := range data {
			annotations["example.com/"+key] = value
		}
		obj.SetAnnotations(annotations)
	}
	return obj
}

func dataOf(obj client.Object) map[string]string {
	data := make(map[string]string)
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Data
	case *corev1.Secret:
		for key, value := range obj.Data {
			data[key] = string(value)
		}
	default:
		for key, value := range obj.GetAnnotations() {
			if name, ok := strings.CutPrefix(key, "example.com/"); ok {
				data[name] = value
			}
		}
	}
	return data
}

// do does an operation, to the cluster and to the model.
func (r *run) do(o operation) {
	r.t.Helper()
	obj, there := slots[o.Slot].empty(r), r.model.objects[o.Slot]
	switch {
	case o.Verb == "want":
		r.model.shops[o.Shop].wanted[o.Slot] = wish{o.Data, o.Policies, o.Wave}
	case o.Verb == "forget":
		delete(r.model.shops[o.Shop].wanted, o.Slot)
	case o.Verb == "restart":
		r.restart()
	case o.Verb == "recreate":
		r.recreate(o.Shop)
	case o.Verb == "create" && there == nil:
		r.create(withData(obj, o.Data))
		r.model.objects[o.Slot] = &modelObject{data: map[string]*modelField{}}
		for key, value := range o.Data {
			r.model.objects[o.Slot].edit(key, value)
		}
	case there == nil:
	case o.Verb == "delete":
		r.delete(obj)
		delete(r.model.objects, o.Slot)
	case o.Verb == "edit":
		for _, key := range []string{"k1", "k2"} {
			there.edit(key, o.Data[key])
		}
		r.patch(obj, editOf(obj, map[string]any{"k1": o.value("k1"), "k2": o.value("k2")}))
	case o.Verb == "annotate":
		var words []string
		for _, p := range o.Policies {
			words = append(words, string(p))
		}
		there.annotation = strings.Join(words, ",")
		r.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, apply.PolicyAnnotation, there.annotation))
	}
}

func (o operation) value(key string) any {
	if value := o.Data[key]; value != "" {
		return value
	}
	return nil
}

// editOf returns the patch that sets data of an object.
func editOf(obj client.Object, data map[string]any) string {
	var patch any
	switch obj.(type) {
	case *corev1.ConfigMap:
		patch = map[string]any{"data": data}
	case *corev1.Secret:
		encoded := make(map[string]any)
		for key, value := range data {
			if encoded[key] = nil; value != nil {
				encoded[key] = []byte(value.(string))
			}
		}
		patch = map[string]any{"data": encoded}
	default:
		named := make(map[string]any)
		for key, value := range data {
			named["example.com/"+key] = value
		}
		patch = map[string]any{"metadata": map[string]any{"annotations": named}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // maps of strings
	}
	return string(text)
}

// recreate deletes a Shop, and creates it again when it is gone.
func (r *run) recreate(i int) {
	r.t.Helper()
	shop := r.shops[i]
	r.delete(shop)
	deadline := time.Now().Add(r.patience)
	for n := 0; r.get(&Shop{}, shop.Name); n++ {
		err := r.operator.reconcile(shop)
		if n > 10 && !time.Now().Before(deadline) {
			r.t.Fatalf("%s is not gone: %v", shop.Name, err)
		}
	}
	r.model.recreate(i)
	r.open(i)
}

// describe says what exists, as the model does.
func (r *run) describe() string {
	r.t.Helper()
	var lines []string
	for _, name := range slotNames {
		obj := slots[name].empty(r)
		if !r.get(obj, obj.GetName()) {
			continue
		}
		set := obj.GetLabels()[apply.SetLabel]
		for i, shop := range r.shops {
			if set == setLabel(shop) {
				set = shopName(i)
			}
		}
		controller := ""
		if c := metav1.GetControllerOf(obj); c != nil {
			controller = r.uids[c.UID]
		}
		lines = append(lines, describe(name, set, controller, obj.GetAnnotations()[apply.PolicyAnnotation], dataOf(obj)))
	}
	return strings.Join(lines, "\n")
}
