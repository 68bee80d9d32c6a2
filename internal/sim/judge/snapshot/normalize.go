// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// normalize takes out of an object what the server and time have put there.
func normalize(o *Object, isVersion func(string) bool) {
	u := unstructured.Unstructured{Object: o.Content}
	generation := u.GetGeneration()
	metadata, _ := o.Content["metadata"].(map[string]any)
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink"} {
		delete(metadata, field)
	}
	metadata["name"] = o.Name
	if o.Resource.GroupResource().String() == "controllerrevisions.apps" {
		delete(o.Content, "revision") // counts how often a StatefulSet or DaemonSet was rolled out
	}
	for _, field := range []string{"annotations", "labels"} {
		m, _ := metadata[field].(map[string]any)
		maps.DeleteFunc(m, func(key string, _ any) bool {
			return strings.HasPrefix(key, cluster.Marks) || key == corev1.LastAppliedConfigAnnotation // kubectl's memory
		})
		if len(m) == 0 {
			delete(metadata, field)
		}
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		slices.SortFunc(finalizers, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	if allocates := allocated[o.Resource.GroupResource().String()]; len(allocates) > 0 {
		for _, path := range allocates {
			replace(o.Content, strings.Split(path, "."))
		}
	}
	versions(o.Content, "", generation, isVersion)
}

// allocated has, by kind, the fields whose values the server or a controller of the cluster
// chooses, so that they are others when the object is created again. Those of lists are those of
// each element. Only which of them have a value is compared.
var allocated = map[string][]string{
	"services": {
		"spec.clusterIP", "spec.clusterIPs", "spec.ports.nodePort", "spec.healthCheckNodePort",
		"status.loadBalancer.ingress.ip", "status.loadBalancer.ingress.hostname",
	},
	"pods": {
		"spec.nodeName", "status.podIP", "status.podIPs.ip", "status.hostIP", "status.hostIPs.ip", "status.containerStatuses.containerID",
		"status.initContainerStatuses.containerID",
	},
	"persistentvolumeclaims":          {"spec.volumeName"},
	"endpoints":                       {"subsets.addresses.ip", "subsets.addresses.nodeName", "subsets.notReadyAddresses.ip", "subsets.notReadyAddresses.nodeName"},
	"endpointslices.discovery.k8s.io": {"endpoints.addresses", "endpoints.nodeName"},
	"ingresses.networking.k8s.io":     {"status.loadBalancer.ingress.ip", "status.loadBalancer.ingress.hostname"},
	// How often templates have changed, over the life of the object.
	"deployments.apps": {`metadata.annotations.deployment~kubernetes~io/revision`},
	"replicasets.apps": {`metadata.annotations.deployment~kubernetes~io/revision`, `metadata.annotations.deployment~kubernetes~io/revision-history`},
	"daemonsets.apps":  {`metadata.annotations.deprecated~daemonset~template~generation`},
}

const allocatedText = "<allocated>"

// replace replaces the values at a path, if there are any. In the path, "~" stands for the dots
// within a name.
func replace(value any, path []string) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			replace(element, path)
		}
	case map[string]any:
		key := strings.ReplaceAll(path[0], "~", ".")
		child, ok := v[key]
		switch {
		case !ok:
		case len(path) > 1:
			replace(child, path[1:])
		default:
			v[key] = replaced(child)
		}
	}
}

// replaced returns what stands for an allocated value. Nothing and None, which ask for none, stay.
func replaced(value any) any {
	list, ok := value.([]any)
	switch {
	case ok:
		out := make([]any, len(list))
		for i, element := range list {
			out[i] = replaced(element)
		}
		return out
	case value == "", value == "None", value == nil, value == int64(0):
		return value
	}
	return allocatedText
}

// sortTexts orders the lists of texts in a status by the texts that are compared. Operators make such lists
// of sets and maps, in another order in each process.
func sortTexts(value any, compared func(text string) string) {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			sortTexts(child, compared)
		}
	case []any:
		slices.SortStableFunc(v, func(a, b any) int {
			x, isText := a.(string)
			y, areTexts := b.(string)
			if !isText || !areTexts {
				return 0
			}
			return cmp.Compare(compared(x), compared(y))
		})
		for _, child := range v {
			sortTexts(child, compared)
		}
	}
}

// versions replaces what an object records of resource versions, and makes its observed generations
// say only whether they are the present one: how often an object was changed differs between runs.
// Of is the name of the field that has the value.
func versions(value any, of string, generation int64, isVersion func(string) bool) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			versions(element, of, generation, isVersion)
		}
	case map[string]any:
		for key, child := range v {
			switch plain := plainKey(key); {
			case plain == "observedgeneration":
				switch observed := child.(type) {
				case int64:
					v[key] = relative(observed, generation)
				case float64: // of an object that others have normalized
					v[key] = relative(int64(observed), generation)
				}
			case isVersionOf(plain, child, isVersion), isVersionOf(of, child, isVersion): // of one thing, or of several by name
				v[key] = "<version>"
			default:
				versions(child, plain, generation, isVersion)
			}
		}
	}
}

// copiedVersion matches the names of fields, labels and annotations that may have the resource
// version of what something was copied from. It may be the version of a program as well.
var copiedVersion = regexp.MustCompile(`(resource|source|from|observed)version$`)

// isVersionOf reports whether a value is a resource version, by the name of its field.
func isVersionOf(name string, value any, isVersion func(string) bool) bool {
	text, ok := value.(string)
	switch {
	case !ok || text == "":
		return false
	case isVersion == nil:
		return strings.HasSuffix(name, "resourceversion")
	}
	return copiedVersion.MatchString(name) && isVersion(text)
}

// separators are what separates the words of a key.
var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// plainKey returns a key in small letters, without what separates its words.
func plainKey(key string) string { return separators.Replace(strings.ToLower(key)) }

// relative says whether an observed generation is the present one.
func relative(observed, generation int64) string {
	if observed == generation {
		return "current"
	}
	return "stale"
}
