// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DaemonSet returns the player of DaemonSets: it runs a Pod on each Node that spec.nodeSelector of the
// template matches, or on one node when there are no Nodes in the cluster. It adopts the Pods that
// match its selector and have no controller. It replaces one Pod at a time, whatever maxUnavailable
// is, and ignores affinity and taints.
func DaemonSet() Player {
	p := adoptingPods(New(unlessDeleted(playDaemonSet)), func(set *appsv1.DaemonSet) *metav1.LabelSelector { return set.Spec.Selector })
	return p.Watching(&corev1.Node{}, func(s *Stage, _ client.Object) []client.ObjectKey {
		var keys []client.ObjectKey
		for _, set := range s.world.Objects(&appsv1.DaemonSet{}, "") {
			keys = append(keys, client.ObjectKeyFromObject(set))
		}
		return keys
	})
}

func playDaemonSet(s *Stage, set *appsv1.DaemonSet) error {
	revision, others, err := ensureRevision(s, set, set.Spec.Selector, &set.Spec.Template)
	if err != nil {
		return err
	}
	if err := (claim[*corev1.Pod]{selector: set.Spec.Selector}).make(s, set); err != nil {
		return err
	}
	hash := revision.Labels[appsv1.ControllerRevisionHashLabelKey]
	nodes := daemonNodes(s, set)
	err = errors.Join(stepDaemons(s, set, nodes, hash), keepRevisions(s, others, int(ptr.Deref(set.Spec.RevisionHistoryLimit, 10))))
	status := &set.Status
	*status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, Conditions: status.Conditions, DesiredNumberScheduled: int32(len(nodes))}
	all := activePods(Children[*corev1.Pod](s, set))
	n := len(all)
	pods := slices.DeleteFunc(all, func(pod *corev1.Pod) bool { return !slices.Contains(nodes, pod.Spec.NodeName) })
	status.NumberMisscheduled, status.CurrentNumberScheduled = int32(n-len(pods)), int32(len(pods))
	status.UpdatedNumberScheduled = count(pods, ofRevision(hash))
	status.NumberReady, status.NumberAvailable = count(pods, isReady), countAvailable(s, pods, set.Spec.MinReadySeconds)
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	return errors.Join(err, s.UpdateStatus(set))
}

// daemonNodes returns the names of the nodes on which the Pods of a DaemonSet run.
func daemonNodes(s *Stage, set *appsv1.DaemonSet) []string {
	selector := labels.SelectorFromSet(set.Spec.Template.Spec.NodeSelector)
	var names []string
	for _, name := range nodeNames(s) {
		node, ok := Get[*corev1.Node](s, "", name)
		if !ok || selector.Matches(labels.Set(node.Labels)) {
			names = append(names, name)
		}
	}
	return names
}

// stepDaemons creates the Pods that are missing, and deletes those that are not wanted.
func stepDaemons(s *Stage, set *appsv1.DaemonSet, nodes []string, hash string) error {
	var errs []error
	on := map[string]bool{}
	unavailable := false
	var old []*corev1.Pod
	for _, pod := range Children[*corev1.Pod](s, set) {
		switch node := pod.Spec.NodeName; {
		case node == "": // it was adopted before it was bound
		case pod.DeletionTimestamp != nil:
			on[node], unavailable = true, true // a new one waits for its end
		case !slices.Contains(nodes, node) || on[node] || hasEnded(pod):
			errs = append(errs, s.Delete(pod))
		default:
			on[node] = true
			unavailable = unavailable || !isAvailable(s, pod, set.Spec.MinReadySeconds)
			if revisionName(pod) != hash {
				old = append(old, pod)
			}
		}
	}
	for _, node := range nodes {
		if on[node] {
			continue
		}
		unavailable = true
		pod := podFrom(&set.Spec.Template)
		pod.GenerateName = set.Name + "-"
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
		pod.Spec.NodeName = node
		errs = append(errs, s.CreateFor(set, pod))
	}
	for _, pod := range old {
		if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || unavailable && isReady(pod) {
			continue
		}
		errs = append(errs, s.Delete(pod))
		break
	}
	return errors.Join(errs...)
}
