// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// mostCompleted is how many objects are offered at most.
const mostCompleted = 200

// complete offers what can be explained: kinds, and after KIND/ or KIND the names of objects. It
// offers nothing if the API server does not answer soon.
func (f *explainFlags) complete(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	config, namespace, err := f.cluster(f.namespace)
	if err != nil || len(args) > 1 {
		return nil, nothing
	}
	config.Timeout = 2 * time.Second
	kind, _, slash := strings.Cut(text, "/")
	switch {
	case len(args) == 1:
		names, _ := namesIn(cmd, config, args[0], namespace) //nolint:errcheck // there is nothing to offer then
		return names, nothing
	case slash:
		names, _ := namesIn(cmd, config, kind, namespace) //nolint:errcheck // as above
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
		return names, nothing
	}
	return kindsOf(config), nothing | cobra.ShellCompDirectiveNoSpace // a slash or a space follows
}

// kindsOf returns the custom kinds that the API server serves, with their groups, and the built-in ones
// without.
func kindsOf(config *rest.Config) []string {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil
	}
	lists, _ := discovery.ServerPreferredResources(client) //nolint:errcheck // the kinds of some groups are better than none
	var kinds []string
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			kind := strings.ToLower(r.Kind)
			if !slices.Contains(r.Verbs, "get") || strings.Contains(r.Name, "/") {
				continue
			}
			if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
				kind += "." + group
			}
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// namesIn returns the names of objects of a kind.
func namesIn(cmd *cobra.Command, config *rest.Config, kind, namespace string) ([]string, error) {
	mapping, err := mappingOf(config, kind)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != "namespace" {
		namespace = ""
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	list, err := client.Resource(mapping.Resource).Namespace(namespace).List(cmd.Context(), metav1.ListOptions{Limit: mostCompleted})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, nil
}
