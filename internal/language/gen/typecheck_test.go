// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// loadedImporter imports what generated code imports, with types that were loaded once.
type loadedImporter map[string]*types.Package

func (l loadedImporter) Import(path string) (*types.Package, error) {
	if p, ok := l[path]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("generated code imports %s, which the test did not load", path)
}

func newLoadedImporter(t *testing.T, kinds []model.Kind) loadedImporter {
	t.Helper()
	paths := []string{"github.com/go-logr/logr"}
	for _, path := range ownImports {
		paths = append(paths, path)
	}
	for _, kind := range kinds {
		paths = append(paths, kind.Package)
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Mode:    packages.NeedName | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports | packages.NeedExportFile,
	}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	importer := loadedImporter{}
	packages.Visit(loaded, nil, func(p *packages.Package) { importer[p.PkgPath] = p.Types })
	return importer
}

// nastyNames are identifiers that collide with something, and a few that do not.
var nastyNames = []string{
	"a", "A", "b", "err", "ctx", "logger", "s", "m", "opts", "impl", "state", "State", "client", "builder", "errors", "strconv", "fmt",
	"type", "func", "string", "nil", "error", "target", "Target", "object", "Object", "aErr", "readA", "getA", "reader", "Reader", "list", "obj",
	"selection", "getter", "name", "namespace", "index", "Index", "select", "selectA", "shopv1", "corev1", "v1", "x_y", "É", "PVCs",
}

// drawnValues are values with references of all forms.
func drawnValues() *rapid.Generator[model.Value] {
	return rapid.SampledFrom([]model.Value{
		value("text"), value("text"), value(`quo"te`), value(ref("Name")), value(ref("Spec.SecretName"), "-", ref("Namespace")),
		value(ref("Spec.Ref?.Next?.Name")), value("n", refAs("Spec.Replicas?", model.TextInt)), value(refAs("Spec.Size", model.TextUint)),
		value(refAs("Spec.Flag?", model.TextBool)), value(refAs("Spec.Hours", model.TextStringer)), value(refAs("Spec.TierRef?", model.TextConvert)),
		value(optional(ref("Spec.SecretName"))), value("n", optional(refAs("Spec.Replicas?", model.TextInt))), value(optional(refAs("Spec.TierRef?", model.TextConvert))),
		value(optional(refAs("Spec.Hours", model.TextStringer))),
		value(or(ref("Spec.Ref?.Next?.Name"), ref("Name"))), value(or(refAs("Spec.Replicas?", model.TextInt), "text"), "-", or(ref("Spec.Place"), "x")),
		value(key(ref("Labels"), "app")), value(or(key(ref("Annotations"), "x_y"), ref("Spec.SecretName"))), value(optional(key(ref("Labels"), "tier"))),
	})
}

// drawState draws a random state.
func drawState(t *rapid.T, name string, kinds []model.Kind) *model.State {
	values := drawnValues()
	conditions := rapid.SampledFrom([]*model.Ref{ref("Spec.Place"), or(refAs("Spec.TierRef?", model.TextConvert), "Tier"), optional(ref("Spec.Ref?.Next?.Name"))})
	elements := rapid.SampledFrom([]model.Value{
		value(ref("OwnerReferences[].Name"), "-", ref("Spec.Ref?.Next?.Name")), value(refAs("OwnerReferences[].Controller?", model.TextBool)),
		value("x", ref("Finalizers[]"), ref("Name")),
	})
	st := one(name, rapid.SampledFrom(kinds).Draw(t, "kind"))
	st.List = rapid.Bool().Draw(t, "list")
	st.Owned = rapid.SampledFrom([]model.Ownership{model.OwnershipNone, model.OwnershipController, model.OwnershipAny}).Draw(t, "owned")
	if rapid.Bool().Draw(t, "named") {
		v := values.Draw(t, "name")
		if st.List && rapid.Bool().Draw(t, "elements") {
			v = elements.Draw(t, "element")
		}
		st.ObjectName = &v
	}
	ofOwners := st.ObjectName != nil && len(st.ObjectName.Elements()) > 0 && st.ObjectName.Elements()[0].Field == "OwnerReferences"
	for _, family := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"kind", "group"}), 0, 2, rapid.ID).Draw(t, "conditions") {
		v := value(conditions.Draw(t, "condition"))
		if ofOwners {
			v = value(or(ref("OwnerReferences[].Kind"), "Kind"))
		}
		st.Conditions = append(st.Conditions, model.Selector{Key: family, Value: v})
	}
	if st.Kind.Namespaced {
		switch rapid.IntRange(0, 2).Draw(t, "place") {
		case 1:
			if st.ObjectName == nil || st.ObjectName.Elements() == nil {
				everywhere(st)
			}
		case 2:
			v := values.Draw(t, "namespace")
			if ofOwners && rapid.Bool().Draw(t, "namespace of elements") {
				v = value(or(ref("OwnerReferences[].APIVersion"), ref("Name")))
			}
			st.Namespace = model.Namespace{Mode: model.NamedNamespace, Value: &v}
		}
	}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"app", "example.com/b", "c.d"}), 0, 3, rapid.ID).Draw(t, "labels") {
		st.Labels = append(st.Labels, model.Selector{Key: key, Value: values.Draw(t, "label")})
	}
	requirements := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.Requirement {
		r := model.Requirement{Key: "example.com/c", Operator: rapid.SampledFrom([]string{"in", "notin", "!=", "=", "exists", "!"}).Draw(t, "operator")}
		if r.Operator != "exists" && r.Operator != "!" {
			r.Values = rapid.SliceOfN(values, 1, 3).Draw(t, "values")
		}
		return r
	}), 0, 2)
	st.Where, st.Annotations = requirements.Draw(t, "where"), requirements.Draw(t, "annotations")
	drawFields(t, st, values)
	return st
}

