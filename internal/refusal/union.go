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

// Settle returns a copy of what is wanted of an object, with a null for each member of a union that
// the live object has instead of the one that is wanted. It returns nil if there is none. To apply a
// null removes the field, whoever has set it, and makes the remover its manager: apply what is wanted
// without the nulls afterwards.
//
// The type of the kind is that of the scheme, or of client-go. Settle returns nil if there is none.
func Settle(scheme *runtime.Scheme, kind schema.GroupVersionKind, wanted, live map[string]any) map[string]any {
	obj, err := scheme.New(kind)
	if _, untyped := obj.(runtime.Unstructured); err != nil || untyped {
		if obj, err = clientscheme.Scheme.New(kind); err != nil {
			return nil
		}
	}
	settled := runtime.DeepCopyJSON(wanted)
	if !settle(reflect.TypeOf(obj), settled, live) {
		return nil
	}
	return settled
}

// settle adds the nulls to a value of a type, and reports whether there are any.
func settle(t reflect.Type, wanted, live any) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		w, isObject := wanted.(map[string]any)
		l, liveToo := live.(map[string]any)
		return isObject && liveToo && settleFields(t, w, l)
	case reflect.Map: // of names to structs
		w, isObject := wanted.(map[string]any)
		l, liveToo := live.(map[string]any)
		found := false
		for name := range w {
			found = isObject && liveToo && settle(t.Elem(), w[name], l[name]) || found
		}
		return found
	}
	return false
}

func settleFields(t reflect.Type, wanted, live map[string]any) bool {
	found := false
	if u, ok := unions[t]; ok {
		found = u.settle(t, wanted, live)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch below := wanted[name]; {
		case f.Anonymous && name == "" || options == "inline":
			found = settle(f.Type, wanted, live) || found
		case below == nil || live[name] == nil:
		case f.Type.Kind() == reflect.Slice:
			found = settleItems(f.Type.Elem(), f.Tag.Get("patchMergeKey"), below, live[name]) || found
		default:
			found = settle(f.Type, below, live[name]) || found
		}
	}
	return found
}

// settleItems compares the items of a list by their key. Two lists without one are not merged.
func settleItems(t reflect.Type, key string, wanted, live any) bool {
	if key == "" {
		return false
	}
	found := false
	items, _ := live.([]any)
	list, _ := wanted.([]any)
	for _, item := range list {
		w, _ := item.(map[string]any)
		i := slices.IndexFunc(items, func(other any) bool {
			l, ok := other.(map[string]any)
			return ok && w != nil && l[key] == w[key]
		})
		if i >= 0 {
			found = settle(t, item, items[i]) || found
		}
	}
	return found
}

func (u union) settle(t reflect.Type, wanted, live map[string]any) bool {
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
			return false // it does not choose, but leaves the union to others
		}
		chosen = members[i]
	}
	found := false
	for _, member := range members {
		_, meant := wanted[member]
		if chosen == "" || meant || live[member] == nil || strings.EqualFold(member, chosen) {
			continue
		}
		wanted[member], found = nil, true
	}
	return found
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
