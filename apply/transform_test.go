// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// ourFields are what the operator has applied of deployment.
const ourFields = `{"f:metadata":{"f:annotations":{"f:apply.ctrlkit.dev/hash":{}},"f:labels":{"f:app":{}},"f:ownerReferences":{"k:{\"uid\":\"%s\"}":{}}},` +
	`"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":` +
	`{".":{},"f:args":{},"f:env":{"k:{\"name\":\"LEVEL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"REGION\"}":{".":{},"f:name":{},"f:value":{}}},` +
	`"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{}}},` +
	`"f:readinessProbe":{"f:httpGet":{"f:path":{},"f:port":{}}},"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}},"f:requests":{"f:cpu":{},"f:memory":{}}},` +
	`"f:volumeMounts":{"k:{\"mountPath\":\"/etc/web\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:volumes":{"k:{\"name\":\"config\"}":{".":{},"f:configMap":{"f:name":{}},"f:name":{}}}}}}}`

// Other managers of a Deployment in a cluster: the controller manager, which writes the revision and
// the status, a rollout by kubectl, and an autoscaler.
const (
	revisionFields = `{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}},"f:status":{"f:availableReplicas":{},"f:conditions":{".":{},` +
		`"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"Progressing\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},` +
		`"f:observedGeneration":{},"f:readyReplicas":{},"f:replicas":{},"f:updatedReplicas":{}}}`
	rolloutFields = `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`
	scaleFields   = `{"f:metadata":{"f:annotations":{"f:autoscaling.example.com/seen":{}}}}`
)

// deployment is one as it is in a cluster. All its strings are its own, as if it had been decoded.
func cachedDeployment(i int) *appsv1.Deployment {
	name := fmt.Sprintf("web-%05d", i)
	uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	entry := func(manager, subresource string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: strings.Clone(manager), Operation: metav1.ManagedFieldsOperationType(strings.Clone(string(operation))), Subresource: strings.Clone(subresource),
			APIVersion: strings.Clone("apps/v1"), FieldsType: strings.Clone("FieldsV1"), FieldsV1: metav1.NewFieldsV1(fields), Time: ptr.To(metav1.NewTime(time.Unix(1, 0))),
		}
	}
	condition := func(kind, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: appsv1.DeploymentConditionType(strings.Clone(kind)), Status: corev1.ConditionStatus(strings.Clone("True")), Reason: strings.Clone("NewReplicaSetAvailable"), Message: strings.Clone(message)}
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: strings.Clone("default"), UID: uid, ResourceVersion: fmt.Sprint(1000 + i), Generation: 1,
			Labels:          map[string]string{"app": name},
			Annotations:     map[string]string{"apply.ctrlkit.dev/hash": fmt.Sprintf("%022d", i), "deployment.kubernetes.io/revision": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: strings.Clone("demo.ctrlkit.dev/v1"), Kind: strings.Clone("Website"), Name: name, UID: uid, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				entry("website", "", metav1.ManagedFieldsOperationApply, fmt.Sprintf(ourFields, uid)),
				entry("autoscaler", "", metav1.ManagedFieldsOperationUpdate, scaleFields),
				entry("kubectl-rollout", "", metav1.ManagedFieldsOperationUpdate, rolloutFields),
				entry("kube-controller-manager", "status", metav1.ManagedFieldsOperationUpdate, revisionFields),
			},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			RevisionHistoryLimit: ptr.To[int32](10), ProgressDeadlineSeconds: ptr.To[int32](600),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: map[string]string{"kubectl.kubernetes.io/restartedAt": strings.Clone("2030-01-01T00:00:00Z")}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: strings.Clone("web"), Image: strings.Clone("registry.example.com/web:1.2.3"), Args: []string{strings.Clone("--config=/etc/web/config.yaml")},
						Env:            []corev1.EnvVar{{Name: strings.Clone("LEVEL"), Value: strings.Clone("info")}, {Name: strings.Clone("REGION"), Value: strings.Clone("eu-central-1")}},
						Ports:          []corev1.ContainerPort{{Name: strings.Clone("http"), ContainerPort: 8080, Protocol: corev1.Protocol(strings.Clone("TCP"))}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: strings.Clone("/ready"), Port: intstr.FromInt32(8080), Scheme: corev1.URIScheme(strings.Clone("HTTP"))}}},
						VolumeMounts:   []corev1.VolumeMount{{Name: strings.Clone("config"), MountPath: strings.Clone("/etc/web")}},
					}},
					Volumes: []corev1.Volume{{Name: strings.Clone("config"), VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}},
				},
			},
		},
		Status: appsv1.DeploymentStatus{Replicas: 2, Conditions: []appsv1.DeploymentCondition{condition("Available", "Deployment has minimum availability."), condition("Progressing", "ReplicaSet has successfully progressed.")}},
	}
	return d
}

