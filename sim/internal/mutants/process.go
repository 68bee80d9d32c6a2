// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/sim"
)

// asManager returns an operator that consists of one manager: in virtual time, or, without a
// simulated process, of this process, on the cluster of KUBECONFIG.
func asManager(setup func(mgr ctrl.Manager, p *sim.Process) error) func(context.Context, *sim.Process) error {
	return func(ctx context.Context, p *sim.Process) error {
		mgr, err := newManager(p)
		if err != nil {
			return err
		}
		if err := setup(mgr, p); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// shorten makes operators poll as often as it can be waited for in real time.
func shorten() { poll, patience = time.Second, time.Second }

func newManager(p *sim.Process) (ctrl.Manager, error) {
	if p != nil {
		return ctrl.NewManager(p.Config(), p.ManagerOptions())
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	logger := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	return ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Logger: logger, Metrics: server.Options{BindAddress: "0"}})
}

// inventory is what an operator knows of a system outside the cluster.
type inventory interface {
	Create(ctx context.Context, creation sim.Creation) (sim.Resource, error)
	Get(ctx context.Context, id string) (sim.Resource, error)
	FindByTag(ctx context.Context, key, value string) ([]sim.Resource, error)
	Update(ctx context.Context, id string, spec map[string]string) error
	Delete(ctx context.Context, id string) error
}

func bucketsOf(mgr ctrl.Manager, p *sim.Process) inventory {
	if p != nil {
		return p.External("buckets")
	}
	return configMaps{mgr.GetClient(), mgr.GetAPIReader()}
}

// configMaps are the system of a process: a bucket is a ConfigMap that no object owns, so that
// calls are writes of the process.
type configMaps struct {
	client.Writer
	live client.Reader
}

const (
	bucketLabel = "bucket"
	inNamespace = "default"
)

// errorOf returns the error of a call for that of a request.
func errorOf(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return sim.ErrNotFound
	case apierrors.IsAlreadyExists(err):
		return sim.ErrExists
	case apierrors.IsTooManyRequests(err), apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", sim.ErrThrottled, err)
	}
	return fmt.Errorf("%w: %w", sim.ErrUnavailable, err)
}

func resourceOf(c *corev1.ConfigMap) sim.Resource {
	return sim.Resource{ID: c.Name, Name: c.Name, Tags: c.Annotations, Spec: c.Data}
}

// inName keeps what may be in the name of an object.
func inName(r rune) rune {
	if r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return -1
}

func bucketNamed(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inNamespace, Name: name, Labels: map[string]string{bucketLabel: "yes"}}}
}

// Create creates a bucket. One that a token has created before is returned.
func (s configMaps) Create(ctx context.Context, creation sim.Creation) (sim.Resource, error) {
	made := bucketNamed(creation.Name)
	if creation.Token != "" {
		made.Name = "bucket-" + strings.ToLower(strings.Map(inName, creation.Token))
	}
	if made.Name == "" {
		made.GenerateName = "bucket-"
	}
	made.Annotations, made.Data = creation.Tags, creation.Spec
	err := errorOf(s.Writer.Create(ctx, made))
	if creation.Token != "" && errors.Is(err, sim.ErrExists) {
		return s.Get(ctx, made.Name)
	}
	return resourceOf(made), err
}

// Get returns a bucket.
func (s configMaps) Get(ctx context.Context, id string) (sim.Resource, error) {
	c, err := s.get(ctx, id)
	return resourceOf(c), err
}

// get returns a bucket, and not what has its name and is none.
func (s configMaps) get(ctx context.Context, id string) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{}
	err := errorOf(s.live.Get(ctx, client.ObjectKey{Namespace: inNamespace, Name: id}, c))
	if err == nil && c.Labels[bucketLabel] == "" {
		err = fmt.Errorf("%w: the name is taken", sim.ErrUnavailable)
	}
	return c, err
}

// FindByTag returns the buckets with a tag.
func (s configMaps) FindByTag(ctx context.Context, key, value string) ([]sim.Resource, error) {
	all, found := &corev1.ConfigMapList{}, []sim.Resource(nil)
	err := errorOf(s.live.List(ctx, all, client.InNamespace(inNamespace), client.HasLabels{bucketLabel}))
	for i := range all.Items {
		if all.Items[i].Annotations[key] == value {
			found = append(found, resourceOf(&all.Items[i]))
		}
	}
	return found, err
}

// Update changes a bucket.
func (s configMaps) Update(ctx context.Context, id string, spec map[string]string) error {
	c, err := s.get(ctx, id)
	if err != nil {
		return err
	}
	c.Data = spec
	return errorOf(s.Writer.Update(ctx, c))
}

// Delete deletes a bucket.
func (s configMaps) Delete(ctx context.Context, id string) error {
	c, err := s.get(ctx, id)
	if err != nil {
		return err
	}
	return errorOf(deleteThis(ctx, s.Writer, c))
}
