// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// outline is what the versions of a definition are compiled from.
type outline struct {
	source   *apiextensionsv1.CustomResourceDefinition
	versions []*Version

	once sync.Once
	err  error
}

// Outline returns a definition that is neither checked nor compiled: [Version.Compile] does that,
// and has to be called before what depends on a schema. Most kinds of an operator are not used by a
// test of it. The source must not be modified any more.
func Outline(source *apiextensionsv1.CustomResourceDefinition) *Definition {
	d := newDefinition(source)
	o := &outline{source: source, versions: d.Versions}
	for _, v := range d.Versions {
		v.outline = o
	}
	return d
}

// Compile compiles all versions of the definition of an [Outline], once, and returns what is wrong
// with it. It does nothing for other definitions, and may be called concurrently.
func (v *Version) Compile() error {
	if v.outline == nil {
		return nil
	}
	v.outline.once.Do(v.outline.compile)
	return v.outline.err
}

func (o *outline) compile() {
	compiled, errs := Compile(o.source)
	if len(errs) > 0 {
		o.err = errs.ToAggregate()
		return
	}
	for i, v := range compiled.Versions {
		o.versions[i].schemas = v.schemas
	}
}