func transformed[T any](t testing.TB, f toolscache.TransformFunc, obj T) T {
	t.Helper()
	out, err := f(obj)
	must(t, err)
	return out.(T)
}

// A transformed object has our entry and is otherwise as it was, and so it is when it is transformed
// again.
func TestCacheTransform(t *testing.T) {
	f := apply.CacheTransform()
	d := cachedDeployment(7)
	want := d.DeepCopy()
	want.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "website", Operation: "Apply", APIVersion: "apps/v1",
		FieldsV1: metav1.NewFieldsV1(strings.Replace(ourFields, `"f:ownerReferences":{"k:{\"uid\":\"%s\"}":{}}`, `"f:ownerReferences":{}`, 1)),
	}}
	for range 2 {
		if diff := cmp.Diff(want, transformed(t, f, d)); diff != "" {
			t.Fatal(diff)
		}
	}
	other := transformed(t, f, cachedDeployment(8))
	if &other.ManagedFields[0] != &d.ManagedFields[0] {
		t.Error("equal entries are not shared")
	}
}

// An entry whose owner reference the object does not have any more keeps it.
func TestCacheTransformWithoutItsOwner(t *testing.T) {
	d := cachedDeployment(7)
	d.OwnerReferences[0].UID = "another"
	transformed(t, apply.CacheTransform(), d)
	if got, want := d.ManagedFields[0].FieldsV1.GetRawString(), fmt.Sprintf(ourFields, d.UID); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Conditions are as they were, with the texts of those of other objects, and no room for more.
func TestCacheTransformOfConditions(t *testing.T) {
	budget := func() *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: []string{strings.Clone("example.com/budget")}}}
		b.Status.Conditions = append(make([]metav1.Condition, 0, 4), metav1.Condition{
			Type: strings.Clone("DisruptionAllowed"), Status: metav1.ConditionStatus(strings.Clone("True")), ObservedGeneration: 3,
			LastTransitionTime: metav1.Unix(7, 0), Reason: strings.Clone("SufficientPods"), Message: strings.Clone("2 of 3 pods are enough"),
		})
		return b
	}
	f := apply.CacheTransform()
	one, other := transformed(t, f, budget()), transformed(t, f, budget())
	if diff := cmp.Diff(budget(), other); diff != "" {
		t.Error(diff)
	}
	a, b := one.Status.Conditions[0], other.Status.Conditions[0]
	for _, texts := range [][2]string{
		{a.Type, b.Type}, {string(a.Status), string(b.Status)}, {a.Reason, b.Reason}, {a.Message, b.Message}, {one.Finalizers[0], other.Finalizers[0]},
	} {
		if unsafe.StringData(texts[0]) != unsafe.StringData(texts[1]) {
			t.Errorf("%q is not shared", texts[0])
		}
	}
	if got := cap(other.Status.Conditions); got != 1 {
		t.Errorf("there is room for %d conditions", got)
	}
}

// Embedded has a status of its own.
type Embedded struct {
	Status struct{ Conditions []metav1.Condition }
}

// An object may have its conditions elsewhere, or a status that is missing or of another type.
func TestCacheTransformOfOtherConditions(t *testing.T) {
	f := apply.CacheTransform()
	for _, obj := range []metav1.ObjectMetaAccessor{
		&struct {
			metav1.PartialObjectMetadata
			Status *struct{ Conditions []metav1.Condition }
		}{},
		&struct {
			metav1.PartialObjectMetadata
			*Embedded
		}{},
		&struct {
			metav1.PartialObjectMetadata
			Status string
		}{Status: "up"},
		&struct {
			metav1.PartialObjectMetadata
			Status struct{ Conditions map[string]string }
		}{},
	} {
		transformed(t, f, obj)
	}
}

