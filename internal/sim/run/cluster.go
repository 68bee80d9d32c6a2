// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
)

// fieldOwner is the name under which samples are applied.
const fieldOwner = "ctrlkit-run"

// retryFor is how long applying the samples, all together, is retried while the cluster is not
// ready for them: a kind may not be served yet, or the operator's webhook may not answer yet.
const (
	retryFor   = 30 * time.Second
	retryEvery = 250 * time.Millisecond
)

// cluster holds the clients of an API server.
type cluster struct {
	config    *rest.Config
	discovery discovery.DiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	seen      map[string]bool // namespaces that exist
}

func newCluster(config *rest.Config) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200
	config.UserAgent = fieldOwner
	config.WarningHandler = rest.NoWarnings{}
	c := &cluster{config: config, seen: make(map[string]bool)}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err == nil {
		c.discovery = discoverer
		c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
		c.dynamic, err = dynamic.NewForConfig(config)
	}
	if err == nil {
		c.metadata, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// answerFor is how long a cluster may take to answer the request for its version.
const answerFor = 10 * time.Second

// version asks the API server for its version, which also shows that it answers.
func (c *cluster) version() (string, error) {
	impatient := rest.CopyConfig(c.config)
	impatient.Timeout = answerFor
	client, err := discovery.NewDiscoveryClientForConfig(impatient)
	if err != nil {
		return "", fmt.Errorf("creating a client for %s: %w", c.config.Host, err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the cluster at %s for its version: %w", c.config.Host, err)
	}
	return version.GitVersion, nil
}

// installDefinitions creates or updates custom resource definitions and waits until all are served.
func (c *cluster) installDefinitions(ctx context.Context, list []*apiextensionsv1.CustomResourceDefinition) error {
	if err := definitions.Install(ctx, c.dynamic, list); err != nil {
		return fmt.Errorf("installing the custom resource definitions: %w", err)
	}
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	for _, definition := range list {
		err := retry(ctx, func() (bool, error) {
			current, err := c.dynamic.Resource(resource).Get(ctx, definition.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			established := conditionsOf(current.Object)["Established"]
			if established.status != "True" {
				return true, fmt.Errorf("not established: %s", established.text())
			}
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the custom resource definition %s: %w", definition.Name, err)
		}
	}
	c.mapper.Reset()
	return nil
}

// apply applies a manifest by server-side apply. It creates the namespace if it does not exist.
// While the cluster is not ready for the object, apply calls waiting with the reason and retries.
// It subtracts the time that it waits from patience, and stops when that is used up. Errors that a
// retry cannot clear are returned at once.
func (c *cluster) apply(ctx context.Context, manifest Manifest, namespace string, patience *time.Duration, waiting func(string)) error {
	obj := manifest.Object.DeepCopy()
	begun := *patience
	for {
		err := c.applyOnce(ctx, obj, namespace)
		switch {
		case err == nil:
			manifest.Object.SetNamespace(obj.GetNamespace())
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case mayPass(err, obj) && *patience > 0:
		default:
			if waited := begun - *patience; waited > 0 {
				err = fmt.Errorf("gave up after %v: %w", waited, err)
			}
			return fmt.Errorf("applying %s %s (%s): %w", obj.GetKind(), obj.GetName(), manifest.Where(), err)
		}
		if meta.IsNoMatchError(err) {
			c.mapper.Reset()
		}
		waiting(err.Error())
		select {
		case <-time.After(retryEvery):
			*patience -= retryEvery
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *cluster) applyOnce(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	gvk := obj.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(namespace)
		}
		if err := c.ensureNamespace(ctx, obj.GetNamespace()); err != nil {
			return err
		}
		resource = c.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}
	if obj.GetName() == "" {
		_, err = resource.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldOwner})
		return err
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
	return err
}

func (c *cluster) ensureNamespace(ctx context.Context, name string) error {
	if c.seen[name] {
		return nil
	}
	namespaces := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(name)
		_, err = namespaces.Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldOwner})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	c.seen[name] = true
	return nil
}

// mayPass reports whether an error of applying obj may clear when the cluster becomes ready.
func mayPass(err error, obj *unstructured.Unstructured) bool {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsConflict(err): // with a concurrent write, unless the manifest demands an old state
		return obj.GetResourceVersion() == "" && obj.GetUID() == ""
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err):
		return true
	case errors.As(err, &status):
		// Server-side apply answers 500 for a field that the schema does not have, and for a value
		// of another type.
		return status.Status().Code >= http.StatusInternalServerError && !strings.Contains(status.Status().Message, "failed to create typed patch object")
	default:
		return false
	}
}

// retry calls try until it reports that no other try is needed, retryFor has passed, or ctx ends.
// It returns the last error of try.
func retry(ctx context.Context, try func() (again bool, err error)) error {
	giveUp := time.After(retryFor)
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		again, err := try()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !again {
			return err
		}
		select {
		case <-ticker.C:
		case <-giveUp:
			return fmt.Errorf("gave up after %v: %w", retryFor, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// resolve returns the kind with the given name, for the top of the tree.
func (c *cluster) resolve(name string) (Kind, error) {
	mapping, err := c.mappingFor(name)
	if err != nil {
		return Kind{}, err
	}
	return Kind{GroupVersionKind: mapping.GroupVersionKind, Plural: mapping.Resource.Resource, Operators: true}, nil
}

func (c *cluster) mappingFor(name string) (*meta.RESTMapping, error) {
	gvr, gr := schema.ParseResourceArg(name)
	expander := restmapper.NewShortcutExpander(c.mapper, memory.NewMemCacheClient(c.discovery), nil)
	if gvr == nil {
		versionless := gr.WithVersion("")
		gvr = &versionless
	}
	if gvk, err := expander.KindFor(*gvr); err == nil {
		return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if gvk, err := expander.KindFor(gr.WithVersion("")); err == nil {
		return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	_, gk := schema.ParseKindArg(name)
	mapping, err := c.mapper.RESTMapping(gk)
	if err != nil {
		return nil, fmt.Errorf("looking for kind %q to watch: %w", name, err)
	}
	return mapping, nil
}
