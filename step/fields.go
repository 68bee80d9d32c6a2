package step

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fieldsOf returns the paths of the leaves of a merge patch or an applied configuration, sorted, without what names the object and guards the
// write. A list is a leaf.
func fieldsOf(data []byte) []string {
	var root map[string]any
	if len(data) == 0 || json.Unmarshal(data, &root) != nil {
		return nil
	}
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
		path := prefix + "." + key
		if strings.ContainsAny(key, "./") {
			path = prefix + "[" + key + "]"
		}
		if child, ok := value.(map[string]any); ok && len(child) > 0 {
			collectPaths(child, path, paths)
			continue
		}
		*paths = append(*paths, path)
	}
}

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}
