// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// applySamples applies the samples. It returns early if the operator ends.
func (r *runner) applySamples(ctx context.Context) error {
	if r.NoSamples {
		return nil
	}
	st := r.steps.begin("samples", "applying")
	defer st.quit()
	if len(r.manifests) == 0 {
		st.skip("none: no config/samples beside or above the package; --samples names a file or directory")
		return nil
	}
	applying, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.operator.ended:
			cancel(ErrOperatorEnded)
		case <-applying.Done():
		}
	}()
	var names []string
	var refused, unfilled []error
	patience := retryFor
	for _, manifest := range r.manifests {
		waits := &patience
		skippable := manifest.placeholder && len(r.Samples) == 0 // the user has not named it
		if skippable && !defined(r.definitions, manifest.Object.GroupVersionKind().GroupKind()) {
			waits = new(time.Duration) // the kind is that of another operator, which is not here
		}
		err := r.cluster.apply(applying, manifest, r.Namespace, waits, st.say)
		switch {
		case errors.Is(context.Cause(applying), ErrOperatorEnded):
			return r.operatorEnded()
		case applying.Err() != nil:
			return context.Cause(applying)
		case err != nil && skippable:
			unfilled = append(unfilled, err)
		case err != nil:
			refused = append(refused, err)
		default:
			obj := manifest.Object
			names = append(names, fmt.Sprintf("%s %s", obj.GetKind(), strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")))
		}
	}
	if len(refused) > 0 {
		return samplesRefused(refused, len(r.manifests))
	}
	if len(names) > 0 {
		st.done(summary(names))
	}
	if len(unfilled) > 0 {
		st.quit()
		r.steps.remark("samples", fmt.Sprintf("%d skipped: they say TODO(user) and are not filled in; --samples names others; the first: %v", len(unfilled), unfilled[0]))
	}
	return nil
}

// defined reports whether definitions have a kind.
func defined(all []*apiextensionsv1.CustomResourceDefinition, kind schema.GroupKind) bool {
	return slices.ContainsFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind
	})
}

// samplesRefused returns the error for samples that could not be applied.
func samplesRefused(refused []error, all int) error {
	if all == 1 || len(refused) == 1 {
		return refused[0]
	}
	return fmt.Errorf("%d of %d samples could not be applied:\n%w", len(refused), all, errors.Join(refused...))
}

// summary joins names, and counts those that are too many to read.
func summary(names []string) string {
	const enough = 4
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough-1], ", "), len(names)-enough+1)
}
