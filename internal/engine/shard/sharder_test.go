// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

const (
	ringLabel  = "alpha.sharding.timebertt.dev/controllerring"
	shardLabel = "shard.alpha.sharding.timebertt.dev/things"
	drainLabel = "drain.alpha.sharding.timebertt.dev/things"
)

// sharder plays the sharder for a ring of ConfigMaps that control Secrets. It assigns after a
// moment what the webhook of the real one assigns at once. It is dead from one time to another,
// counted from the beginning.
func sharder(from, to time.Duration) player.Player {
	return player.New(func(s *player.Stage, lease *coordinationv1.Lease) error {
		if now := time.Since(player.List[*corev1.Namespace](s, "")[0].CreationTimestamp.Time); now >= from && now < to {
			s.After(to - now)
			return nil
		}
		available, err := shards(s, lease.Namespace)
		if err != nil || len(available) == 0 {
			return err
		}
		s.After(61 * time.Second) // Settle does not wait for it; renewals call the player sooner
		var errs []error
		for _, obj := range player.List[*corev1.ConfigMap](s, "default") {
			errs = append(errs, assign(s, obj, available, choose(available, obj.Name), true))
		}
		for _, obj := range player.List[*corev1.Secret](s, "default") {
			if owner := metav1.GetControllerOf(obj); owner != nil {
				errs = append(errs, assign(s, obj, available, choose(available, owner.Name), false))
			}
		}
		return errors.Join(errs...)
	}).Watching(&corev1.ConfigMap{}, leases).Watching(&corev1.Secret{}, leases)
}

func leases(s *player.Stage, _ client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, lease := range player.List[*coordinationv1.Lease](s, "operators") {
		keys = append(keys, client.ObjectKeyFromObject(lease))
	}
	return keys[:min(len(keys), 1)]
}

// shards returns the available shards, and takes the Leases of those that have not renewed them for
// twice their duration.
func shards(s *player.Stage, namespace string) (available []string, err error) {
	for _, lease := range player.List[*coordinationv1.Lease](s, namespace) {
		if lease.Labels[ringLabel] != "things" || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != lease.Name {
			continue
		}
		lasts := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		if time.Since(lease.Spec.RenewTime.Time) < 2*lasts {
			available = append(available, lease.Name)
			continue
		}
		now := metav1.NowMicro()
		holder, seconds := "shardlease-controller", 2*int32(lasts/time.Second)
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.AcquireTime, lease.Spec.RenewTime = &holder, &seconds, &now, &now
		err = errors.Join(err, s.Update(lease))
	}
	return available, err
}

// choose returns the shard that an object belongs to: few objects move when a shard comes or goes.
func choose(available []string, name string) string {
	weight := func(shard string) uint64 {
		sum := sha256.Sum256([]byte(shard + "/" + name))
		return binary.BigEndian.Uint64(sum[:])
	}
	return slices.MaxFunc(available, func(a, b string) int { return cmp.Compare(weight(a), weight(b)) })
}

// assign assigns an object: at once if its shard is dead or it is controlled, else it asks the shard
// for it.
func assign(s *player.Stage, obj client.Object, available []string, want string, asks bool) error {
	labels := obj.GetLabels()
	switch has := labels[shardLabel]; {
	case has == want:
		return nil
	case has != "" && asks && slices.Contains(available, has):
		if labels[drainLabel] != "" {
			return nil
		}
		labels[drainLabel] = "true"
	default:
		if labels == nil {
			labels = map[string]string{}
		}
		labels[shardLabel] = want
		delete(labels, drainLabel)
	}
	obj.SetLabels(labels)
	return s.Update(obj)
}
