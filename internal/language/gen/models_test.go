// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

const (
	goldenPath = "github.com/ctrlkit/ctrlkit/internal/language/gen/golden"
	apisPath   = "github.com/ctrlkit/ctrlkit/internal/language/gen/testdata/apis/"
)

// The kinds of the models.
var (
	shop      = inPackage("golden", kindIn("shop.example.com", goldenPath, "Shop"))
	region    = inPackage("golden", clusterScoped(kindIn("shop.example.com", goldenPath, "Region")))
	depot     = kindIn("depot.example.com", apisPath+"east/depot/v1", "Depot")
	westDepot = kindIn("west.example.com", apisPath+"west/depot/v1", "Depot")
	job       = kindIn("batch", "k8s.io/api/batch/v1", "Job")
	secret    = kindIn("", "k8s.io/api/core/v1", "Secret")
	configMap = kindIn("", "k8s.io/api/core/v1", "ConfigMap")
	pod       = kindIn("", "k8s.io/api/core/v1", "Pod")
	route     = model.Kind{
		Group: "traffic.example.com", Version: "v1", Kind: "Route", Namespaced: true,
		Package: model.UnstructuredPackage, PackageName: "unstructured", Type: "Unstructured", List: "UnstructuredList",
	}
	namespace = clusterScoped(kindIn("", "k8s.io/api/core/v1", "Namespace"))
)

func kindIn(group, path, kind string) model.Kind {
	return model.Kind{Group: group, Version: "v1", Kind: kind, Package: path, PackageName: "v1", Type: kind, List: kind + "List", Namespaced: true}
}

func clusterScoped(kind model.Kind) model.Kind {
	kind.Namespaced = false
	return kind
}

func inPackage(name string, kind model.Kind) model.Kind {
	kind.PackageName = name
	return kind
}

// value makes a value of parts: text, or a reference made by one of the functions below.
func value(parts ...any) model.Value {
	var v model.Value
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			v.Parts = append(v.Parts, model.Part{Literal: part})
		case *model.Ref:
			v.Parts = append(v.Parts, model.Part{Ref: part})
		}
	}
	return v
}

// ref refers to a string of the target. A question mark after a field marks a pointer:
// Spec.Ref?.Name
func ref(path string) *model.Ref { return refAs(path, model.TextString) }

func refAs(path string, text model.Text) *model.Ref {
	return &model.Ref{Source: "target." + strings.ReplaceAll(path, "?", ""), Path: steps(path), Text: text}
}

// optional gives a reference a question mark.
func optional(ref *model.Ref) *model.Ref {
	ref.Source, ref.Optional = ref.Source+"?", true
	return ref
}

// or gives a reference a default.
func or(ref *model.Ref, parts ...any) *model.Ref {
	v := value(parts...)
	ref.Source, ref.Default = ref.Source+"?default", &v
	return ref
}

// key makes a reference to a map one to what it has for a key.
func key(ref *model.Ref, key string) *model.Ref {
	ref.Source, ref.Path = ref.Source+"["+key+"]", append(ref.Path, model.Step{Field: key, MapKey: true})
	return ref
}

func steps(path string) []model.Step {
	var all []model.Step
	for field := range strings.SplitSeq(path, ".") {
		field, each := strings.CutSuffix(field, "[]")
		name, pointer := strings.CutSuffix(field, "?")
		all = append(all, model.Step{Field: name, Pointer: pointer, Each: each})
	}
	return all
}

// A stateOption is a line in the declaration of a state.
type stateOption func(*model.State)

func one(name string, kind model.Kind, options ...stateOption) *model.State {
	st := &model.State{Name: name, Kind: kind, Namespace: model.Namespace{Mode: model.TargetNamespace}}
	if !kind.Namespaced {
		st.Namespace.Mode = model.NoNamespace
	}
	for _, option := range options {
		option(st)
	}
	return st
}

func list(name string, kind model.Kind, options ...stateOption) *model.State {
	st := one(name, kind, options...)
	st.List = true
	return st
}

func named(parts ...any) stateOption {
	v := value(parts...)
	return func(st *model.State) { st.ObjectName = &v }
}

func label(key string, parts ...any) stateOption {
	return func(st *model.State) {
		st.Labels = append(st.Labels, model.Selector{Key: key, Value: value(parts...)})
	}
}

