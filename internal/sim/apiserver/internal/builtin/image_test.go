// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import "testing"

// The policy is that of k8s.io/kubernetes v1.37.2, SetDefaults_Container: what it can't read has no tag,
// not even the one that an image without a tag has.
func TestImagePullPolicy(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "Always", "nginx:latest": "Always", "nginx:1.27": "IfNotPresent", "nginx:1-2": "IfNotPresent",
		"registry.example.com:5000/a/b": "Always", "registry.example.com:5000/a/b:2": "IfNotPresent", "localhost/a:latest": "Always",
		"nginx@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef":        "IfNotPresent",
		"nginx:latest@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": "Always",
		"not an image": "IfNotPresent", "-2": "IfNotPresent", "Nginx": "IfNotPresent", "": "IfNotPresent", "nginx:": "IfNotPresent",
	} {
		c := object{"image": image}
		if imagePullPolicy(c); c["imagePullPolicy"] != want {
			t.Errorf("%q: got %v, want %s", image, c["imagePullPolicy"], want)
		}
	}
}
