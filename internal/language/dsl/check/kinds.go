// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A kindRef is a kind as a document writes it, before its Go package is loaded.
type kindRef struct {
	label string // group and version as written, or those of the built-in kind
	path  string // import path; empty when the kind could not be resolved
	kind  string
	// bare is true for a built-in kind that is written as one word.
	bare bool
	// checked is set once the Go type was looked up; typ is nil if that failed.
	checked bool
	typ     *kindType
}

// A kindType is a kind with its Go type.
type kindType struct {
	model.Kind
	obj *types.TypeName
}

var (
	groupPattern   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	versionPattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

// declare collects binds and aliases and the kinds that the document names. It needs no Go
// packages.
func (d *document) declare() {
	for n := range ast.All[*ast.Bind](d.file) {
		d.declareBind(n)
	}
	for n := range ast.All[*ast.Alias](d.file) {
		d.declareAlias(n)
	}
	for _, a := range d.aliasOrder {
		d.resolveAlias(a)
	}
	for decl := range ast.All[*ast.Decl](d.file) {
		d.resolve(decl.Kind)
		for s := range ast.All[*ast.State](decl) {
			d.resolve(s.Kind)
		}
	}
}

func (d *document) declareBind(n *ast.Bind) {
	b := &binding{word: n.GroupVersion, path: n.Package}
	if first, ok := d.binds[n.GroupVersion.Text]; ok {
		d.report(diag.DuplicateName, n.GroupVersion, n.GroupVersion.Text+" is bound twice", "remove one of them",
			(&scopedName{d, first.word}).related()...)
		return
	}
	d.binds[n.GroupVersion.Text] = b
	d.bindOrder = append(d.bindOrder, b)
	group, version, slashes := splitGroupVersion(n.GroupVersion.Text)
	if !slashes || group != "" && !groupPattern.MatchString(group) || !versionPattern.MatchString(version) || group == "" && !strings.HasPrefix(version, "v") {
		b.bad = true
		d.report(diag.BadGroupVersion, n.GroupVersion, fmt.Sprintf("malformed group and version %q", n.GroupVersion.Text),
			"write VERSION for the core group, as in v1, or GROUP/VERSION, as in batch/v1")
	}
	if err := module.CheckImportPath(n.Package.Text); err != nil && !isDefinitions(n.Package.Text) {
		b.bad = true
		d.report(diag.BadPackagePath, n.Package, fmt.Sprintf("malformed Go package path %q", n.Package.Text),
			"write the path as in a Go import, without quotes; definitions are ./FILE, ./DIRECTORY or MODULE:DIRECTORY")
		return
	}
	if !b.bad {
		d.paths[b.key(d.dir)] = true
	}
}

// splitGroupVersion cuts GROUP/VERSION. It reports whether there is at most one slash.
func splitGroupVersion(label string) (group, version string, ok bool) {
	group, version, found := strings.Cut(label, "/")
	if !found {
		return "", label, true
	}
	return group, version, group != "" && !strings.Contains(version, "/")
}

func (d *document) declareAlias(n *ast.Alias) {
	if first, ok := d.aliases[n.Name.Text]; ok {
		d.report(diag.DuplicateName, n.Name, fmt.Sprintf("alias %s is declared twice", n.Name.Text), anotherName,
			(&scopedName{d, first.name}).related()...)
		return
	}
	d.identifier(n.Name, "alias")
	a := &alias{name: n.Name, kind: n.Kind}
	d.aliases[n.Name.Text] = a
	d.aliasOrder = append(d.aliasOrder, a)
}

// resolveAlias resolves the kind of an alias. An alias of one word means a built-in kind, never
// another alias.
func (d *document) resolveAlias(a *alias) {
	if !strings.Contains(a.kind.Text, "/") {
		if other, ok := d.aliases[a.kind.Text]; ok && other != a {
			d.report(diag.BadKind, a.kind, fmt.Sprintf("alias %s stands for another alias, %s", a.name.Text, a.kind.Text),
				"write "+other.kind.Text)
			other.used = true
			d.refs["alias "+a.name.Text] = &kindRef{}
			return
		}
		d.refs["alias "+a.name.Text] = d.resolveBare(a.kind, "write GROUP/VERSION/KIND, as in batch/v1/Job")
		return
	}
	d.refs["alias "+a.name.Text] = d.resolveFull(a.kind)
}

// resolve resolves a kind as far as that is possible without Go packages, and reports an unknown
// one.
func (d *document) resolve(w ast.Word) {
	if w.Text == "" {
		return
	}
	if a, ok := d.aliases[w.Text]; ok {
		a.used = true
		return
	}
	if ref, ok := d.refs[w.Text]; ok && ref.path != "" {
		return
	}
	if strings.Contains(w.Text, "/") {
		d.refs[w.Text] = d.resolveFull(w)
	} else {
		d.refs[w.Text] = d.resolveBare(w, fmt.Sprintf("declare it: alias %s GROUP/VERSION/KIND", w.Text))
	}
}

// resolveBare resolves a kind of one word among the built-in ones. The hint is used if no known
// name is near.
func (d *document) resolveBare(w ast.Word, hint string) *kindRef {
	rows := builtins.byKind[w.Text]
	switch len(rows) {
	case 0:
		item, isList := strings.CutSuffix(w.Text, "List")
		if near, ok := printable.Near(w.Text, d.knownKinds()); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if isList && (d.aliases[item] != nil || len(builtins.byKind[item]) > 0) {
			hint = fmt.Sprintf("write []%s for a list", item)
		}
		d.report(diag.UnknownKind, w, fmt.Sprintf("unknown kind %q", w.Text), hint)
		return &kindRef{}
	case 1:
		d.paths[rows[0].Path] = true
		return &kindRef{label: rows[0].label(), path: rows[0].Path, kind: w.Text, bare: true}
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.label() + "/" + w.Text
	}
	d.report(diag.AmbiguousKind, w, fmt.Sprintf("%d groups have a kind %s", len(rows), w.Text),
		"write "+strings.Join(names, " or "))
	return &kindRef{}
}

// knownKinds are the aliases of the document and the built-in kinds, for near names.
func (d *document) knownKinds() []string {
	var names []string
	for _, a := range d.aliasOrder {
		names = append(names, a.name.Text)
	}
	return append(names, builtins.kinds...)
}

// resolveFull resolves GROUP/VERSION/KIND and VERSION/KIND.
func (d *document) resolveFull(w ast.Word) *kindRef {
	slash := strings.LastIndexByte(w.Text, '/')
	label, kind := w.Text[:slash], w.Text[slash+1:]
	labelSpan := ast.Range{Start: w.Start, End: w.Start + slash}
	_, version, ok := splitGroupVersion(label)
	if !ok || label == "" || version == "" || !isIdentifier(kind) {
		d.report(diag.BadKind, w, fmt.Sprintf("malformed kind %q", w.Text), "write GROUP/VERSION/KIND, as in batch/v1/Job")
		return &kindRef{}
	}
	if b, ok := d.binds[label]; ok {
		b.used = true
		if b.bad {
			return &kindRef{}
		}
		return &kindRef{label: label, path: b.key(d.dir), kind: kind}
	}
	if row, ok := builtins.byLabel[label]; ok {
		d.paths[row.Path] = true
		return &kindRef{label: label, path: row.Path, kind: kind}
	}
	hint := d.nearLabel(label)
	if hint == "" {
		hint = fmt.Sprintf("bind it: bind %s GO-PACKAGE", label)
	}
	d.report(diag.UnboundGroupVersion, labelSpan, fmt.Sprintf("group and version %s are not bound", label), hint)
	return &kindRef{}
}

func (d *document) nearLabel(label string) string {
	var names []string
	for _, b := range d.bindOrder {
		names = append(names, b.word.Text)
	}
	if near, ok := printable.Near(label, names); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	// Of built-in groups only a near spelling of the group counts: v2 is not a misspelled v1.
	group, version, _ := splitGroupVersion(label)
	for _, known := range builtins.labels {
		g, v, _ := splitGroupVersion(known)
		if group != "" && v == version {
			if near, ok := printable.Near(group, []string{g}); ok && near != "" {
				return fmt.Sprintf("did you mean %q?", known)
			}
		}
	}
	return ""
}

// checkBinds reports packages that cannot be loaded, and packages with another group or version
// than that of the bind.
func (c *checker) checkBinds(d *document) {
	for _, b := range d.bindOrder {
		if b.bad {
			continue
		}
		group, version, _ := splitGroupVersion(b.word.Text)
		if row := lookupBuiltin(b.path.Text); row != nil {
			if version != row.Version || group != row.Group && group != shortGroup(row.Group) {
				d.report(diag.WrongPackage, b.word, fmt.Sprintf("%s holds %s, not %s", row.Path, row.label(), b.word.Text),
					fmt.Sprintf("write bind %s %s", row.label(), row.Path))
			}
		}
		if p := c.packages[b.key(d.dir)]; p == nil || p.Types == nil {
			d.reportNotLoaded(b.path, b.key(d.dir), p)
			continue
		} else if p.Facts.Version != "" && p.Facts.Version != version {
			d.report(diag.VersionMismatch, b.word,
				fmt.Sprintf("%s declares version %s, not %s", b.path.Text, p.Facts.Version, version),
				fmt.Sprintf("write bind %s %s, or bind another package", strings.TrimPrefix(group+"/"+p.Facts.Version, "/"), b.path.Text))
		}
		c.warnProblem(d, b)
	}
}

// warnProblem reports a package that does not compile. It leaves out a package whose kinds are
// reported anyway, and the package that the generated code belongs to, which may need that code to
// compile.
func (c *checker) warnProblem(d *document, b *binding) {
	p := c.packages[b.key(d.dir)]
	if p.Problem == "" || b.path.Text == c.path {
		return
	}
	for _, ref := range d.refs {
		if ref.path == b.key(d.dir) && c.problem(ref) != "" {
			return
		}
	}
	d.report(diag.PackageErrors, b.path, fmt.Sprintf("%s does not compile: %s", b.path.Text, firstLine(p.Problem)), "go build "+b.path.Text+" shows what is wrong")
}

// problem returns what is wrong with the Go type of a kind in a loaded package, or "".
func (c *checker) problem(ref *kindRef) string {
	p := c.packages[ref.path]
	obj, ok := p.Types.Scope().Lookup(ref.kind).(*types.TypeName)
	if !ok {
		return "is not there"
	}
	return p.problem(obj)
}

// reportNotLoaded reports a package that was not loaded, at the first place that needs it.
func (d *document) reportNotLoaded(at ast.Node, path string, p *Package) {
	if d.notLoaded[path] {
		return
	}
	d.notLoaded[path] = true
	problem := "it was not found"
	if p != nil && p.Problem != "" {
		problem = firstLine(p.Problem)
	}
	if p != nil && p.Remedy != "" {
		if !d.described[problem] {
			d.described[problem] = true
			d.report(diag.PackageNotLoaded, at, fmt.Sprintf("cannot look for Go package %s: %s", path, problem), "run: "+p.Remedy)
		}
		return
	}
	if p != nil && p.Hint != "" {
		d.report(diag.PackageNotLoaded, at, fmt.Sprintf("cannot load %s: %s", sourceOf(path), problem), p.Hint)
		return
	}
	hint := "check the path, or add the module: go get " + path
	if p != nil && p.Definitions {
		d.report(diag.PackageNotLoaded, at, fmt.Sprintf("cannot read definitions %s: %s", sourceOf(path), problem), definitionsHint(problem))
		return
	}
	switch {
	case strings.Contains(problem, "go.mod file not found"):
		problem = "the document is not in a Go module"
		hint = "create a module: go mod init"
	case lookupBuiltin(path) != nil:
		hint = "add the module: go get " + path // with the modules that the package imports
	case strings.Contains(problem, "is not in std"):
		problem = "there is no such package"
		hint = "check the path: go.mod requires no module that it begins with"
		if root, _, _ := strings.Cut(d.importPath, "/"); root != "" && strings.HasPrefix(path, root+"/") {
			hint = "check the path: it is in this module"
		}
	}
	d.report(diag.PackageNotLoaded, at, fmt.Sprintf("cannot load Go package %s: %s", path, problem), hint)
}

// firstLine returns the first line of a message that is not empty and not the compiler's heading.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		text = strings.TrimSpace(line)
		if text != "" && text[0] != '#' { // the compiler begins with the name of the package
			break
		}
	}
	text, _, _ = strings.Cut(text, "; to add it:") // the hint says how
	return text
}