// drawFields draws selectors of fields.
func drawFields(t *rapid.T, st *model.State, values *rapid.Generator[model.Value]) {
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{fieldName, fieldNamespace, ".metadata.controller", ".metadata.generateName"}), 0, 3, rapid.ID).Draw(t, "fields") {
		selector := model.Selector{Key: key, Path: steps("GenerateName"), Text: model.TextString, Value: values.Draw(t, "field")}
		selector.ControllerField = key == ".metadata.controller"
		if st.Kind.Unstructured() {
			selector.Path = []model.Step{{Field: "metadata", Key: true}, {Field: "generateName", Key: true}}
		}
		if rapid.Bool().Draw(t, "with an operator") {
			st.FieldWhere = append(st.FieldWhere, model.FieldRequirement{Field: selector, Operator: "in", Values: []model.Value{selector.Value, values.Draw(t, "other")}})
			continue
		}
		st.Fields = append(st.Fields, selector)
	}
}

func drawManager(t *rapid.T, name string, kinds []model.Kind) *model.Manager {
	unique := func(name string) string { return exported(name) }
	target := rapid.SampledFrom([]model.Kind{shop, region, route}).Draw(t, "target")
	m := manager(name, target, nil)
	for _, stateName := range rapid.SliceOfNDistinct(rapid.SampledFrom(nastyNames), 0, 6, unique).Draw(t, "states") {
		st := drawState(t, stateName, kinds)
		if single := slices.IndexFunc(m.States, func(st *model.State) bool { return !st.List }); single >= 0 && rapid.Bool().Draw(t, "refers") {
			refer(t, st, m.States[single])
		}
		m.States = append(m.States, st)
	}
	if target.Unstructured() {
		byKeys(m.States)
	}
	for _, actionName := range rapid.SliceOfNDistinct(rapid.SampledFrom(nastyNames), 0, 4, rapid.ID).Draw(t, "actions") {
		if token.IsKeyword(actionName) {
			actionName = exported(actionName)
		}
		if exported(actionName) != actionName {
			actionName = exported(actionName) + "Lower"
		}
		m.Actions = append(m.Actions, action(actionName, rapid.SliceOfNDistinct(rapid.SampledFrom(append([]*model.State{nil}, m.States...)), 0, 4, rapid.ID[*model.State]).
			Filter(func(states []*model.State) bool { return !containsNil(states) }).Draw(t, "given")...))
	}
	return m
}

