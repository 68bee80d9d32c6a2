// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// types has the Go types of all built-in kinds.
var types = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("registering the built-in types: %v", err))
		}
	}
	return scheme
})

// New returns an empty object of a kind, typed. It panics when the kind is not built in.
func New(gvk schema.GroupVersionKind) runtime.Object {
	obj, err := types().New(gvk)
	if err != nil {
		panic(err)
	}
	return obj
}

// Normalize decodes an object through its Go type, as the real server does, and returns it as it is
// stored: without fields that the type does not have, and with those that are always encoded. It
// does not check the object's kind. unknown describes unknown and duplicate fields.
func Normalize(gvk schema.GroupVersionKind, data []byte) (content map[string]any, unknown []string, err error) {
	obj := New(gvk)
	strict, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, nil, fmt.Errorf("%s in version %q cannot be handled as a %s: %w", gvk.Kind, gvk.Version, gvk.Kind, err)
	}
	for _, s := range strict {
		unknown = append(unknown, s.Error())
	}
	content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("converting %s: %w", gvk.Kind, err)
	}
	if m, ok := content["metadata"].(map[string]any); ok && m["creationTimestamp"] == nil {
		delete(m, "creationTimestamp")
	}
	return content, unknown, nil
}

// WithoutEmptyLists replaces empty lists by null. Upstream, storing an object as protobuf has that
// effect.
func WithoutEmptyLists(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case map[string]any:
			WithoutEmptyLists(v)
		case []any:
			if len(v) == 0 {
				m[k] = nil
				continue
			}
			for _, e := range v {
				if child, ok := e.(map[string]any); ok {
					WithoutEmptyLists(child)
				}
			}
		}
	}
}

