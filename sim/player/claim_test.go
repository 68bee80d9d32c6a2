// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

// leave deletes an object as kubectl delete --cascade=orphan does.
func (t *theater) leave(obj client.Object) {
	t.Helper()
	_, path := t.path(obj)
	t.ask(http.MethodDelete, path, map[string]any{"propagationPolicy": "Orphan"})
	t.settle()
}

// podIDs returns the UIDs of the Pods, and the kinds and names of their controllers.
func podIDs(t *theater) (ids []types.UID, controllers []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, pod := range list[corev1.Pod](t) {
		ids = append(ids, pod.UID)
		if owner := metav1.GetControllerOf(&pod); owner != nil {
			seen[owner.Kind+" "+owner.Name+" "+string(owner.UID)] = true
		} else {
			seen["none"] = true
		}
	}
	slices.Sort(ids)
	return ids, slices.Sorted(maps.Keys(seen))
}

// checkErrors fails if players have failed, or the server has refused something.
func (t *theater) checkErrors() {
	t.Helper()
	for _, entry := range strings.Split(t.trace.String(), "\n") {
		if strings.Contains(entry, " error ") || strings.Contains(entry, "-> 4") {
			t.Error(entry)
		}
	}
}

// What a deleted workload has left belongs to the next one that selects it: no Pod is replaced.
func TestOrphansAreAdopted(t *testing.T) {
	daemons := &appsv1.DaemonSet{ObjectMeta: named("x"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template("nginx:1")}}
	set := &appsv1.ReplicaSet{ObjectMeta: named("x"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: selector, Template: template("nginx:1")}}
	work := job(func(j *batchv1.Job) {
		j.Spec.ManualSelector, j.Spec.Selector = new(true), selector
		j.Spec.Template.Annotations = map[string]string{player.OutcomeAnnotation: string(player.Runs)}
	})
	for kind, obj := range map[string]client.Object{
		"StatefulSet": statefulSet(), "ReplicaSet": set, "Deployment": deployment(3), "DaemonSet": daemons, "Job": work,
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, nil, func(t *theater) {
				t.create(obj)
				t.settle()
				before, _ := podIDs(t)
				t.leave(obj)
				if left, owners := podIDs(t); len(left) == 0 || kind != "Deployment" && !slices.Equal(owners, []string{"none"}) {
					t.Fatalf("%d Pods are left, with the controllers %v", len(left), owners)
				}
				t.create(obj)
				t.settle()
				after, owners := podIDs(t)
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("other Pods: %s", diff)
				}
				want := kind + " x " + string(get(t, obj).GetUID())
				if kind == "Deployment" {
					sets := list[appsv1.ReplicaSet](t)
					if len(sets) != 1 || !metav1.IsControlledBy(&sets[0], get(t, obj)) {
						t.Fatalf("the ReplicaSets are %v", sets)
					}
					want = "ReplicaSet " + sets[0].Name + " " + string(sets[0].UID)
				}
				if !slices.Equal(owners, []string{want}) {
					t.Errorf("the controllers are %q, want %q", owners, want)
				}
				for _, r := range list[appsv1.ControllerRevision](t) {
					if !metav1.IsControlledBy(&r, get(t, obj)) {
						t.Errorf("the revision %s has the owners %v", r.Name, r.OwnerReferences)
					}
				}
				t.checkErrors()
			})
		})
	}
}

// A Pod that another controller has, one that is being deleted, and, for a StatefulSet, one of another
// name, is left alone. Only what matches is adopted, and gets the labels of its set.
func TestOnlyWhatFitsIsAdopted(t *testing.T) {
	bare := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: named(name), Spec: template("nginx:1").Spec}
		pod.Labels = maps.Clone(selector.MatchLabels)
		if change != nil {
			change(pod)
		}
		return pod
	}
	play(t, nil, func(t *theater) {
		x := statefulSet()
		x.Spec.Replicas, x.Spec.VolumeClaimTemplates = new(int32(1)), nil
		x.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType // so that what is adopted stays
		settings := &corev1.ConfigMap{ObjectMeta: named("settings")}
		t.create(settings)
		t.create(
			bare("x-0", nil),
			bare("x-1", func(p *corev1.Pod) { p.OwnerReferences = ownedBy(get(t, settings), "ConfigMap") }),
			bare("x-y-2", nil), bare("other", nil), bare("x-03", nil),
			bare("x-4", func(p *corev1.Pod) { p.Labels["app"] = "y" }),
			bare("x-5", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }),
		)
		t.delete(bare("x-5", nil))
		t.create(x)
		t.settle()
		got := map[string]string{}
		for _, pod := range list[corev1.Pod](t) {
			if owner := metav1.GetControllerOf(&pod); owner != nil {
				got[pod.Name] = owner.Kind
			} else {
				got[pod.Name] = ""
			}
		}
		want := map[string]string{"x-0": "StatefulSet", "x-1": "ConfigMap", "x-y-2": "", "other": "", "x-03": "", "x-4": "", "x-5": ""}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if pod := get(t, bare("x-0", nil)); pod.Labels[appsv1.StatefulSetPodNameLabel] != "x-0" || pod.Labels[appsv1.PodIndexLabel] != "0" {
			t.Errorf("the adopted Pod has the labels %v", pod.Labels)
		}
		if s := get(t, x).Status; s.ReadyReplicas != 1 || s.Replicas != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

// A Pod whose labels do not match any more is released, and replaced; when they match again, it is one
// too many. A Pod that loses its owner reference gets it back.
func TestPodsAreReleased(t *testing.T) {
	play(t, nil, func(t *theater) {
		x := &appsv1.ReplicaSet{ObjectMeta: named("x"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: selector, Template: template("nginx:1")}}
		t.create(x)
		t.settle()
		first := list[corev1.Pod](t)[0]
		update(t, &first, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "debug"} })
		t.settle()
		if owner := metav1.GetControllerOf(get(t, &corev1.Pod{ObjectMeta: named(first.Name)})); owner != nil || len(list[corev1.Pod](t)) != 3 {
			t.Errorf("of %d Pods, the one with other labels has the controller %v", len(list[corev1.Pod](t)), owner)
		}
		update(t, &first, func(p *corev1.Pod) { p.Labels = selector.MatchLabels })
		t.settle()
		ids, owners := podIDs(t)
		if len(ids) != 2 || len(owners) != 1 {
			t.Errorf("%d Pods of %v, want 2 of one", len(ids), owners)
		}
		last := list[corev1.Pod](t)[0]
		update(t, &last, func(p *corev1.Pod) { p.OwnerReferences = nil })
		t.settle()
		if again, _ := podIDs(t); !slices.Equal(ids, again) || !metav1.IsControlledBy(get(t, &corev1.Pod{ObjectMeta: named(last.Name)}), get(t, x)) {
			t.Errorf("the Pods were %v and are %v", ids, again)
		}
		t.checkErrors()
	})
}