// What any controller of the operator has applied is kept, and an entry that shows that a map without a
// schema was taken from one.
func TestCacheTransformKeepsEvidence(t *testing.T) {
	thing := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "website", Operation: "Apply", APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:free":{"f:a":{}}}}`)},
		{Manager: "other", Operation: "Update", APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:free":{"f:b":{}}}}`)},
		{Manager: "certificates", Operation: "Apply", APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:certificate":{}}}`)},
		{Manager: "thief", Operation: "Update", APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:free":{"f:a":{"f:b":{}}}}}`)},
	}}}
	var kept []string
	for _, e := range transformed(t, apply.CacheTransform(), thing).ManagedFields {
		kept = append(kept, e.Manager)
	}
	if diff := cmp.Diff([]string{"website", "certificates", "thief"}, kept); diff != "" {
		t.Error(diff)
	}
}

func TestCacheTransformUnstructured(t *testing.T) {
	content, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(cachedDeployment(7))
	must(t, err)
	u := transformed(t, apply.CacheTransform(), &unstructured.Unstructured{Object: content})
	managed := u.GetManagedFields()
	if len(managed) != 1 || managed[0].Manager != "website" || managed[0].FieldsType != "" || managed[0].FieldsV1.GetRawString() != fmt.Sprintf(ourFields, u.GetUID()) {
		t.Errorf("got %v", managed)
	}
}

func TestCacheTransformLeavesTheRestAlone(t *testing.T) {
	f := apply.CacheTransform()
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "default/web", Obj: cachedDeployment(7)}
	for name, obj := range map[string]any{
		"a tombstone":                      tombstone,
		"a string":                         "x",
		"nil":                              nil,
		"an object without managed fields": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := f(obj)
			must(t, err)
			if diff := cmp.Diff(obj, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := len(tombstone.Obj.(*appsv1.Deployment).ManagedFields); got != 4 {
		t.Errorf("the object of a tombstone has %d entries, want 4", got)
	}
	foreign := cachedDeployment(7)
	foreign.ManagedFields = foreign.ManagedFields[1:]
	if got := transformed(t, f, foreign).ManagedFields; len(got) != 0 {
		t.Errorf("an object of others has the entries %v, want none", got)
	}
}

// The figures are those of docs/design/0011-unchanged-children-are-witnessed.md: run it with -v.
func TestCacheTransformHeap(t *testing.T) {
	rings.Test(t, "takes a second")
	const n = 2000
	ours := func(obj any) (any, error) {
		d := obj.(*appsv1.Deployment)
		d.ManagedFields = []metav1.ManagedFieldsEntry{d.ManagedFields[0]}
		return d, nil
	}
	bytesPer := func(f toolscache.TransformFunc) int {
		objects := make([]*appsv1.Deployment, n)
		before := heap()
		for i := range objects {
			objects[i] = transformed(t, f, cachedDeployment(i))
		}
		after := heap()
		runtime.KeepAlive(objects)
		return int(after-before) / n
	}
	all := bytesPer(func(obj any) (any, error) { return obj, nil })
	own := bytesPer(ours)
	shared := bytesPer(apply.CacheTransform())
	none := bytesPer(toolscache.TransformFunc(func(obj any) (any, error) { obj.(*appsv1.Deployment).ManagedFields = nil; return obj, nil }))
	t.Logf("bytes of heap per Deployment: %d with all entries, %d with ours, %d with ours shared, %d with none", all, own, shared, none)
	if all-shared < (all-none)*9/10 {
		t.Errorf("the transform saves %d bytes of %d", all-shared, all-none)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func BenchmarkCacheTransform(b *testing.B) {
	f := apply.CacheTransform()
	d := cachedDeployment(7)
	entries := d.ManagedFields
	b.ReportAllocs()
	for b.Loop() {
		d.ManagedFields = entries
		transformed(b, f, d)
	}
}
