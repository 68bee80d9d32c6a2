// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// defaultsText transcribes SetDefaults_ and the generated defaulting functions of
// k8s.io/kubernetes/pkg/apis, which this module must not import. Its head says how to read it.
//
//go:embed defaults.txt
var defaultsText string

// Default sets the defaults of a kind.
func Default(gvk schema.GroupVersionKind, obj map[string]any) { defaults().apply(id(gvk), obj) }

type object = map[string]any

// defaultParts are the kinds and other parts of defaults.txt.
type defaultParts map[string][]defaulting

func (p defaultParts) apply(name string, o object) {
	for _, d := range p[name] {
		walk(o, d.path, d.set)
	}
}

// defaulting is a line of defaults.txt.
type defaulting struct {
	path []string
	set  func(object) // changes the objects at the path
}

var defaults = sync.OnceValue(func() defaultParts {
	parts := defaultParts{}
	_, text, _ := strings.Cut(defaultsText, "\n\n") // its head
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(part, "\n")
		for _, line := range lines[1:] {
			parts[lines[0]] = append(parts[lines[0]], parts.line(line))
		}
	}
	return parts
})

// line panics if a line is wrong, as the table is part of the program.
func (p defaultParts) line(line string) defaulting {
	line, condition, _ := strings.Cut(line, " if ")
	at, text, _ := strings.Cut(line, " ")
	d := defaulting{path: slices.DeleteFunc(strings.Split(at, "."), func(name string) bool { return name == "" })}
	name, isPart := strings.CutPrefix(text, "@")
	var change func(object)
	switch {
	case isPart && defaultFuncs[name] != nil:
		change = defaultFuncs[name]
	case isPart && strings.Contains(defaultsText, "\n\n"+name+"\n"):
		change = func(o object) { p.apply(name, o) }
	case isPart:
		panic("defaults.txt: nothing is called " + name)
	case text == "-":
		field := d.path[len(d.path)-1]
		d.path = d.path[:len(d.path)-1]
		change = func(o object) { delete(o, field) }
	default:
		field, value := d.path[len(d.path)-1], mustYAML(text)
		d.path = d.path[:len(d.path)-1]
		change = func(o object) { set(o, field, value) }
	}
	d.set = change
	if condition != "" {
		d.set = func(o object) {
			if holds(o, condition) {
				change(o)
			}
		}
	}
	return d
}

func mustYAML(text string) (value any) {
	document, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(document, &value)
	}
	if err != nil {
		panic(fmt.Sprintf("defaults.txt: %s: %v", text, err))
	}
	return value
}

// holds reports whether a condition of defaults.txt is met.
func holds(o object, condition string) bool {
	name, values, compared := strings.Cut(condition, "=")
	name, none := strings.CutPrefix(name, "!")
	path := strings.Split(name, ".")
	value := child(o, path[:len(path)-1]...)[path[len(path)-1]]
	if compared {
		return slices.Contains(strings.Split(values, ","), fmt.Sprint(value))
	}
	return (value == nil || value == "") == none
}

// walk calls f with the objects at a path.
func walk(o object, path []string, f func(object)) {
	if len(path) == 0 {
		f(o)
		return
	}
	if name, ok := strings.CutSuffix(path[0], "[]"); ok {
		each(o, name, func(element object) { walk(element, path[1:], f) })
		return
	}
	name, made := strings.CutSuffix(path[0], "!")
	next := child(o, name)
	if next == nil && made {
		next = object{}
		o[name] = next
	}
	if next != nil {
		walk(next, path[1:], f)
	}
}

// set sets a field if it is not set, to a copy of a value.
func set(o object, name string, value any) {
	if o == nil {
		return
	}
	if v, ok := o[name]; !ok || v == nil || v == "" {
		o[name] = runtime.DeepCopyJSONValue(value)
	}
}

// child returns a field that is an object, or nil. Setting a field of nil does nothing.
func child(o object, path ...string) object {
	for _, name := range path {
		next, _ := o[name].(object)
		if next == nil {
			return nil
		}
		o = next
	}
	return o
}

// each calls f with the objects of a list.
func each(o object, name string, f func(object)) {
	list, _ := o[name].([]any)
	for _, e := range list {
		if element, ok := e.(object); ok {
			f(element)
		}
	}
}

