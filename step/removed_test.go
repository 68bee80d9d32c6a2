// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/step"
)

// People take our finalizer off objects, at random moments of their lives, while most cleanups fail
// at first: no reconcile that begins afterwards cleans one up. Beside them are as many that are
// left alone, and all of these are cleaned up.
func testRemovedByHand(t *testing.T, plane *controlplane.ControlPlane) {
	objects := *racePairs
	config := plane.Config()
	config.QPS = -1
	people := &people{user: newRaceUser(t, plane), removed: make(map[types.UID]time.Time), cleaned: make(map[types.UID]bool)}
	namespace := newRaceNamespace(t, people.user)
	stop := startRaceOperator(t, config, namespace, step.Options[*corev1.ConfigMap]{Name: "removed"}, people.step())
	seed := uint64(time.Now().UnixNano())
	t.Log("seed ", seed)
	var all sync.WaitGroup
	for i := range 2 * objects {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("object-", i)}}
		all.Go(func() {
			if err := people.live(t.Context(), obj, random, i < objects); err != nil {
				t.Errorf("%s: %v", obj.Name, err)
			}
		})
	}
	all.Wait()
	stop()
	people.mu.Lock()
	defer people.mu.Unlock()
	none(t, "people.late", people.late)
	if len(people.removed) < objects/2 {
		t.Errorf("only %d of %d finalizers were removed: not much was tested", len(people.removed), objects)
	}
	if got := len(people.cleaned) - people.early; got < objects {
		t.Errorf("%d of %d objects that were left alone were cleaned up", got, objects)
	}
	t.Logf("%d finalizers removed by hand (%d of them after a cleanup had passed), %d cleanups began afterwards; %d other objects cleaned up",
		len(people.removed), people.early, len(people.late), len(people.cleaned)-people.early)
}

// people is what people do, and what the operator does with their objects.
type people struct {
	user client.Client

	mu      sync.Mutex // for all below
	removed map[types.UID]time.Time
	cleaned map[types.UID]bool
	late    []string
	early   int
}

// live is the life of an object: it is created and deleted, and if remove is true our finalizer is
// removed at a random moment. It returns when the object is gone.
func (p *people) live(ctx context.Context, obj *corev1.ConfigMap, random *rand.Rand, remove bool) error {
	if err := p.user.Create(ctx, obj); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := p.user.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return slices.Contains(obj.Finalizers, raceFinalizer), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the finalizer: %w", err)
	}
	deletion := time.Duration(random.Int64N(int64(time.Second)))
	removal := make(chan error, 1)
	if remove {
		after := time.Duration(random.Int64N(int64(2 * time.Second)))
		go func() {
			time.Sleep(after)
			removal <- p.remove(ctx, obj)
		}()
	} else {
		removal <- nil
	}
	time.Sleep(deletion)
	if err := p.user.Delete(ctx, obj.DeepCopy()); err != nil {
		return err
	}
	if err := <-removal; err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := p.user.Get(ctx, client.ObjectKeyFromObject(obj), &corev1.ConfigMap{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// remove takes our finalizer off, and notes when that was done.
func (p *people) remove(ctx context.Context, obj *corev1.ConfigMap) error {
	for {
		var now corev1.ConfigMap
		if err := p.user.Get(ctx, client.ObjectKeyFromObject(obj), &now); err != nil {
			return client.IgnoreNotFound(err)
		}
		if !slices.Contains(now.Finalizers, raceFinalizer) {
			return nil // it was cleaned up
		}
		now.Finalizers = nil
		err := p.user.Update(ctx, &now)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.removed[now.UID] = time.Now()
			if p.cleaned[now.UID] {
				p.early++
			}
		}
		return err
	}
}

// Name, Do and Cleanup make it the step of its operator.
func (p *people) step() step.Step[*corev1.ConfigMap] {
	return step.Step[*corev1.ConfigMap]{Name: "Keep", Do: p.do, Cleanup: p.cleanup}
}

func (p *people) do(context.Context, *step.Request[*corev1.ConfigMap]) error {
	return nil
}

func (p *people) cleanup(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if removed, ok := p.removed[req.Object.UID]; ok && req.Now.After(removed) {
		p.late = append(p.late, req.Object.Name)
	}
	if deleted := req.Object.DeletionTimestamp; deleted != nil && time.Since(deleted.Time) < 1500*time.Millisecond {
		return errors.New("not yet")
	}
	p.cleaned[req.Object.UID] = true
	return nil
}
