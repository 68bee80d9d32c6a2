// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A WaitError says what a definition lacked when the time was over.
type WaitError struct {
	Definition string
	Lacks      string // `NamesAccepted is False: ShortNamesConflict: "w" is already in use`
	Err        error  // of the context
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("waiting for CustomResourceDefinition %s: %s: %v", e.Definition, e.Lacks, e.Err)
}

// Unwrap returns the error of the context.
func (e *WaitError) Unwrap() error { return e.Err }

// Wait waits until definitions that others install exist, are established, and until all versions
// that they serve can be read. It returns a [WaitError] for each that is not when the context is
// done, or after [Options].Timeout if that has no deadline.
func (i *Installer) Wait(ctx context.Context, names ...string) error {
	ctx, cancel := i.limit(ctx)
	defer cancel()
	var failures []error
	for _, name := range names {
		if err := i.wait(ctx, name, nil); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// wait waits for one definition, and these versions; nil are all that it serves.
func (i *Installer) wait(ctx context.Context, name string, versions []string) error {
	logger := log.FromContext(ctx).WithValues("definition", name)
	said := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		lacks, err := i.lacks(ctx, name, versions)
		if err != nil && ctx.Err() == nil {
			if !mayPass(err) {
				return fmt.Errorf("waiting for CustomResourceDefinition %s: %w", name, err)
			}
			lacks = err.Error()
		}
		if err == nil && lacks == "" {
			if said != "" {
				logger.Info("The definition is served")
			}
			return nil
		}
		if lacks != "" && lacks != said {
			said = lacks
			logger.Info("Waiting for the definition", "lacks", lacks)
		}
		if err := sleep(ctx, pause); err != nil {
			return &WaitError{name, said, err}
		}
	}
}

// mayPass reports whether an error may pass by itself.
func mayPass(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown // the connection
}

// lacks says what a definition lacks, "" if nothing.
func (i *Installer) lacks(ctx context.Context, name string, versions []string) (string, error) {
	d, err := i.get(ctx, name)
	switch {
	case err != nil:
		return "", err
	case d == nil:
		return "it does not exist", nil
	case !d.DeletionTimestamp.IsZero():
		return "it is being deleted", nil
	}
	if lacks := unestablished(d); lacks != "" {
		return lacks, nil
	}
	if versions == nil {
		versions = servedBy(d)
	}
	for _, v := range versions {
		if there := versionOf(d, v); there == nil || !there.Served {
			return "the definition in the cluster does not serve version " + v, nil
		}
		if lacks, err := i.unserved(ctx, d, v); lacks != "" || err != nil {
			return lacks, err
		}
	}
	return "", nil
}

// unestablished says which condition keeps a definition from being established.
func unestablished(d *Definition) string {
	lacks := "it is not established yet"
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return fmt.Sprintf("%s is False: %s: %s", c.Type, c.Reason, c.Message) // also if it was established with other names
		case c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue:
			return fmt.Sprintf("%s is True: %s: %s", c.Type, c.Reason, c.Message)
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			lacks = ""
		case c.Type == apiextensionsv1.Established:
			lacks = fmt.Sprintf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return lacks
}

// unserved says what keeps a version from being served: it has to be in discovery, and its objects
// have to be readable. An operator whose role does not let it list them takes discovery's word.
func (i *Installer) unserved(ctx context.Context, d *Definition, version string) (string, error) {
	gv := schema.GroupVersion{Group: d.Spec.Group, Version: version}
	found, err := i.discovery.ServerResourcesForGroupVersion(gv.String())
	switch {
	case apierrors.IsNotFound(err):
		return "discovery does not have " + gv.String() + " yet", nil
	case err != nil:
		return "", err
	case !slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == d.Spec.Names.Plural }):
		return "discovery does not have " + d.Spec.Names.Plural + " in " + gv.String() + " yet", nil
	}
	_, err = i.objects.Resource(gv.WithResource(d.Spec.Names.Plural)).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return "", nil
	case apierrors.IsNotFound(err):
		return "the API server does not serve " + gv.WithResource(d.Spec.Names.Plural).GroupResource().String() + " in " + version + " yet", nil
	}
	return "", err
}
