// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options are the options of [New].
type Options struct {
	// Name is the field owner of what is installed: that of the operator. It is needed.
	Name string
	// Revision is the version of the operator, such as "1.4.0". A definition that was installed
	// with a later one is kept: while an operator is upgraded, an older replica may start once
	// more. Without a revision, a definition is kept if the cluster's has a version or a field that
	// the new one does not have.
	Revision string
	// ReplaceNewer replaces a definition in the cluster that is newer than the one to install, for a
	// deliberate downgrade. Otherwise it is kept, and reported in the log.
	ReplaceNewer bool
	// KeepStored keeps a version in which objects may be stored, by status.storedVersions, and that
	// a new definition does not have, without serving it. Otherwise that definition is refused, with
	// a [StoredVersionError] that says how to migrate: such a version can't be removed.
	KeepStored bool
	// Timeout limits an installation or a wait whose context has no deadline. Zero means a minute.
	Timeout time.Duration
}

const (
	// revisionAnnotation has the [Options].Revision with which a definition was last changed.
	revisionAnnotation = "crd.ctrlkit.dev/revision"
	hashAnnotation     = "crd.ctrlkit.dev/hash"
	defaultTimeout     = time.Minute
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// An Installer installs definitions in one cluster. It is safe for concurrent use.
//
// Its role needs get, create and patch for customresourcedefinitions, and get alone to wait. With
// list for the defined kinds, it also sees that these can be read.
type Installer struct {
	options   Options
	objects   dynamic.Interface
	discovery discovery.DiscoveryInterface
}

// New returns an installer. The error is that of wrong options, or of a wrong config.
func New(config *rest.Config, options Options) (*Installer, error) {
	if options.Name == "" {
		return nil, errors.New("install.Options.Name is empty: it is the field owner of the definitions")
	}
	if options.Revision != "" {
		if _, err := version.ParseGeneric(options.Revision); err != nil {
			return nil, fmt.Errorf("install.Options.Revision %q is no version of two numbers or more, such as 1.4.0: %w", options.Revision, err)
		}
	}
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Installer{options, objects, client}, nil
}

// Install applies definitions, and waits until all versions that they serve are served. It
// continues with the others when one is refused, and returns all failures. An unchanged definition
// costs no write.
func (i *Installer) Install(ctx context.Context, definitions ...*Definition) error {
	ctx, cancel := i.limit(ctx)
	defer cancel()
	var failures []error
	var installed []*Definition
	for _, d := range definitions {
		if err := i.install(ctx, d); err != nil {
			failures = append(failures, fmt.Errorf("installing CustomResourceDefinition %s: %w", d.Name, err))
			continue
		}
		installed = append(installed, d)
	}
	for _, d := range installed {
		if err := i.wait(ctx, d.Name, servedBy(d)); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

func (i *Installer) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, i.options.Timeout)
}

// install applies one definition. A conflict means that another replica was faster: what that has
// done is looked at.
func (i *Installer) install(ctx context.Context, d *Definition) error {
	if err := check(d); err != nil {
		return err
	}
	logger := log.FromContext(ctx).WithValues("definition", d.Name)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		current, err := i.get(ctx, d.Name)
		if err != nil {
			return err
		}
		if current != nil && !current.DeletionTimestamp.IsZero() {
			logger.Info("Waiting until the definition is deleted, to install it again")
		} else {
			p, err := i.plan(d, current)
			switch {
			case err != nil:
				return err
			case p.kept != "":
				logger.Info("Keeping a newer definition", "because", p.kept)
				return nil
			case p.wanted == nil:
				return nil
			}
			err = i.apply(ctx, p.wanted, current)
			if err == nil {
				logger.Info("Applied the definition", "created", current == nil)
				return nil
			}
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// get returns a definition, nil if there is none.
func (i *Installer) get(ctx context.Context, name string) (*Definition, error) {
	found, err := i.objects.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	d := &Definition{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, d)
}

// apply writes a definition, if the one in the cluster has not changed since it was read.
func (i *Installer) apply(ctx context.Context, wanted map[string]any, current *Definition) error {
	metadata := wanted["metadata"].(map[string]any)                      //nolint:errcheck // put there by contentOf
	metadata["resourceVersion"] = "1"                                    // no object has it: one that exists is a conflict
	if name := metadata["name"].(string); current != nil && name != "" { //nolint:errcheck // put there by contentOf
		metadata["resourceVersion"] = current.ResourceVersion
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	force := true
	_, err = i.objects.Resource(definitions).Patch(ctx, metadata["name"].(string), types.ApplyYAMLPatchType, body, //nolint:errcheck // put there by contentOf
		metav1.PatchOptions{FieldManager: i.options.Name, Force: &force})
	return err
}

// servedBy returns the versions that a definition serves.
func servedBy(d *Definition) []string {
	var names []string
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Served {
			names = append(names, d.Spec.Versions[i].Name)
		}
	}
	return names
}

const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
