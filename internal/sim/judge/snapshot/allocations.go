// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// namer replaces what the world has minted by what it was minted for.
type namer struct {
	minted    *strings.Replacer
	allocated map[string]string // addresses and ports, by value
}

// token matches what may be an address or a port.
var token = regexp.MustCompile(`[0-9][0-9.]*[0-9]`)

func (n namer) replace(text string) string {
	if len(n.allocated) > 0 {
		text = token.ReplaceAllStringFunc(text, func(t string) string {
			if of, ok := n.allocated[t]; ok {
				return of
			}
			return t
		})
	}
	return n.minted.Replace(text)
}

// number replaces a number that is an allocated port.
func (n namer) number(text string) string {
	if of, ok := n.allocated[text]; ok {
		return of
	}
	return text
}

// allocations returns the addresses and ports that the server has allocated for Services and Pods:
// an operator may write them into other objects, where they differ between runs, too.
func allocations(objects []apiserver.Object) map[string]string {
	var list map[string]string
	add := func(o apiserver.Object, field string, values ...any) {
		for _, value := range values {
			text, ok := value.(string)
			if !ok {
				data, err := json.Marshal(value)
				if err != nil {
					continue
				}
				text = string(data)
			}
			// A short number or a single word may be anything.
			if len(text) < 5 || !token.MatchString(text) {
				continue
			}
			if list == nil {
				list = map[string]string{}
			}
			list[text] = field + "(" + cluster.ObjectName(o.Resource, o.Namespace, cluster.CanonicalName(o.Name, o.Content)) + ")"
		}
	}
	for _, o := range objects {
		spec, _ := o.Content["spec"].(map[string]any)
		status, _ := o.Content["status"].(map[string]any)
		switch o.Resource.GroupResource().String() {
		case "services":
			add(o, "clusterIP", spec["clusterIP"])
			ports, _ := spec["ports"].([]any)
			for _, port := range ports {
				if p, ok := port.(map[string]any); ok {
					add(o, "nodePort", p["nodePort"])
				}
			}
		case "pods":
			add(o, "podIP", status["podIP"])
		}
	}
	return list
}
