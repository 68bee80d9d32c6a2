// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An unservedError says that the API server does not serve a kind.
type unservedError struct {
	kind string // as the user has written it
	near string // what may have been meant, empty if nothing is similar
}

func (e *unservedError) Error() string {
	text := fmt.Sprintf("finding out what %q is: the API server serves no such kind", e.kind)
	if e.near != "" {
		return fmt.Sprintf("%s; did you mean %q?", text, e.near)
	}
	return text + ": is its definition installed? kubectl api-resources lists the kinds there are"
}

// mappingOf resolves what the user calls kind: a kind, a plural, a short name, with or without
// group. It returns an unservedError if the API server serves no such kind.
func mappingOf(config *rest.Config, kind string) (*meta.RESTMapping, error) {
	if err := reach(context.Background(), config); err != nil { // discovery would retry, and wait each time
		return nil, fmt.Errorf("finding out what %q is: %w", kind, err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	gvr, gr := schema.ParseResourceArg(strings.ToLower(kind))
	if gvr != nil {
		if gvk, err := mapper.KindFor(*gvr); err == nil {
			return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := mapper.KindFor(gr.WithVersion(""))
	switch {
	case meta.IsNoMatchError(err):
		return nil, &unservedError{kind: kind, near: nearKind(cached, kind)}
	case err != nil:
		return nil, fmt.Errorf("finding out what %q is: %w", kind, err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// othersOf returns the resources of other groups that kind names as well, such as
// roles.rbac.authorization.k8s.io, for the user who has named no group.
func othersOf(config *rest.Config, kind string, taken schema.GroupResource) []string {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil || strings.Contains(kind, ".") {
		return nil
	}
	lists, _ := client.ServerPreferredResources() //nolint:errcheck // the kinds of some groups are better than none
	var others []string
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) //nolint:errcheck // what the server serves is valid
		for _, r := range list.APIResources {
			if gr := (schema.GroupResource{Group: gv.Group, Resource: r.Name}); gr != taken && slices.Contains(namesOf(r), strings.ToLower(kind)) {
				others = append(others, gr.String())
			}
		}
	}
	slices.Sort(others)
	return others
}

// nearKind returns the name of the kind that was probably meant, with its group if one was given;
// empty if there is none.
func nearKind(client discovery.ServerResourcesInterface, kind string) string {
	_, lists, _ := client.ServerGroupsAndResources() //nolint:errcheck // the kinds of some groups are better than none
	bare, _, qualified := strings.Cut(strings.ToLower(kind), ".")
	var names []string
	for _, list := range lists {
		group := list.GroupVersion[:max(0, strings.Index(list.GroupVersion, "/"))]
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") { // a subresource
				continue
			}
			for _, name := range namesOf(r) {
				if qualified && group != "" {
					name += "." + group
				}
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if near, ok := printable.Near(strings.ToLower(kind), names); ok {
		return near
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, bare+".") }); i >= 0 { // in another group
		return names[i]
	}
	return ""
}

// namesOf returns what a user may call the kind of a resource. Short names are not among them: they
// are similar to everything.
func namesOf(r metav1.APIResource) []string {
	names := []string{strings.ToLower(r.Kind)}
	if r.Name != names[0] {
		names = append(names, r.Name)
	}
	return names
}

// means reports whether a user can mean by kind the kind of an object that the operator knows. It
// is for when the API server does not answer: short names and unusual plurals are not known.
func means(kind string, object journal.Object) bool {
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: object.Group, Version: "v1", Kind: object.Kind})
	gvr, gr := schema.ParseResourceArg(strings.ToLower(kind))
	of := func(resource, group string) bool {
		return (resource == plural.Resource || resource == singular.Resource) && (group == "" || group == object.Group)
	}
	return of(gr.Resource, gr.Group) || gvr != nil && of(gvr.Resource, gvr.Group)
}
