// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
)

// A SystemImport is what can be imported from one external system, made by [ImportOf].
type SystemImport struct {
	name string
	run  func(ctx context.Context, want func(Resource) bool, count *counter) ([]imported, *failures, error)
}

// ImportOf returns what can be imported from a system. Name is for people, its address, and what
// Calls.System returns for its objects. System and objects are as for [Import], which is called when a
// user asks for it. Its calls are limited as calls says, also those of the reconciles and of the
// import together: see [Calls.Shared].
func ImportOf[T client.Object](name string, system Importer[T], objects func(ctx context.Context) ([]Holder, error), calls Calls[T]) SystemImport {
	limits := newCalls(calls)
	return SystemImport{name, func(ctx context.Context, want func(Resource) bool, count *counter) ([]imported, *failures, error) {
		i := importing[T]{name: name, system: system, objects: objects, calls: limits}
		return i.run(ctx, want, count)
	}}
}

// ServeImports serves what can be imported for "ctrlkit import", as [ServeAudits] serves audits. It
// takes as long as the limits of the systems make it, and ends when the user does not wait any more.
func ServeImports(mgr manager.Manager, systems func(ctx context.Context) ([]SystemImport, error)) error {
	return localhost.Serve(mgr, orphans.ImportPath, importHandler(mgr.GetClient(), mgr.GetAPIReader(), systems))
}

func importHandler(c client.Client, live client.Reader, systems func(ctx context.Context) ([]SystemImport, error)) http.Handler {
	return oneAtATime("import", func(w http.ResponseWriter, r *http.Request) {
		q, err := questionOf(r)
		if err != nil {
			http.Error(w, "wrong question: "+err.Error(), http.StatusBadRequest)
			return
		}
		finding, cancel := context.WithTimeout(r.Context(), auditsTake)
		defer cancel()
		all, err := systems(finding)
		if err != nil {
			http.Error(w, fmt.Sprintf("finding out which systems there are: %v", err), http.StatusInternalServerError)
			return
		}
		slices.SortStableFunc(all, func(a, b SystemImport) int { return strings.Compare(a.name, b.name) })
		w.Header().Set("Content-Type", "application/json")
		m := manifests{question: q, client: c, live: live, systems: all, counts: make([]counter, len(all))}
		done := make(chan *orphans.Imports, 1)
		go func() { done <- m.report(r.Context()) }()
		m.send(w, done)
	})
}

// question is what a user wants to import.
type question struct {
	namespace string
	matches   func(id string) bool
	selector  labels.Selector
}

func questionOf(r *http.Request) (q question, err error) {
	query := r.URL.Query()
	q.namespace = query.Get("namespace")
	if mistakes := validation.IsDNS1123Label(q.namespace); q.namespace != "" && len(mistakes) > 0 {
		return q, fmt.Errorf("the namespace %q: %s", q.namespace, mistakes[0])
	}
	if q.selector, err = labels.Parse(query.Get("selector")); err != nil {
		return q, fmt.Errorf("the selector: %w", err)
	}
	name := query.Get("name")
	pattern := globOf(name)
	q.matches = func(id string) bool { return name == "" || name == id || pattern.MatchString(id) }
	return q, nil
}

// manifests is the answer to one question.
type manifests struct {
	question
	client  client.Client
	live    client.Reader // who else has a name must not come from a cache
	systems []SystemImport
	counts  []counter
	names   names
	listed  map[objectName]error // the kinds and namespaces whose names are known
}

// send writes how far it is, each second, and then what was found.
func (m *manifests) send(w http.ResponseWriter, done <-chan *orphans.Imports) {
	encoder, flusher := json.NewEncoder(w), http.NewResponseController(w)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case report := <-done:
			_ = encoder.Encode(report) //nolint:errcheck // an error means that the client has disconnected
			return
		case <-ticker.C:
			so := &orphans.Imports{Progress: &orphans.Progress{}}
			for n := range m.counts {
				so.Progress.Done += int(m.counts[n].done.Load())
				so.Progress.Of += int(m.counts[n].of.Load())
			}
			_ = encoder.Encode(so) //nolint:errcheck // as above
			_ = flusher.Flush()    //nolint:errcheck // as above
		}
	}
}