func field(key, path string, text model.Text, parts ...any) stateOption {
	return func(st *model.State) {
		st.Fields = append(st.Fields, model.Selector{Key: key, Path: steps(path), Text: text, Value: value(parts...)})
	}
}

func controlledBy(parts ...any) stateOption {
	return func(st *model.State) {
		st.Fields = append(st.Fields, model.Selector{Key: ".metadata.controller", ControllerField: true, Value: value(parts...)})
	}
}

func in(parts ...any) stateOption {
	v := value(parts...)
	return func(st *model.State) { st.Namespace = model.Namespace{Mode: model.NamedNamespace, Value: &v} }
}

func everywhere(st *model.State) { st.Namespace = model.Namespace{Mode: model.AllNamespaces} }

func owned(st *model.State) { st.Owned = model.OwnershipController }

func manager(name string, target model.Kind, states []*model.State, actions ...*model.Action) *model.Manager {
	return &model.Manager{Name: name, Target: target, States: states, Actions: actions}
}

func action(name string, states ...*model.State) *model.Action {
	return &model.Action{Name: name, States: states}
}

func packageOf(name string, documents ...*model.Document) *model.Package {
	return &model.Package{Name: name, Path: "example.com/" + name, Documents: documents}
}

func document(file string, managers ...*model.Manager) *model.Document {
	return &model.Document{File: file, Managers: managers}
}

// emptyModel has neither states nor actions.
func emptyModel() *model.Package {
	return packageOf("empty", document("binds.ctrlkit"), document("empty.ctrlkit", manager("Empty", shop, nil)))
}

// singleModel names objects in literal namespaces: of the kinds in the first manager nothing else is
// read, of those in the second one too much.
func singleModel() *model.Package {
	return packageOf("single", document("single.ctrlkit",
		manager("Single", shop, []*model.State{
			one("settings", secret, named("set", "tings"), in("kube-system"), owned), list("settingsAgain", secret, named("settings"), in("kube-system")),
			one("elsewhere", secret, in("elsewhere"), field(fieldName, "Name", model.TextString, "other")),
			one("place", namespace, named("default")), one("depot", depot, named("x"), in("a")), one("job", job, named("x"), in("a")),
		}, action("Look")),
		manager("Wide", shop, []*model.State{
			one("sameNamespace", depot, named("y"), in("a")), list("jobs", job),
			one("target", shop, named("x"), in("a")), one("byReference", configMap, named(ref("Name")), in("a")),
			one("inTheTargetsNamespace", pod, named("x")), one("everywhere", westDepot, named("x"), everywhere),
		}, action("Look"))))
}

// nastyModel has names that clash with those that the generator would like to use, and states that
// the checker rejects: the generated code does not rely on the checker.
func nastyModel() *model.Package {
	var states []*model.State
	for _, name := range []string{
		"type", "func", "range", "err", "ctx", "logger", "s", "m", "opts", "impl", "state", "client", "corev1", "fmt", "ctrlkit", "string",
		"nil", "error", "target", "object", "jobs", "jobsErr", "readJobs", "getJobs", "Reader", "list", "obj", "selection", "PVCs", "éclair",
	} {
		states = append(states, one(name, configMap, named("x")))
	}
	states = append(states, list("lists", configMap, controlledBy(ref("Name"))), one("selectTarget", secret, named("x")),
		list("byNamespaceField", configMap, everywhere, field(".metadata.namespace", "Namespace", model.TextString, ref("Spec.Place"))),
		one("quotes", configMap, label("app", `say "hi"`), label("path", "`a\\b`")),
		list("depots", depot), list("westDepots", westDepot, in("fixed")),
	)
	actions := []*model.Action{action("Everything", states...), action("state"), action("impl", states[0]), action("logger"), action("String")}
	actions[0].Doc = []string{"go:generate rm -rf", "+build ignore", "", "   indented", "*/ not the end // of it"}
	m := manager("nasty", shop, states, actions...)
	m.Doc = []string{"Deprecated: never use it."}
	return packageOf("nasty", document("a.b-c_linux_test.ctrlkit", m),
		document("linux.ctrlkit", manager("Nasty2", shop, []*model.State{list("x", configMap)})))
}
