// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/foreign"
)

// at names an object, of a cluster-scoped kind if the namespace is empty.
func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// shown returns the namespaces and names of what a state has, or what its error says.
func shown[T any, P interface {
	*T
	client.Object
}](items []T, err error) string {
	if err != nil {
		return err.Error()
	}
	var names []string
	for i := range items {
		names = append(names, P(&items[i]).GetNamespace()+"/"+P(&items[i]).GetName())
	}
	return strings.Join(names, " ")
}

// one is shown for a state that is one object or nil.
func one[T any, P interface {
	*T
	client.Object
}](obj P, err error) string {
	if obj == nil {
		return shown[T, P](nil, err)
	}
	return shown[T, P]([]T{*obj}, err)
}

// A reference has its default while it is empty, also behind a pointer that is nil, and a key of
// a map is what the map has for it.
func TestDefaultsAndKeys(t *testing.T) {
	t.Parallel()
	small := &corev1.ConfigMap{ObjectMeta: at("kube-system", "small")}
	small.Labels = map[string]string{"zone": "z", "major": "none"}
	objects := []client.Object{
		small, &storagev1.StorageClass{ObjectMeta: at("", "fast")}, &storagev1.StorageClass{ObjectMeta: at("", "slow")},
		&corev1.PersistentVolumeClaim{ObjectMeta: at("own", "c")}, &corev1.PersistentVolumeClaim{ObjectMeta: at("shared", "c")},
		&corev1.Secret{ObjectMeta: at("kube-system", "s")}, &corev1.Secret{ObjectMeta: at("own", "s")},
	}
	type view struct{ claim, class, secret, sizes string }
	for _, test := range []struct {
		name                string
		annotations, labels map[string]string
		spec                corev1.PersistentVolumeSpec
		data                map[string]string
		want                view
	}{
		{
			name: "nothing is set",
			want: view{class: "name=${target.Annotations[volume.beta.kubernetes.io/storage-class]?target.Spec.StorageClassName} is empty"},
		},
		{
			name: "defaults", labels: map[string]string{"topology.kubernetes.io/zone": "z"}, data: map[string]string{"credentials": "s"},
			spec: corev1.PersistentVolumeSpec{StorageClassName: "fast", ClaimRef: &corev1.ObjectReference{Name: "c"}},
			want: view{claim: "shared/c", class: "/fast", secret: "kube-system/s", sizes: "kube-system/small"},
		},
		{
			name: "values", annotations: map[string]string{"volume.beta.kubernetes.io/storage-class": "slow"}, data: map[string]string{"credentials": "s", "namespace": "own"},
			spec: corev1.PersistentVolumeSpec{StorageClassName: "fast", ClaimRef: &corev1.ObjectReference{Name: "c", Namespace: "own", Kind: "PersistentVolumeClaim"}},
			want: view{claim: "own/c", class: "/slow", secret: "own/s"},
		},
		{
			name: "another kind, and an empty text", data: map[string]string{"credentials": ""},
			spec: corev1.PersistentVolumeSpec{StorageClassName: "fast", ClaimRef: &corev1.ObjectReference{Name: "c", Kind: "Secret"}},
			want: view{class: "/fast"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			settings := &corev1.ConfigMap{ObjectMeta: at("kube-system", "volumes"), Data: test.data}
			volume := &corev1.PersistentVolume{ObjectMeta: at("", "v"), Spec: test.spec}
			volume.Annotations, volume.Labels = test.annotations, test.labels
			s := foreign.NewVolumesState(fake.NewClientBuilder().WithObjects(objects...).WithObjects(settings).Build(), volume)
			got := view{one(s.GetClaim(t.Context())), one(s.GetClass(t.Context())), one(s.GetCredentials(t.Context())), shown(s.GetSizes(t.Context()))}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// The elements of a list name objects of several kinds, of which a state has those of its kind.
func TestKinds(t *testing.T) {
	t.Parallel()
	reader := fake.NewClientBuilder().WithObjects(
		&corev1.ServiceAccount{ObjectMeta: at("default", "a")}, &corev1.ServiceAccount{ObjectMeta: at("ci", "b")}, &corev1.ServiceAccount{ObjectMeta: at("default", "ann")},
		&rbacv1.Role{ObjectMeta: at("default", "view")}, &rbacv1.ClusterRole{ObjectMeta: at("", "view")},
	).Build()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: at("default", "x"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "a"}, {Kind: "ServiceAccount", Name: "b", Namespace: "ci"}, {Kind: "User", Name: "ann"}},
	}
	s := foreign.NewBindingsState(reader, binding)
	if got := shown(s.GetAccounts(t.Context())); got != "ci/b default/a" {
		t.Errorf("got the accounts %q", got)
	}
	if role, clusterRole := one(s.GetRole(t.Context())), one(s.GetClusterRole(t.Context())); role != "" || clusterRole != "/view" {
		t.Errorf("got the Role %q and the ClusterRole %q", role, clusterRole)
	}
	binding.RoleRef.Kind = ""
	if got := one(foreign.NewBindingsState(reader, binding).GetRole(t.Context())); got != "kind=${target.RoleRef.Kind} is empty" {
		t.Errorf("without a kind, got %q", got)
	}
}

// The operators of fields mean what those of labels do; an empty field is missing to the path
// alone.
func TestFieldOperators(t *testing.T) {
	t.Parallel()
	pod := func(name, node, priority string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: at("default", name), Spec: corev1.PodSpec{NodeName: node, PriorityClassName: priority}}
		p.Labels, p.Status.Phase = map[string]string{"app": "web"}, phase
		return p
	}
	twin := pod("a-twin", "n", "high", corev1.PodFailed)
	target := pod("a", "n", "low", corev1.PodRunning)
	target.Spec.Hostname = "a"
	leader := pod("l", "", "high", corev1.PodPending)
	leader.Spec.Hostname = "leader"
	reader := fake.NewClientBuilder().WithObjects(
		target, twin, leader, pod("b", "n", "low", corev1.PodPending), pod("c", "n", "low", corev1.PodFailed), pod("d", "", "", corev1.PodRunning), pod("e", "", "low", ""),
	).Build()
	s := foreign.NewPeersState(reader, target)
	for state, got := range map[string][2]string{
		"peers":   {shown(s.GetPeers(t.Context())), "default/b"},
		"waiting": {shown(s.GetWaiting(t.Context())), "default/d"},
		"twin":    {one(s.GetTwin(t.Context())), "default/a-twin"},
		"leader":  {one(s.GetLeader(t.Context())), "at most one object may match, but 2 do: default/a, default/l"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %q, want %q", state, got[0], got[1])
		}
	}
	zero := int32(0)
	twin.Spec.Priority = &zero
	if err := reader.Update(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	want := `default/a-twin exists but does not satisfy the other selectors: field .spec.priority is "0", want .spec.priority!=0: change it, or delete it`
	if got := one(foreign.NewPeersState(reader, target).GetTwin(t.Context())); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
