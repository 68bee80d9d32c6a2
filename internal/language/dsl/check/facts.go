// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// Facts are what the source of an API package declares besides its types.
type Facts struct {
	// Group and Version are the API group and version that the package declares. HasGroup
	// distinguishes the core group, which is empty, from a package that declares none.
	Group, Version string
	HasGroup       bool
	// ClusterScoped holds the names of the types with a marker for cluster-scoped kinds.
	ClusterScoped map[string]bool
	// Resources holds, by the names of the types, the names of the resources that markers give.
	Resources map[string]string
	// Docs holds the descriptions of kinds from definitions. Those of Go types are in their source.
	Docs map[string]string
}

// ReadFacts reads the group from a variable GroupVersion or SchemeGroupVersion or from a marker
// +groupName, and the scopes from markers above the types.
func ReadFacts(files []*ast.File) Facts {
	facts := Facts{ClusterScoped: map[string]bool{}, Resources: map[string]string{}}
	constants := stringConstants(files)
	for _, file := range files {
		facts.readMarkers(file)
	}
	for _, file := range files {
		facts.readVariables(file, constants)
		facts.readScopes(file)
	}
	return facts
}

// readMarkers reads +groupName and +versionName.
func (f *Facts) readMarkers(file *ast.File) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if name, ok := strings.CutPrefix(text, "+groupName="); ok {
				f.Group, f.HasGroup = strings.Trim(name, `"`), true
			}
			if name, ok := strings.CutPrefix(text, "+versionName="); ok {
				f.Version = strings.Trim(name, `"`)
			}
		}
	}
}

// readVariables reads `GroupVersion = schema.GroupVersion{Group: ..., Version: ...}`. It
// understands literals and constants of the same package only; otherwise the markers count.
func (f *Facts) readVariables(file *ast.File, constants map[string]string) {
	eachValue(file, token.VAR, func(name string, value ast.Expr) {
		literal, ok := value.(*ast.CompositeLit)
		if !ok || name != "GroupVersion" && name != "SchemeGroupVersion" {
			return
		}
		for _, element := range literal.Elts {
			kv, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, _ := kv.Key.(*ast.Ident)
			text, ok := constantText(kv.Value, constants)
			switch {
			case !ok || key == nil:
			case key.Name == "Group":
				f.Group, f.HasGroup = text, true
			case key.Name == "Version":
				f.Version = text
			}
		}
	})
}

// readScopes reads markers from the comments between each type and the declaration before it: an
// empty line often separates the markers from the documentation.
func (f *Facts) readScopes(file *ast.File) {
	comments := file.Comments
	end := file.Name.End()
	for _, decl := range file.Decls {
		for len(comments) > 0 && comments[0].Pos() < decl.Pos() || len(comments) > 0 && comments[0].Pos() < declStart(decl) {
			if comments[0].Pos() > end {
				f.markTypes(decl, clusterScoped(comments[0]), resourceName(comments[0]))
			}
			comments = comments[1:]
		}
		end = decl.End()
		for len(comments) > 0 && comments[0].Pos() < end {
			comments = comments[1:]
		}
	}
}

// declStart returns where the declaration itself begins, after its comment.
func declStart(decl ast.Decl) token.Pos {
	switch d := decl.(type) {
	case *ast.GenDecl:
		return d.TokPos
	case *ast.FuncDecl:
		return d.Type.Pos()
	}
	return decl.Pos()
}

// markTypes records what markers say about the types of a declaration.
func (f *Facts) markTypes(decl ast.Decl, cluster bool, resource string) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range gen.Specs {
		if t, ok := spec.(*ast.TypeSpec); ok {
			if cluster {
				f.ClusterScoped[t.Name.Name] = true
			}
			if resource != "" {
				f.Resources[t.Name.Name] = resource
			}
		}
	}
}

// clusterMarker is the marker of controller-gen by which a type is cluster-scoped.
const clusterMarker = "+kubebuilder:resource:scope=Cluster"

func clusterScoped(group *ast.CommentGroup) bool {
	for _, c := range group.List {
		text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if text == "+genclient:nonNamespaced" || text == clusterMarker {
			return true
		}
		if resourceOption(text, "scope") == "Cluster" {
			return true
		}
	}
	return false
}

// resourceName returns the name of the resource that a marker of controller-gen gives, "" if none
// does.
func resourceName(group *ast.CommentGroup) string {
	for _, c := range group.List {
		if path := resourceOption(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), "path"); path != "" {
			return path
		}
	}
	return ""
}

// resourceOption returns an option of the marker +kubebuilder:resource, "" if the text is no such
// marker or has no such option.
func resourceOption(text, name string) string {
	options, ok := strings.CutPrefix(text, "+kubebuilder:resource:")
	if !ok {
		return ""
	}
	for option := range strings.SplitSeq(options, ",") {
		if value, ok := strings.CutPrefix(strings.Trim(strings.TrimSpace(option), `"`), name+"="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// stringConstants returns the constants of the package whose values are string literals.
func stringConstants(files []*ast.File) map[string]string {
	constants := map[string]string{}
	for _, file := range files {
		eachValue(file, token.CONST, func(name string, value ast.Expr) {
			if text, ok := constantText(value, nil); ok {
				constants[name] = text
			}
		})
	}
	return constants
}

func constantText(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := constants[e.Name]
		return text, ok
	}
	return "", false
}

// eachValue calls do for every variable or constant at the top level of the file that has a value
// of its own.
func eachValue(file *ast.File, tok token.Token, do func(name string, value ast.Expr)) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != tok {
			continue
		}
		for _, spec := range gen.Specs {
			vs, ok := spec.(*ast.ValueSpec)
			if !ok || len(vs.Names) != len(vs.Values) {
				continue
			}
			for i, name := range vs.Names {
				do(name.Name, vs.Values[i])
			}
		}
	}
}
