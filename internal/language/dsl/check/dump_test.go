// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// dump writes a model as text that a person can read.
func dump(pkg *model.Package) string {
	var b strings.Builder
	if pkg == nil {
		return "no package\n"
	}
	fmt.Fprintf(&b, "package %s %q\n", pkg.Name, pkg.Path)
	for _, d := range pkg.Documents {
		fmt.Fprintf(&b, "document %s\n", d.File)
		for _, m := range d.Managers {
			dumpManager(&b, m)
		}
	}
	return b.String()
}

func dumpManager(b *strings.Builder, m *model.Manager) {
	fmt.Fprintf(b, "  manager %s for %s at %s, doc %q\n", m.Name, dumpKind(m.Target), m.Pos, m.Doc)
	for _, s := range m.States {
		list := "one"
		if s.List {
			list = "list"
		}
		fmt.Fprintf(b, "    state %s, %s of %s, owned %s, at %s, doc %q\n", s.Name, list, dumpKind(s.Kind), dumpOwned(s.Owned), s.Pos, s.Doc)
		if s.ObjectName != nil {
			fmt.Fprintf(b, "      name %s\n", dumpValue(*s.ObjectName))
		}
		fmt.Fprintf(b, "      in %s", modes[s.Namespace.Mode])
		if s.Namespace.Value != nil {
			fmt.Fprintf(b, " %s", dumpValue(*s.Namespace.Value))
		}
		b.WriteString("\n")
		if s.Owner != nil {
			fmt.Fprintf(b, "      owner %s\n", s.Owner.Name)
		}
		for _, c := range s.Conditions {
			fmt.Fprintf(b, "      only if %s = %s at %s\n", c.Key, dumpValue(c.Value), c.Pos)
		}
		for _, l := range s.Labels {
			fmt.Fprintf(b, "      label %s = %s at %s\n", l.Key, dumpValue(l.Value), l.Pos)
		}
		for i, r := range slices.Concat(s.Where, s.Annotations) {
			what := "label"
			if i >= len(s.Where) {
				what = "annotation"
			}
			var values []string
			for _, v := range r.Values {
				values = append(values, dumpValue(v))
			}
			fmt.Fprintf(b, "      %s %s %s %s at %s\n", what, r.Key, r.Operator, strings.Join(values, ", "), r.Pos)
		}
		for _, r := range s.FieldWhere {
			var values []string
			for _, v := range r.Values {
				values = append(values, dumpValue(v))
			}
			fmt.Fprintf(b, "      field %s %s %s at %s by %s %s\n", r.Field.Key, r.Operator, strings.Join(values, ", "), r.Field.Pos, dumpPath(r.Field.Path), texts[r.Field.Text])
		}
		for _, f := range s.Fields {
			fmt.Fprintf(b, "      field %s = %s at %s by %s %s controller %v\n", f.Key, dumpValue(f.Value), f.Pos, dumpPath(f.Path), texts[f.Text], f.ControllerField)
		}
	}
	for _, a := range m.Actions {
		var names []string
		for _, s := range a.States {
			names = append(names, s.Name)
		}
		fmt.Fprintf(b, "    action %s(%s) at %s, doc %q\n", a.Name, strings.Join(names, ", "), a.Pos, a.Doc)
	}
}

var modes = map[model.NamespaceMode]string{
	model.TargetNamespace: "the namespace of the target", model.NamedNamespace: "namespace",
	model.AllNamespaces: "all namespaces", model.NoNamespace: "no namespace",
}

var texts = map[model.Text]string{
	0: "-", model.TextString: "string", model.TextConvert: "convert", model.TextInt: "int", model.TextUint: "uint",
	model.TextBool: "bool", model.TextStringer: "stringer",
}

func dumpKind(k model.Kind) string {
	scope := "cluster"
	if k.Namespaced {
		scope = "namespaced"
	}
	return fmt.Sprintf("%q/%s/%s (%s %q.%s list %q, %s)", k.Group, k.Version, k.Kind, k.PackageName, k.Package, k.Type, k.List, scope)
}

func dumpValue(v model.Value) string {
	var parts []string
	for _, p := range v.Parts {
		if p.Ref == nil {
			parts = append(parts, fmt.Sprintf("%q", p.Literal))
		} else {
			parts = append(parts, fmt.Sprintf("%s by %s %s", p.Ref.Source, dumpPath(p.Ref.Path), texts[p.Ref.Text]))
			if p.Ref.Default != nil {
				parts[len(parts)-1] += " or " + dumpValue(*p.Ref.Default)
			}
		}
	}
	return "[" + strings.Join(parts, " + ") + "]"
}

func dumpPath(path []model.Step) string {
	var steps []string
	for _, s := range path {
		name := s.Field
		if s.Pointer {
			name = "*" + name
		}
		steps = append(steps, name)
	}
	return "<" + strings.Join(steps, ".") + ">"
}

func dumpOwned(owned model.Ownership) string {
	return map[model.Ownership]string{
		model.OwnershipNone: "no", model.OwnershipController: "as the controller", model.OwnershipAny: "by any reference",
	}[owned]
}