// defaultFuncs are what defaults.txt cannot say.
var defaultFuncs = map[string]func(object){
	"hostPort":       func(o object) { set(o, "hostPort", o["containerPort"]) },
	"serviceAccount": serviceAccount, "imagePullPolicy": imagePullPolicy, "requests": requests, "emptyDir": emptyDir,
	"noZeros": func(o object) {
		for _, name := range []string{"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"} {
			if o[name] == int64(0) {
				delete(o, name)
			}
		}
	},
	"stringData": stringData, "namespaceLabel": namespaceLabel, "replicationController": replicationController, "labelJob": labelJob,
	"targetPort": func(o object) {
		if target := o["targetPort"]; target == nil || target == int64(0) || target == "" {
			o["targetPort"] = o["port"]
		}
	},
	"templateGeneration": func(o object) {
		if child(o, "metadata", "annotations")[templateGeneration] == nil {
			countTemplates(o, 0)
		}
	},
	"claimTemplate": func(o object) { o["apiVersion"], o["kind"] = "v1", "PersistentVolumeClaim" }, // whatever the client sets
	"noMetrics": func(o object) {
		if metrics, _ := o["metrics"].([]any); len(metrics) == 0 {
			delete(o, "metrics")
		}
	},
	"policyTypes": policyTypes, "definitionNames": definitionNames,
}

func serviceAccount(spec object) {
	if account, _ := spec["serviceAccountName"].(string); account != "" {
		spec["serviceAccount"] = account
	} else if account, _ := spec["serviceAccount"].(string); account != "" {
		spec["serviceAccountName"] = account
	}
}

// imageReference matches the name of an image, as github.com/distribution/reference does: a host with a
// port, a path in lower case, a tag and a digest.
var imageReference = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*` +
	`(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

// imagePullPolicy is Always for images with neither a tag nor a digest or with the tag latest, and else
// IfNotPresent, also for what is no name of an image.
func imagePullPolicy(c object) {
	image, _ := c["image"].(string)
	policy := "IfNotPresent"
	if match := imageReference.FindStringSubmatch(image); match != nil && (match[1] == "latest" || match[1] == "" && match[2] == "") {
		policy = "Always"
	}
	set(c, "imagePullPolicy", policy)
}

// requests sets the requests of a container to its limits, as upstream does in Pods but not in Pod
// templates.
func requests(c object) {
	for name, quantity := range child(c, "resources", "limits") {
		walk(c, []string{"resources", "requests!"}, func(requests object) { set(requests, name, quantity) })
	}
}

func emptyDir(volume object) {
	sources := len(volume)
	if _, named := volume["name"]; named {
		sources--
	}
	if sources == 0 {
		volume["emptyDir"] = object{}
	}
}

func namespaceLabel(o object) {
	if name, _ := metadataOf(o)["name"].(string); name != "" {
		walk(o, []string{"metadata", "labels!"}, func(labels object) { labels["kubernetes.io/metadata.name"] = name })
	}
}

func replicationController(o object) {
	spec := child(o, "spec")
	labels := child(spec, "template", "metadata", "labels")
	if len(labels) > 0 {
		if len(child(spec, "selector")) == 0 {
			spec["selector"] = copyOf(labels)
		}
		if len(child(o, "metadata", "labels")) == 0 {
			metadataOf(o)["labels"] = copyOf(labels)
		}
	}
}

func copyOf(o object) object {
	out := make(object, len(o))
	for k, v := range o {
		out[k] = v
	}
	return out
}

// labelJob gives a Job without labels those of its template.
func labelJob(o object) {
	if labels := child(o, "spec", "template", "metadata", "labels"); len(labels) > 0 && len(child(o, "metadata", "labels")) == 0 {
		metadataOf(o)["labels"] = labels // one map, as upstream: newJob adds its labels to both, and parts them
	}
}

func policyTypes(spec object) {
	if types, _ := spec["policyTypes"].([]any); len(types) > 0 {
		return
	}
	types := []any{"Ingress"}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, "Egress")
	}
	spec["policyTypes"] = types
}

func definitionNames(names object) {
	kind, _ := names["kind"].(string)
	set(names, "singular", strings.ToLower(kind))
	if kind != "" {
		set(names, "listKind", kind+"List")
	}
}
