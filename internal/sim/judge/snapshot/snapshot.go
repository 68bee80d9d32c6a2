// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot takes and compares pictures of what a simulation has made: the objects of the
// cluster and the resources of external systems, without everything that differs between runs for
// no reason.
package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/show/difference"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// A Snapshot is a world when it is idle: for each thing in it ("configmaps default/x", "external
// buckets b1") its fields by path.
type Snapshot map[string]map[string]string

// A Source is what a snapshot is taken of.
type Source struct {
	Objects []apiserver.Object
	Systems map[string]external.System

	// Names replaces what the world has minted, such as UIDs, by what it was minted for.
	Names *strings.Replacer

	// Made reports whether an object is one that the operator creates. It may be nil.
	Made func(types.UID) bool

	// Compared reports whether an object is compared with that of another world, if it has one. Nil
	// compares all.
	Compared func(types.UID) bool

	// IsVersion reports whether a text is the resource version that something had. It may be nil.
	IsVersion func(text string) bool

	// Normalize may change an object or return false to leave it out. It may be nil.
	Normalize func(*Object) bool
}

// An Object is one that is about to become part of a snapshot.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string // with "*" for what the server has generated
	Content   map[string]any
}

// Take returns a snapshot.
func Take(source Source) Snapshot {
	s := Snapshot{}
	names := namer{source.Names, allocations(source.Objects)}
	for _, o := range source.Objects {
		if cluster.Ignored(o.Resource) || unremarkable(o.Resource, o.Name) || isHistory(o.Content) {
			continue
		}
		obj := Object{
			Resource: o.Resource, Namespace: o.Namespace, Name: cluster.CanonicalName(o.Name, o.Content), Content: runtime.DeepCopyJSON(o.Content),
		}
		if source.Normalize != nil && !source.Normalize(&obj) {
			continue
		}
		fields := map[string]string{}
		uid := (&unstructured.Unstructured{Object: o.Content}).GetUID()
		normalize(&obj, source.IsVersion)
		cluster.OmitZeros(obj.Resource.Group, obj.Content, source.Made != nil && source.Made(uid))
		sortTexts(obj.Content["status"], names.replace)
		flatten("", obj.Content, fields, names)
		if source.Compared != nil && !source.Compared(uid) {
			fields[notCompared] = "true"
		}
		s.add(source.Names.Replace(cluster.ObjectName(obj.Resource, obj.Namespace, obj.Name)), fields)
	}
	for _, name := range slices.Sorted(maps.Keys(source.Systems)) {
		for _, r := range source.Systems[name].Inventory() {
			fields := map[string]string{}
			flatten("tags", stringsToAny(r.Tags), fields, names)
			flatten("spec", stringsToAny(r.Spec), fields, names)
			fields["name"] = source.Names.Replace(r.Name)
			if r.Owner != "" {
				fields["owner"] = source.Names.Replace(string(r.Owner))
			}
			s.add("external "+name+" "+source.Names.Replace(r.ID), fields)
		}
	}
	return s
}

// notCompared is in place of a path, and marks a thing that is not compared.
const notCompared = "(not compared)"

// IsCompared reports whether a thing is compared with that of another world.
func (s Snapshot) IsCompared(thing string) bool { return s[thing][notCompared] == "" }

// Fields returns the fields of an object by path, as they are.
func Fields(content map[string]any) map[string]string {
	fields := map[string]string{}
	flatten("", content, fields, namer{minted: strings.NewReplacer()})
	return fields
}

// add adds a thing. Things of the same name are numbered, in an order that does not depend on names
// that the server has made.
func (s Snapshot) add(name string, fields map[string]string) {
	if _, taken := s[name]; !taken {
		s[name] = fields
		return
	}
	key := func(i int) string {
		if i == 0 {
			return name
		}
		return name + " #" + strconv.Itoa(i+1)
	}
	list := []map[string]string{fields}
	for other, ok := s[name]; ok; other, ok = s[key(len(list)-1)] {
		list = append(list, other)
	}
	slices.SortFunc(list, func(a, b map[string]string) int { return cmp.Compare(textOf(a), textOf(b)) })
	for i, f := range list {
		s[key(i)] = f
	}
}

// Texts returns what the things have, as texts.
func (s Snapshot) Texts() map[string]string {
	texts := make(map[string]string, len(s))
	for thing, fields := range s {
		texts[thing] = textOf(fields)
	}
	return texts
}

// Renamed returns the snapshot with other names.
func (s Snapshot) Renamed(names *strings.Replacer) Snapshot {
	all := Snapshot{}
	for _, thing := range slices.Sorted(maps.Keys(s)) {
		fields := make(map[string]string, len(s[thing]))
		for path, value := range s[thing] {
			fields[names.Replace(path)] = names.Replace(value)
		}
		all.add(names.Replace(thing), fields)
	}
	return all
}

func textOf(fields map[string]string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		b.WriteString(path + "=" + fields[path] + "\n")
	}
	return b.String()
}

// unremarkable reports whether every cluster has an object by itself.
func unremarkable(r schema.GroupVersionResource, name string) bool {
	switch r.Resource {
	case "namespaces":
		return name == "default" || strings.HasPrefix(name, "kube-")
	case "customresourcedefinitions":
		return true
	}
	return false
}