// report asks all systems, and makes manifests of what they have.
func (m *manifests) report(ctx context.Context) *orphans.Imports {
	type answer struct {
		found  []imported
		failed *failures
		err    error
	}
	answers := make([]answer, len(m.systems))
	concurrently(systemsAtOnce, len(m.systems), func(n int) {
		a := &answers[n]
		a.err = caught(func() (err error) {
			a.found, a.failed, err = m.systems[n].run(ctx, m.wants, &m.counts[n])
			return err
		})
	})
	report := &orphans.Imports{Systems: make([]orphans.Import, len(m.systems))}
	m.names, m.listed = make(names), make(map[objectName]error)
	var hints adoption
	for n, a := range answers {
		result := &report.Systems[n]
		result.Name = m.systems[n].name
		for _, f := range a.found {
			var content map[string]any
			err := caught(func() (err error) {
				content, err = m.of(ctx, result.Name, f)
				return err
			})
			switch {
			case err != nil:
				a.failed.add(f.from, err)
			case content != nil:
				result.Objects = append(result.Objects, content)
				hints.add(f.obj.GetNamespace(), f.from.ID)
			}
		}
		if a.err == nil {
			a.err = a.failed.err()
		}
		if a.err != nil {
			result.Error = a.err.Error()
		}
	}
	report.Adoptions = hints.all
	return report
}

// wants reports whether a resource may be what the user wants, before it is read.
func (m *manifests) wants(r Resource) bool {
	return m.matches(r.ID) && (r.Labels == nil || m.selector.Matches(labels.Set(r.Labels)))
}

// of returns the manifest of an object, nil if it is not selected.
func (m *manifests) of(ctx context.Context, system string, f imported) (map[string]any, error) {
	if !m.selector.Matches(labels.Set(f.obj.GetLabels())) {
		return nil, nil
	}
	gvk, err := m.client.GroupVersionKindFor(f.obj)
	if err != nil {
		return nil, err
	}
	namespaced, err := m.client.IsObjectNamespaced(f.obj)
	switch {
	case err != nil:
		return nil, err
	case !namespaced:
		f.obj.SetNamespace("")
	case f.obj.GetNamespace() == "":
		f.obj.SetNamespace(m.namespace)
	}
	if err := m.list(ctx, gvk, f.obj.GetNamespace()); err != nil {
		return nil, err
	}
	if err := m.names.give(gvk.GroupKind().String(), f.obj, system, f.from); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.obj)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return content, nil
}

// list finds out once which names the objects of a kind have in a namespace.
func (m *manifests) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string) error {
	of := objectName{kind: gvk.GroupKind().String()}
	of.Namespace = namespace
	if err, known := m.listed[of]; known {
		return err
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := m.live.List(ctx, all, client.InNamespace(namespace))
	if err != nil {
		err = fmt.Errorf("finding out which names are taken: %w", err)
	}
	m.listed[of] = err
	for i := range all.Items {
		m.names[nameOf(of.kind, &all.Items[i])] = "an object that exists"
	}
	return err
}

// adoption is what the owners of namespaces have to allow, so that the objects there may adopt the
// resources. This is the one place that decides what "ctrlkit import" says about it: the line is
// printed by package internal/engine/orphans.
type adoption struct{ all []orphans.Adoption }

func (a *adoption) add(namespace, id string) {
	if namespace == "" {
		return // no annotation opens ids for objects without one
	}
	i := slices.IndexFunc(a.all, func(one orphans.Adoption) bool { return one.Namespace == namespace })
	if i < 0 {
		i = len(a.all)
		a.all = append(a.all, orphans.Adoption{Namespace: namespace})
	}
	if pattern := quoteGlob(id); !slices.Contains(a.all[i].Patterns, pattern) { // two systems may have it
		a.all[i].Patterns = append(a.all[i].Patterns, pattern)
	}
}
