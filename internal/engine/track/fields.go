// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fieldsOf returns the paths of the leaves of a merge patch or an applied configuration. See
// [Fields].
func fieldsOf(data []byte) []string {
	var root map[string]any
	if len(data) == 0 || json.Unmarshal(data, &root) != nil {
		return nil
	}
	return Fields(root)
}

// Fields returns the paths of the leaves of a JSON object, sorted, without those that name an
// object and guard its write. A list is a leaf.
func Fields(root map[string]any) []string {
	var paths []string
	collectPaths(root, "", &paths)
	paths = slices.DeleteFunc(paths, func(p string) bool { return slices.Contains(naming, p) })
	slices.Sort(paths)
	return paths
}

// naming are the paths that say which object is written, and which version of it.
var naming = []string{
	".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.resourceVersion", ".metadata.creationTimestamp",
}

func collectPaths(node map[string]any, prefix string, paths *[]string) {
	for key, value := range node {
		path := PathBelow(prefix, key)
		if child, ok := value.(map[string]any); ok && len(child) > 0 {
			collectPaths(child, path, paths)
			continue
		}
		*paths = append(*paths, path)
	}
}

// PathBelow returns the path of a key below a path.
func PathBelow(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + key + "]"
	}
	return path + "." + key
}

// fieldsOfJSONPatch returns the paths that a JSON patch changes, sorted. What is within a list is
// named by the list.
func fieldsOfJSONPatch(data []byte) []string {
	var operations []struct{ Op, Path, From string }
	if json.Unmarshal(data, &operations) != nil {
		return nil
	}
	var paths []string
	for _, o := range operations {
		if o.Op == "test" {
			continue
		}
		paths = append(paths, pathOfPointer(o.Path))
		if o.Op == "move" {
			paths = append(paths, pathOfPointer(o.From))
		}
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == "" || slices.Contains(naming, p) })
	slices.Sort(paths)
	return slices.Compact(paths)
}

// pathOfPointer returns the path of a JSON pointer.
func pathOfPointer(pointer string) string {
	path := ""
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(segment); err == nil || segment == "-" || segment == "" {
			break
		}
		path = PathBelow(path, unescapePointer.Replace(segment))
	}
	return path
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// GroupOf returns the group of an API version, empty if it is not one.
func GroupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// Quote returns names in quotes, separated by commas.
func Quote(names []string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = strconv.Quote(n)
	}
	return strings.Join(texts, ", ")
}
