// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var update = flag.Bool("update", false, "write resources.json anew from the real control plane")

// The table of resources is what the real API server says of itself.
func TestResourcesAreThoseOfTheRealServer(t *testing.T) {
	rings.Test(t, "starts a control plane")
	cp := planetest.Start(t, controlplane.Options{})
	client, err := discovery.NewDiscoveryClientForConfig(cp.Config())
	must(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	must(t, err)
	var out bytes.Buffer
	out.WriteString("[\n")
	slices.SortFunc(lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	for i, list := range lists {
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		for j, r := range list.APIResources {
			r.StorageVersionHash = ""
			data, err := json.Marshal(served{GroupVersion: list.GroupVersion, APIResource: r})
			must(t, err)
			out.Write(data)
			if i+1 < len(lists) || j+1 < len(list.APIResources) {
				out.WriteByte(',')
			}
			out.WriteByte('\n')
		}
	}
	out.WriteString("]\n")
	file := filepath.Join("resources.json")
	if *update {
		must(t, os.WriteFile(file, out.Bytes(), 0o644))
	}
	if !bytes.Equal(out.Bytes(), resourcesJSON) {
		t.Errorf("%s is not what the real API server says: run go test -run %s -update, read the difference, commit it", file, t.Name())
	}
}
