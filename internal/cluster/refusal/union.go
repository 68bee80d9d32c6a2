// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A union is what an API calls "exactly one of". The API server has no general notion of it: to
// apply another member leaves one that the object has from a default, or from another client, and
// the validation refuses the two together.
type union struct {
	// members are the fields of which an object has one; nil for all that are pointers.
	members []string
	// discriminator is the field that names the member, "" if there is none. Its value is the name
	// of the member, but for case and what is in values.
	discriminator string
	values        map[string]string // "Localhost": "localhostProfile"
}

// unions has them by their Go types, so that they are found wherever a kind has a Pod template, also
// a custom one. A union in a list without keys needs no row: such a list is replaced as a whole.
var unions = map[reflect.Type]union{
	reflect.TypeFor[appsv1.DeploymentStrategy]():        {members: []string{"rollingUpdate"}, discriminator: "type"},
	reflect.TypeFor[appsv1.StatefulSetUpdateStrategy](): {members: []string{"rollingUpdate"}, discriminator: "type"},
	reflect.TypeFor[appsv1.DaemonSetUpdateStrategy]():   {members: []string{"rollingUpdate"}, discriminator: "type"},

	reflect.TypeFor[corev1.VolumeSource]():           {},
	reflect.TypeFor[corev1.PersistentVolumeSource](): {},
	reflect.TypeFor[corev1.ProbeHandler]():           {},
	reflect.TypeFor[corev1.LifecycleHandler]():       {},
	reflect.TypeFor[corev1.EnvVar]():                 {members: []string{"value", "valueFrom"}},
	reflect.TypeFor[corev1.EnvVarSource]():           {},
	reflect.TypeFor[corev1.SeccompProfile]():         {members: []string{"localhostProfile"}, discriminator: "type", values: localhost},
	reflect.TypeFor[corev1.AppArmorProfile]():        {members: []string{"localhostProfile"}, discriminator: "type", values: localhost},

	reflect.TypeFor[networkingv1.IngressBackend]():     {},
	reflect.TypeFor[networkingv1.ServiceBackendPort](): {members: []string{"name", "number"}},

	reflect.TypeFor[policyv1.PodDisruptionBudgetSpec](): {members: []string{"minAvailable", "maxUnavailable"}},
	reflect.TypeFor[admissionv1.WebhookClientConfig]():  {members: []string{"url", "service"}},

	reflect.TypeFor[apiextensionsv1.CustomResourceConversion]():     {members: []string{"webhook"}, discriminator: "strategy"},
	reflect.TypeFor[flowcontrolv1.LimitResponse]():                  {members: []string{"queuing"}, discriminator: "type", values: map[string]string{"Queue": "queuing"}},
	reflect.TypeFor[flowcontrolv1.PriorityLevelConfigurationSpec](): {discriminator: "type"},
}

var localhost = map[string]string{"Localhost": "localhostProfile"}

// Others returns the members of unions that a live object has instead of those that are wanted. The
// type of the kind is that of the scheme, or of client-go. There are none if it has no type.
func Others(scheme *runtime.Scheme, kind schema.GroupVersionKind, wanted, live map[string]any) []fieldpath.Path {
	obj, err := scheme.New(kind)
	if _, untyped := obj.(runtime.Unstructured); err != nil || untyped {
		if obj, err = clientscheme.Scheme.New(kind); err != nil {
			return nil
		}
	}
	return othersOf(reflect.TypeOf(obj), nil, wanted, live)
}

// othersOf looks into a value of a type that has a path.
func othersOf(t reflect.Type, at fieldpath.Path, wanted, live any) []fieldpath.Path {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w, isObject := wanted.(map[string]any)
	l, liveToo := live.(map[string]any)
	if t.Kind() != reflect.Struct || !isObject || !liveToo {
		return nil
	}
	var found []fieldpath.Path
	if u, ok := unions[t]; ok {
		for _, member := range u.others(t, w, l) {
			found = append(found, with(at, fieldpath.PathElement{FieldName: &member}))
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		here := with(at, fieldpath.PathElement{FieldName: &name})
		switch {
		case f.Anonymous && name == "" || options == "inline":
			found = append(found, othersOf(f.Type, at, wanted, live)...)
		case w[name] == nil || l[name] == nil:
		case f.Type.Kind() == reflect.Slice:
			found = append(found, othersInItems(f.Type.Elem(), here, f.Tag.Get("patchMergeKey"), w[name], l[name])...)
		default:
			found = append(found, othersOf(f.Type, here, w[name], l[name])...)
		}
	}
	return found
}

// othersInItems compares the items of a list by their key. A list without one is replaced as a whole.
func othersInItems(t reflect.Type, at fieldpath.Path, key string, wanted, live any) []fieldpath.Path {
	if key == "" {
		return nil
	}
	var found []fieldpath.Path
	items, _ := live.([]any)
	list, _ := wanted.([]any)
	for _, item := range list {
		w, _ := item.(map[string]any)
		name, ok := w[key].(string)
		i := slices.IndexFunc(items, func(other any) bool {
			l, _ := other.(map[string]any)
			return ok && l[key] == name
		})
		if i >= 0 {
			found = append(found, othersOf(t, with(at, fieldpath.PathElement{Key: fieldpath.KeyByFields(key, name)}), item, items[i])...)
		}
	}
	return found
}

func with(at fieldpath.Path, element fieldpath.PathElement) fieldpath.Path {
	return append(at.Copy(), element)
}

// others returns the members that a live struct has instead of the one that is wanted.
func (u union) others(t reflect.Type, wanted, live map[string]any) []string {
	members := u.members
	if members == nil {
		members = pointers(t)
	}
	chosen, _ := wanted[u.discriminator].(string)
	if member, ok := u.values[chosen]; ok {
		chosen = member
	}
	if u.discriminator == "" {
		i := slices.IndexFunc(members, func(member string) bool { return wanted[member] != nil })
		if i < 0 {
			return nil // it does not choose, but leaves the union to others
		}
		chosen = members[i]
	}
	return slices.DeleteFunc(slices.Clone(members), func(member string) bool {
		return chosen == "" || wanted[member] != nil || live[member] == nil || strings.EqualFold(member, chosen)
	})
}

// pointers returns the fields of a type that are pointers to structs.
func pointers(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, name)
		}
	}
	return names
}
