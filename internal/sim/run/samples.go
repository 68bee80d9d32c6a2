// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	var refused []error
	patience := retryFor
	for _, manifest := range r.manifests {
		err := r.cluster.apply(applying, manifest, r.Namespace, &patience, st.say)
		switch {
		case errors.Is(context.Cause(applying), ErrOperatorEnded):
			return r.operatorEnded()
		case applying.Err() != nil:
			return context.Cause(applying)
		case err != nil:
			refused = append(refused, err)
			continue
		}
		obj := manifest.Object
		names = append(names, fmt.Sprintf("%s %s", obj.GetKind(), strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")))
	}
	if len(refused) > 0 {
		return samplesRefused(refused, len(r.manifests))
	}
	st.done(summary(names))
	return nil
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
