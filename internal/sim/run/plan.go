// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// plan reads all input before anything is started, so that mistakes are reported at once.
func (r *runner) plan(ctx context.Context) (err error) {
	if r.project, err = FindProject(ctx, r.Package); err != nil {
		return err
	}
	if instead := r.project.instead; instead != "" {
		r.steps.remark("package", fmt.Sprintf("%s, because %s is no main package", instead, r.Package))
		r.Package = instead
	}
	if r.crdFiles, err = chosen(r.CRDs, r.project.CRDFiles); err != nil {
		return err
	}
	if r.definitions, err = ReadDefinitions(r.crdFiles); err != nil {
		return err
	}
	if len(r.CRDs) > 0 && len(r.definitions) == 0 {
		return fmt.Errorf("no custom resource definition in %s", strings.Join(r.CRDs, ", "))
	}
	if !r.NoSamples {
		if err := r.readSamples(); err != nil {
			return err
		}
	}
	r.kinds = builtinKinds()
	for _, definition := range r.definitions {
		r.kinds = append(r.kinds, definedKind(definition))
	}
	if err := r.planAccount(); err != nil {
		return err
	}
	return r.parseConditions()
}

// chosen returns the manifests in the given paths, or those that convention finds if no path is
// given.
func chosen(paths []string, convention func() ([]string, error)) ([]string, error) {
	if len(paths) == 0 {
		return convention()
	}
	var files []string
	for _, path := range paths {
		found, err := ManifestFiles(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

func (r *runner) readSamples() error {
	files, err := chosen(r.Samples, r.project.SampleFiles)
	if err != nil {
		return err
	}
	for _, file := range files {
		manifests, err := ReadManifests(file)
		if err != nil {
			return err
		}
		r.manifests = append(r.manifests, manifests...)
	}
	return nil
}

// parseConditions reads --until. Kinds that --watch adds are resolved only later, when there is a
// cluster; until then a condition refers to them by the given name.
func (r *runner) parseConditions() error {
	kinds := r.kinds
	for _, name := range r.Watch {
		if len(kindsNamed(name, kinds)) == 0 {
			kind, group, _ := strings.Cut(name, ".")
			kinds = append(kinds, Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Kind: kind}, Operators: true})
		}
	}
	for _, text := range r.Until {
		condition, err := ParseCondition(text, kinds)
		if err != nil {
			return err
		}
		r.conditions = append(r.conditions, condition)
		for i, kind := range r.kinds {
			if condition.path != nil && kind.answersTo(condition.kind) {
				r.kinds[i].Sparse = false // the field may be anywhere in the object
			}
		}
	}
	return nil
}