// checkAliases looks up the kinds of all aliases, used or not.
func (c *checker) checkAliases(d *document) {
	for _, a := range d.aliasOrder {
		if ref := d.refs["alias "+a.name.Text]; ref != nil {
			c.lookup(d, ref, a.kind)
		}
	}
}

// kind returns the Go type of a kind as it is written, or nil if there is none. That was reported
// then.
func (c *checker) kind(d *document, w ast.Word) *kindType {
	if a, ok := d.aliases[w.Text]; ok {
		if ref := d.refs["alias "+a.name.Text]; ref != nil {
			return ref.typ
		}
		return nil
	}
	ref := d.refs[w.Text]
	if ref == nil {
		return nil
	}
	if ref.bare {
		c.warnShadowed(d, ref, w)
	}
	return c.lookup(d, ref, w)
}

// warnShadowed reports a bare name that means a built-in kind although a bound package has a kind
// of that name.
func (c *checker) warnShadowed(d *document, ref *kindRef, w ast.Word) {
	for _, b := range d.bindOrder {
		p := c.packages[b.key(d.dir)]
		if b.bad || p == nil || p.Types == nil || b.key(d.dir) == ref.path {
			continue
		}
		if obj, ok := p.Types.Scope().Lookup(w.Text).(*types.TypeName); ok && p.problem(obj) == "" {
			d.report(diag.ShadowedKind, w, fmt.Sprintf("%s means the built-in kind %s/%s, but %s has a kind %s too",
				w.Text, ref.label, ref.kind, b.path.Text, w.Text),
				fmt.Sprintf("declare which one: alias %s %s/%s", w.Text, b.word.Text, w.Text))
			return
		}
	}
}