// refer makes a state refer to another one.
func refer(t *rapid.T, st, to *model.State) {
	name := &model.Ref{Source: to.Name + ".Name", State: to, Path: steps("Name"), Text: model.TextString}
	if to.Kind.Unstructured() {
		name.Path = rapid.SampledFrom([][]model.Step{
			{{Field: "metadata", Key: true}, {Field: "uid", Key: true}},
			{{Field: "getName", Key: true}}, {{Field: "object", Key: true}}, {{Field: "unstructured", Key: true}}, {{Field: "deepCopyInto", Key: true}},
			{{Field: "spec", Key: true}, {Field: "a-b", Key: true}}, {{Field: "specAB", Key: true}}, {{Field: "8", Key: true}},
		}).Draw(t, "path")
	}
	v := value(name, rapid.SampledFrom([]any{"", "-x", ref("Name")}).Draw(t, "more"))
	switch rapid.IntRange(0, 4).Draw(t, "where") {
	case 4:
		if st.List && st.Kind.Namespaced && to.Kind.Namespaced {
			st.Owner, st.Owned = to, model.OwnershipController
		}
	case 0:
		if st.ObjectName != nil && st.ObjectName.Elements() != nil { // what is of the elements goes with their name
			st.Conditions = nil
			if of := st.Namespace.Value; of != nil && of.Elements() != nil {
				st.Namespace = model.Namespace{Mode: model.TargetNamespace}
			}
		}
		st.ObjectName = &v
	case 1:
		st.Labels = append(st.Labels, model.Selector{Key: "of", Value: v})
	case 2:
		st.Annotations = append(st.Annotations, model.Requirement{Key: "of", Operator: "=", Values: []model.Value{v}})
	case 3:
		if st.Kind.Namespaced {
			st.Namespace = model.Namespace{Mode: model.NamedNamespace, Value: &v}
		}
	}
}

// byKeys makes the references of states those to an unstructured target.
func byKeys(states []*model.State) {
	var change func(value *model.Value)
	change = func(value *model.Value) {
		if value == nil {
			return
		}
		value.Parts = slices.Clone(value.Parts)
		for i, part := range value.Parts {
			if part.Ref == nil || part.Ref.State != nil {
				continue
			}
			ref := *part.Ref
			ref.Path = nil
			names := strings.Split(ref.Source, ".")[1:]
			if names[0] != "Spec" {
				ref.Path = []model.Step{{Field: "metadata", Key: true}}
			}
			for _, name := range names {
				name, each := strings.CutSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "?default"), "?"), "[]")
				name, key, isMap := strings.Cut(strings.TrimSuffix(name, "]"), "[")
				ref.Path = append(ref.Path, model.Step{Field: unexported(name), Key: true, Each: each})
				if isMap {
					ref.Path = append(ref.Path, model.Step{Field: key, Key: true, MapKey: true})
				}
			}
			if ref.Default != nil {
				otherwise := *ref.Default
				change(&otherwise)
				ref.Default = &otherwise
			}
			value.Parts[i].Ref = &ref
		}
	}
	for _, st := range states {
		change(st.ObjectName)
		change(st.Namespace.Value)
		for _, r := range st.FieldWhere {
			for i := range r.Values {
				change(&r.Values[i])
			}
		}
		for _, selectors := range [][]model.Selector{st.Labels, st.Fields, st.Conditions} {
			for i := range selectors {
				change(&selectors[i].Value)
			}
		}
		for _, requirements := range [][]model.Requirement{st.Where, st.Annotations} {
			for _, r := range requirements {
				for i := range r.Values {
					change(&r.Values[i])
				}
			}
		}
	}
}

func containsNil(states []*model.State) bool {
	for _, st := range states {
		if st == nil {
			return true
		}
	}
	return false
}

// TestGeneratedCodeTypeChecks generates the Go of the golden models, and of random ones in which
// the checker would find no error, and type-checks it.
func TestGeneratedCodeTypeChecks(t *testing.T) {
	rings.Test(t, "runs the go command and the type checker")
	kinds := []model.Kind{shop, region, depot, westDepot, secret, configMap, pod, namespace, job, route}
	importer := newLoadedImporter(t, kinds)
	for _, pkg := range []*model.Package{emptyModel(), nastyModel(), singleModel()} {
		if err := typeCheck(pkg, importer); err != nil {
			t.Errorf("%s: %v", pkg.Name, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pkg := packageOf("drawn",
			document("one.ctrlkit", drawManager(t, "Manager", kinds), drawManager(t, "Other", kinds)),
			document("two.ctrlkit", drawManager(t, "Third", kinds)))
		if err := typeCheck(pkg, importer); err != nil {
			t.Fatal(err)
		}
	})
}

func typeCheck(pkg *model.Package, importer types.Importer) error {
	files, err := Generate(pkg)
	if err != nil {
		return err
	}
	skeletons, err := Skeletons(pkg)
	if err != nil {
		return fmt.Errorf("writing skeletons: %w", err)
	}
	fset := token.NewFileSet()
	var trees []*ast.File
	for _, file := range append(files, skeletons...) {
		tree, err := parser.ParseFile(fset, file.Name, file.Content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	if _, err := (&types.Config{Importer: importer}).Check(pkg.Path, fset, trees, nil); err != nil {
		return fmt.Errorf("%w\n%s", err, files[0].Content)
	}
	return nil
}
