// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package restmapper

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A counter counts what it is asked for, and fails as often as it is to.
type counter struct {
	meta.RESTMapper
	asked, fails int
}

func (c *counter) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if c.asked++; c.fails > 0 {
		c.fails--
		return nil, errors.New("not yet")
	}
	return c.RESTMapper.RESTMapping(kind, versions...)
}

// A mapping is asked for once, errors and preferred versions each time, and what a caller does with
// its mapping is no other caller's.
func TestRemembering(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	all := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v2"}, kind.GroupVersion()})
	for _, version := range []string{"v1", "v2"} {
		all.Add(kind.GroupKind().WithVersion(version), meta.RESTScopeNamespace)
	}
	next := &counter{RESTMapper: all, fails: 1}
	mapper := Remembering(next)
	get := func(wantAsked int, wantVersion string, versions ...string) *meta.RESTMapping {
		t.Helper()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), versions...)
		if err != nil {
			t.Fatal(err)
		}
		if mapping.Resource.Resource != "shops" || mapping.GroupVersionKind.Version != wantVersion || next.asked != wantAsked {
			t.Errorf("got %s in %s, asked %d times, want shops in %s, %d times", mapping.Resource.Resource, mapping.GroupVersionKind.Version, next.asked, wantVersion, wantAsked)
		}
		return mapping
	}
	if _, err := mapper.RESTMapping(kind.GroupKind(), "v1"); err == nil {
		t.Error("the error is lost")
	}
	get(2, "v1", "v1").Resource.Resource = "changed"
	get(2, "v1", "v1")
	get(3, "v2", "v2")
	get(3, "v2", "v2")
	get(4, "v2")
	get(5, "v2")
	get(6, "v1", "v3", "v1")
	if _, err := mapper.RESTMapping(schema.GroupKind{Kind: "Other"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want no match", err)
	}
}

func BenchmarkRESTMapping(b *testing.B) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	all := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	all.Add(kind, meta.RESTScopeNamespace)
	mapper := Remembering(all)
	for b.Loop() {
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			b.Fatal(err)
		}
	}
}