// lookup looks up the Go type once. It reports each place where that fails, and underlines the name
// of the kind only.
func (c *checker) lookup(d *document, ref *kindRef, w ast.Word) *kindType {
	if ref.path == "" || ref.checked && ref.typ != nil {
		return ref.typ
	}
	ref.checked = true
	p := c.packages[ref.path]
	if p == nil || p.Types == nil {
		if !d.boundTo(ref.path) {
			d.reportNotLoaded(w, ref.path, p)
		}
		return nil
	}
	span := ast.Range{Start: w.End - len(ref.kind), End: w.End}
	obj, ok := p.Types.Scope().Lookup(ref.kind).(*types.TypeName)
	if !ok {
		d.report(diag.NoSuchType, span, fmt.Sprintf("%s has no kind %s", sourceOf(ref.path), ref.kind), kindHint(ref.kind, kindNames(p)))
		return nil
	}
	if problem := p.problem(obj); problem != "" {
		d.report(diag.NotAnObject, span, fmt.Sprintf("%s.%s is not a kind: it %s", ref.path, ref.kind, problem), c.objectHint(obj, problem))
		return nil
	}
	ref.typ = c.newKind(ref, p, obj)
	if ref.path == c.path {
		c.ownTypes[ref.typ.Type] = true
		c.ownTypes[ref.kind+"List"] = true
	}
	return ref.typ
}

