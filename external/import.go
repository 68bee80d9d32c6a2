// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/orphans"
)

// An Importer is a [Lister] that knows which object a resource would have.
type Importer[T client.Object] interface {
	Lister
	// Import returns an object with a name, and a spec with which the resource is as it should be:
	// what Observe then reports is UpToDate, but for the owner. [Describe] helps, and its errors are to be
	// returned. Labels may be made of tags of the resource. It changes nothing outside.
	Import(ctx context.Context, r Resource) (T, error)
}

// Errors of [Describe]. What an Importer returns them for is left out.
var (
	ErrAbsent = errors.New("the resource does not exist") // it was listed before
	ErrOwned  = errors.New("the resource has an owner")   // which the list did not have
)

// Describe observes a resource, and sets the fields of the spec of obj that are not set, if the
// client is a [LateInitializer].
func Describe[T client.Object](ctx context.Context, c Client[T], obj T, id string) error {
	seen, err := c.Observe(ctx, obj, id)
	if err != nil {
		return err
	}
	switch {
	case seen.State == Absent:
		return ErrAbsent
	case seen.Owner != "":
		return ErrOwned
	}
	if late, ok := c.(LateInitializer[T]); ok {
		late.LateInitialize(obj)
	}
	return nil
}

// Import returns manifests of the resources that no object has and no owner is stored with, by
// their ids. When they are applied, the operator adopts the resources: each has the
// [IDAnnotation]. What is stored with an owner is left out: it is an orphan, or belongs to an object
// of another cluster.
//
//   - Objects returns all objects of the kind, as for [Audit].
//   - Want chooses resources; nil stands for all.
//   - An error of one resource does not keep the others from being returned.
func Import[T client.Object](ctx context.Context, system Importer[T], objects func(ctx context.Context) ([]T, error), want func(Resource) bool) ([]T, error) {
	listed, err := system.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the resources: %w", err)
	}
	existing, err := objects(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects: %w", err)
	}
	taken := make(map[string]bool, len(existing))
	for _, obj := range existing {
		taken[IDOf(obj)] = true
	}
	slices.SortStableFunc(listed, func(a, b Resource) int { return strings.Compare(a.ID, b.ID) })
	var all []T
	var failed []error
	names := make(map[client.ObjectKey]string, len(listed))
	for _, r := range listed {
		if r.Owner != "" || taken[r.ID] || want != nil && !want(r) {
			continue
		}
		taken[r.ID] = true // a list may have it twice
		obj, err := system.Import(ctx, r)
		switch {
		case errors.Is(err, ErrAbsent) || errors.Is(err, ErrOwned):
			continue
		case err == nil:
			if mistakes := apivalidation.NameIsDNSSubdomain(obj.GetName(), false); len(mistakes) > 0 {
				err = fmt.Errorf("its object can't have the name %q: %s", obj.GetName(), mistakes[0])
			}
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.ID, err))
			continue
		}
		key := client.ObjectKeyFromObject(obj)
		if other, twice := names[key]; twice {
			failed = append(failed, fmt.Errorf("%s: its object is to be named %q, as that of %q", r.ID, key.Name, other))
			continue
		}
		names[key] = r.ID
		annotate(obj, IDAnnotation, r.ID)
		all = append(all, obj)
	}
	return all, errors.Join(failed...)
}

// ImportPath is where an operator serves what can be imported, below the address of its metrics.
const ImportPath = orphans.ImportPath

// A SystemImport is what can be imported from one external system, made by [ImportOf].
type SystemImport struct {
	name string
	run  func(ctx context.Context, c client.Client, namespace string, want func(Resource) bool) ([]map[string]any, error)
}

// ImportOf returns what can be imported from a system, whose name is for people: its address. System
// and objects are as for [Import], which is called when a user asks for it.
func ImportOf[T client.Object](name string, system Importer[T], objects func(ctx context.Context) ([]T, error)) SystemImport {
	return SystemImport{name, func(ctx context.Context, c client.Client, namespace string, want func(Resource) bool) ([]map[string]any, error) {
		found, failed := Import(ctx, system, objects, want)
		manifests := make([]map[string]any, 0, len(found))
		for _, obj := range found {
			gvk, err := c.GroupVersionKindFor(obj)
			if err != nil {
				return nil, err
			}
			if namespaced, err := c.IsObjectNamespaced(obj); err != nil {
				return nil, err
			} else if namespaced && obj.GetNamespace() == "" {
				obj.SetNamespace(namespace)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return nil, err
			}
			content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
			delete(content, "status")
			unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
			manifests = append(manifests, content)
		}
		return manifests, failed
	}}
}

// ServeImports serves what can be imported for "ctrlkit import", as [ServeAudits] serves audits.
func ServeImports(mgr manager.Manager, systems func(ctx context.Context) ([]SystemImport, error)) error {
	return mgr.AddMetricsServerExtraHandler(ImportPath, importHandler(mgr.GetClient(), systems))
}

func importHandler(c client.Client, systems func(ctx context.Context) ([]SystemImport, error)) http.Handler {
	return oneAtATime(func(ctx context.Context, r *http.Request) (any, error) {
		query := r.URL.Query()
		name := query.Get("name")
		matches := globOf(name).MatchString
		selector, err := labels.Parse(query.Get("selector"))
		if err != nil {
			return nil, fmt.Errorf("%w: the selector: %w", errQuestion, err)
		}
		all, err := systems(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding out which systems there are: %w", err)
		}
		report := &orphans.Imports{Systems: []orphans.Import{}}
		for _, system := range all {
			result := orphans.Import{Name: system.name}
			manifests, err := system.run(ctx, c, query.Get("namespace"), func(r Resource) bool {
				return name == "" || name == r.ID || matches(r.ID)
			})
			if err != nil {
				result.Error = err.Error()
			}
			for _, content := range manifests {
				if selector.Matches(labels.Set(labelsOf(content))) {
					result.Objects = append(result.Objects, content)
				}
			}
			report.Systems = append(report.Systems, result)
		}
		return report, nil
	})
}

// globOf returns the expression of a pattern in which * stands for any text and ? for a character:
// ids may have any others.
func globOf(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^(?s:" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern)) + ")$")
}

func labelsOf(content map[string]any) map[string]string {
	metadata, _ := content["metadata"].(map[string]any)
	found, _ := metadata["labels"].(map[string]any)
	all := make(map[string]string, len(found))
	for key, value := range found {
		all[key] = fmt.Sprint(value)
	}
	return all
}