// isHistory reports whether an object is kept only for a rollback.
func isHistory(content map[string]any) bool {
	return (&unstructured.Unstructured{Object: content}).GetAnnotations()[cluster.History] != ""
}

// flatten writes the leaves of a value by their paths.
func flatten(path string, value any, into map[string]string, names namer) {
	walk(path, value, names.replace, func(path string, leaf any) {
		text, ok := leaf.(string)
		if !ok {
			into[path] = names.number(TextOf(leaf))
			return
		}
		into[path] = names.replace(difference.Moments.ReplaceAllString(text, "<time>"))
	})
}

// Leaves calls a function for each leaf of an object, with its path. Elements of lists that have a type,
// a name or a key have it in their path. Maps and lists without elements are leaves, too.
func Leaves(content map[string]any, do func(path string, leaf any)) {
	walk("", content, func(key string) string { return key }, do)
}

func walk(path string, value any, rename func(key string) string, do func(path string, leaf any)) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 && path != "" {
			do(path, v)
		}
		for k, child := range v {
			if !strings.HasPrefix(k, cluster.Marks) { // operators copy annotations and labels to where they like
				walk(path+"."+k, child, rename, do)
			}
		}
	case []any:
		if len(v) == 0 {
			do(path, v)
		}
		for i, child := range v {
			walk(path+"["+rename(elementKey(i, child))+"]", child, rename, do)
		}
	default:
		do(path, v)
	}
}

// TextOf returns a leaf as text.
func TextOf(leaf any) string {
	if text, ok := leaf.(string); ok {
		return text
	}
	data, err := json.Marshal(leaf)
	if err != nil {
		return fmt.Sprint(leaf)
	}
	return string(data)
}

func elementKey(i int, element any) string {
	if m, ok := element.(map[string]any); ok {
		for _, key := range []string{"type", "name", "key"} {
			if s, ok := m[key].(string); ok {
				return s
			}
		}
	}
	return strconv.Itoa(i)
}

// Diff lists what differs between two worlds, ordered, without the fields and things whose [MaskKey]
// is in mask, and without the things that are not compared in want, or if want lacks them, in got. A
// child that has evaded a collision of names is the one that was wanted.
func (want Snapshot) Diff(got Snapshot, mask map[string]bool) []oracle.Difference {
	want, got = evadedCollisions(want, got)
	var list []oracle.Difference
	for _, thing := range unionOfKeys(want, got) {
		a, inWant := want[thing]
		b, inGot := got[thing]
		switch {
		case !inGot:
			list = append(list, oracle.Difference{Thing: thing, Want: "there"})
		case !inWant:
			list = append(list, oracle.Difference{Thing: thing, Got: "there"})
		default:
			for _, path := range unionOfKeys(a, b) {
				if a[path] != b[path] && !isFilled(path, a, b) && !isFilled(path, b, a) && !cluster.SameField(thing, path, a[path], b[path]) {
					list = append(list, conceal(oracle.Difference{Thing: thing, Path: path, Want: a[path], Got: b[path]}))
				}
			}
		}
	}
	list = slices.DeleteFunc(list, func(d oracle.Difference) bool {
		in := want
		if _, wanted := want[d.Thing]; !wanted {
			in = got
		}
		return mask[MaskKey(d)] || mask[MaskKey(oracle.Difference{Thing: d.Thing})] || d.Path == notCompared || !in.IsCompared(d.Thing)
	})
	return withoutDependents(list, want, got)
}

// isFilled reports whether a field is an empty map or list in one world and has elements in the other
// one: those are the difference.
func isFilled(path string, empty, other map[string]string) bool {
	begin := path + "."
	switch empty[path] {
	case "[]":
		begin = path + "["
	case "{}":
	default:
		return false
	}
	for field := range other {
		if strings.HasPrefix(field, begin) {
			return true
		}
	}
	return false
}

// withoutDependents leaves out the objects that are missing, or there, only because the owner that
// they depend on is: the difference is in the owner.
func withoutDependents(list []oracle.Difference, want, got Snapshot) []oracle.Difference {
	whole := map[string]oracle.Difference{}
	for _, d := range list {
		if d.Path == "" {
			whole[d.Thing] = d
		}
	}
	return slices.DeleteFunc(list, func(d oracle.Difference) bool {
		fields := want[d.Thing]
		if d.Want == "" {
			fields = got[d.Thing]
		}
		owner, ok := whole[ownerOf(fields)]
		return d.Path == "" && ok && owner.Want == d.Want
	})
}

// ownerOf returns the thing that controls another one, or nothing.
func ownerOf(fields map[string]string) string {
	for path, value := range fields {
		element, ok := strings.CutSuffix(path, "].controller")
		if !ok || value != "true" || !strings.HasPrefix(path, ".metadata.ownerReferences[") {
			continue
		}
		if owner, ok := strings.CutPrefix(fields[element+"].uid"], "uid("); ok {
			return strings.TrimSuffix(owner, ")")
		}
	}
	return ""
}

// MaskKey names the field of a difference, for masks.
func MaskKey(d oracle.Difference) string { return d.Thing + " " + d.Path }

func unionOfKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func stringsToAny(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