// boundTo reports whether a bind names the package, so that its failure to load has been reported
// there.
func (d *document) boundTo(path string) bool {
	return slices.ContainsFunc(d.bindOrder, func(b *binding) bool { return !b.bad && b.key(d.dir) == path })
}

func (c *checker) objectHint(obj *types.TypeName, problem string) string {
	item, isList := strings.CutSuffix(obj.Name(), "List")
	if isList && obj.Pkg().Scope().Lookup(item) != nil {
		return fmt.Sprintf("write %s here, and []%s in a state for a list", item, item)
	}
	if strings.Contains(problem, "DeepCopyObject") {
		return "run controller-gen object on the package"
	}
	return "name a type that embeds metav1.TypeMeta and metav1.ObjectMeta"
}

// kindHint suggests the nearest kind of a package, else the built-in kind of that name, else the
// kinds that there are.
func kindHint(name string, kinds []string) string {
	if hint := printable.DidYouMean(name, kinds); hint != "" {
		return hint
	}
	if rows := builtins.byKind[name]; len(rows) > 0 {
		return fmt.Sprintf("did you mean %q?", rows[0].label()+"/"+name)
	}
	if hint := printable.DidYouMean(name, builtins.kinds); hint != "" {
		return hint
	}
	if len(kinds) == 0 {
		return "the package has no kinds: a kind is a struct that embeds metav1.TypeMeta and metav1.ObjectMeta"
	}
	return someOf("kind", kinds)
}

// kindNames are the kinds of a package.
func kindNames(p *Package) []string {
	var names []string
	for _, name := range p.Types.Scope().Names() {
		if obj, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok && p.problem(obj) == "" {
			names = append(names, name)
		}
	}
	return names
}

func (c *checker) newKind(ref *kindRef, p *Package, obj *types.TypeName) *kindType {
	if p.Definitions {
		return newDefinedKind(ref, p, obj)
	}
	group, version, _ := splitGroupVersion(ref.label)
	namespaced := !p.Facts.ClusterScoped[ref.kind]
	if p.Facts.HasGroup {
		group = p.Facts.Group
	}
	if p.Facts.Version != "" {
		version = p.Facts.Version
	}
	if row := lookupBuiltin(ref.path); row != nil {
		group, version = row.Group, row.Version
		namespaced = !slices.Contains(row.Cluster, ref.kind)
	}
	return &kindType{
		Kind: model.Kind{
			Group: group, Version: version, Kind: ref.kind,
			Package: ref.path, PackageName: p.Types.Name(),
			Type: ref.kind, List: listType(obj),
			Namespaced: namespaced, Resource: p.Facts.Resources[ref.kind],
		},
		obj: obj,
	}
}