// Empty returns an empty object of a kind, with the fields that its type always encodes.
func Empty(gvk schema.GroupVersionKind) map[string]any {
	if known, ok := emptyObjects.Load(gvk); ok {
		return runtime.DeepCopyJSON(known.(map[string]any))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(New(gvk))
	if err != nil {
		panic(err) // all built-in types can be converted
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	emptyObjects.Store(gvk, content)
	return runtime.DeepCopyJSON(content)
}

var emptyObjects sync.Map // schema.GroupVersionKind to map[string]any

// withGeneration lists the kinds whose objects have metadata.generation. Kinds with false are
// listed because one would expect them here.
var withGeneration = map[string]bool{
	"apps/Deployment": true, "apps/StatefulSet": true, "apps/DaemonSet": true, "apps/ReplicaSet": true, "batch/Job": true, "batch/CronJob": true,
	"/ReplicationController": true, "/Pod": true, "networking.k8s.io/Ingress": true, "networking.k8s.io/NetworkPolicy": true,
	"policy/PodDisruptionBudget": true, "autoscaling/HorizontalPodAutoscaler": true, "apiextensions.k8s.io/CustomResourceDefinition": true,
	"flowcontrol.apiserver.k8s.io/FlowSchema": true, "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration": true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration": true, "admissionregistration.k8s.io/ValidatingWebhookConfiguration": true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy": true, "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy": true, "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": true,
	"discovery.k8s.io/EndpointSlice": true, "node.k8s.io/RuntimeClass": false, "networking.k8s.io/IngressClass": true,
	"scheduling.k8s.io/PriorityClass": true,
}

func id(gvk schema.GroupVersionKind) string { return gvk.Group + "/" + gvk.Kind }

// hasStatus reports whether the status of a kind can be written only through the subresource.
func hasStatus(gvk schema.GroupVersionKind) bool {
	for _, r := range Resources() {
		if r.GVK() == gvk {
			return r.Status
		}
	}
	return false
}

// PrepareCreate does what the kind's strategy does upstream with a new object, after the defaults.
func PrepareCreate(gvk schema.GroupVersionKind, obj map[string]any, allocate func(kind string) string) {
	if hasStatus(gvk) && id(gvk) != "/Node" && id(gvk) != "/Namespace" {
		clearStatus(gvk, obj)
	}
	if withGeneration[id(gvk)] {
		metadataOf(obj)["generation"] = int64(1)
	}
	if prepare, ok := preparations[id(gvk)]; ok && prepare.create != nil {
		prepare.create(obj, allocate)
	}
}

// clearStatus sets the status to an empty one of its Go type.
func clearStatus(gvk schema.GroupVersionKind, obj map[string]any) {
	empty, _ := emptyStatus(gvk)
	if empty == nil {
		delete(obj, "status")
		return
	}
	obj["status"] = runtime.DeepCopyJSON(empty)
}

var emptyStatuses sync.Map // schema.GroupVersionKind to map[string]any

func emptyStatus(gvk schema.GroupVersionKind) (map[string]any, bool) {
	if known, ok := emptyStatuses.Load(gvk); ok {
		m, _ := known.(map[string]any)
		return m, m != nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(New(gvk))
	if err != nil {
		return nil, false
	}
	status, _ := content["status"].(map[string]any)
	emptyStatuses.Store(gvk, status)
	return status, status != nil
}

// PrepareUpdate does what the kind's strategy does upstream with a changed object: it resets what a
// write through the subresource cannot change, and increments the generation.
func PrepareUpdate(gvk schema.GroupVersionKind, obj, old map[string]any, subresource string) {
	switch {
	case subresource == "approval":
		approve(obj, old)
		return
	case subresource == "status":
		keepAllBut(obj, old, "status", "metadata", "apiVersion", "kind")
		if name, ok := fixedByStatus[id(gvk)]; ok {
			keep(metadataOf(obj), metadataOf(old), name)
		}
		return
	case hasStatus(gvk):
		keep(obj, old, "status")
	}
	if prepare, ok := preparations[id(gvk)]; ok && prepare.update != nil {
		prepare.update(obj, old)
	}
	changed := !reflect.DeepEqual(mainPart(obj), mainPart(old))
	if id(gvk) == "apps/Deployment" {
		changed = changed || !reflect.DeepEqual(metadataOf(obj)["annotations"], metadataOf(old)["annotations"])
	}
	if withGeneration[id(gvk)] && changed {
		generation, _ := metadataOf(old)["generation"].(int64)
		metadataOf(obj)["generation"] = generation + 1
	}
}

// fixedByStatus are the parts of the metadata that a write of the status cannot change.
var fixedByStatus = map[string]string{"apps/Deployment": "labels", "/Pod": "ownerReferences"}

// FixedByStatus returns the part of the metadata that a write of the status of a kind cannot change,
// or "".
func FixedByStatus(gvk schema.GroupVersionKind) string { return fixedByStatus[id(gvk)] }

// mainPart returns the parts of an object whose changes increment its generation.
func mainPart(obj map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range obj {
		switch k {
		case "metadata", "status", "apiVersion", "kind":
		default:
			out[k] = v
		}
	}
	return out
}

func keep(obj, old map[string]any, name string) {
	if v, ok := old[name]; ok {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

func keepAllBut(obj, old map[string]any, names ...string) {
	for k := range obj {
		if !slices.Contains(names, k) {
			delete(obj, k)
		}
	}
	for k, v := range old {
		if !slices.Contains(names, k) {
			obj[k] = v
		}
	}
}

func metadataOf(obj map[string]any) map[string]any {
	m, ok := obj["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj["metadata"] = m
	}
	return m
}

// UnconditionalUpdate reports whether an update of an object may omit its resource version.
func UnconditionalUpdate(gvk schema.GroupVersionKind) bool {
	return !conditionalOnly[id(gvk)]
}

// conditionalOnly are the kinds whose updates must have a resource version.
var conditionalOnly = map[string]bool{
	"coordination.k8s.io/Lease": true, "apiextensions.k8s.io/CustomResourceDefinition": true, "policy/PodDisruptionBudget": true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration": true, "admissionregistration.k8s.io/ValidatingWebhookConfiguration": true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy": true, "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy": true, "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": true,
	"scheduling.k8s.io/PriorityClass": false, "node.k8s.io/RuntimeClass": false, "resource.k8s.io/ResourceClaim": false,
}

// CreatesOnUpdate reports whether an update of an object that does not exist creates it.
func CreatesOnUpdate(gvk schema.GroupVersionKind) bool { return createsOnUpdate[id(gvk)] }

var createsOnUpdate = map[string]bool{
	"coordination.k8s.io/Lease": true, "/Event": true, "events.k8s.io/Event": true, "/Service": true, "/Endpoints": true, "/LimitRange": true,
	"rbac.authorization.k8s.io/Role": true, "rbac.authorization.k8s.io/RoleBinding": true, "rbac.authorization.k8s.io/ClusterRole": true,
	"rbac.authorization.k8s.io/ClusterRoleBinding": true, "storage.k8s.io/CSIDriver": false,
}

// ReturnsDeleted reports whether a deletion that removes the object is answered with the object
// instead of a Status.
func ReturnsDeleted(gvk schema.GroupVersionKind) bool { return returnsDeleted[id(gvk)] }

var returnsDeleted = map[string]bool{
	"/Pod": true, "/PodTemplate": true, "/ServiceAccount": true, "/ResourceQuota": true, "/PersistentVolume": true, "/PersistentVolumeClaim": true, "/Service": true,
	"storage.k8s.io/CSINode": true, "storage.k8s.io/StorageClass": true, "storage.k8s.io/VolumeAttachment": true, "storage.k8s.io/CSIDriver": true,
}

// Selectable returns the fields, besides name and namespace, that field selectors may use.
func Selectable(gvk schema.GroupVersionKind) []string { return selectable[id(gvk)] }

var eventFields = []string{
	"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
	"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
}

var regardingFields = []string{
	"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
	"regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
}

var selectable = map[string][]string{
	"/Pod":                   {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"},
	"/Event":                 eventFields,
	"events.k8s.io/Event":    regardingFields,
	"/Secret":                {"type"},
	"/Namespace":             {"status.phase"},
	"/Node":                  {"spec.unschedulable"},
	"/Service":               {"spec.clusterIP", "spec.type"},
	"/ReplicationController": {"status.replicas"},
	"batch/Job":              {"status.successful"},
	"certificates.k8s.io/CertificateSigningRequest": {"spec.signerName"},
	"resource.k8s.io/ResourceSlice":                 {"spec.nodeName", "spec.driver"},
}

// Field returns a selectable field in its text form.
func Field(gvk schema.GroupVersionKind, obj map[string]any, field string) string {
	path := fieldPaths[id(gvk)+" "+field]
	if path == nil {
		path = split(field)
	}
	value, _, err := unstructured.NestedFieldNoCopy(obj, path...)
	switch {
	case err != nil:
		return ""
	case value == nil && field == "source": // of a new Event
		return Field(gvk, obj, "reportingComponent")
	case value == nil:
		return zeroFields[field]
	}
	return fmt.Sprint(value)
}

// fieldPaths are the paths of the fields whose selector has another name than their path.
var fieldPaths = map[string][]string{
	"batch/Job status.successful": {"status", "succeeded"},
	"/Event source":               {"source", "component"},
}

// zeroFields are the text forms of unset fields, where they are not empty.
var zeroFields = map[string]string{
	"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0",
}

func split(path string) []string {
	var parts []string
	start := 0
	for i := range len(path) {
		if path[i] == '.' {
			parts = append(parts, path[start:i])
			start = i + 1
		}
	}
	return append(parts, path[start:])
}

// OrphansByDefault reports whether a deletion without a propagation policy orphans the dependents,
// as it does for compatibility with old clients.
func OrphansByDefault(gvk schema.GroupVersionKind) bool {
	return id(gvk) == "batch/Job" || id(gvk) == "/ReplicationController"
}
