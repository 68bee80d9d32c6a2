// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package minted

import "testing"

// What is learned from two runs, and what a thing of a third one is called then.
func TestLearn(t *testing.T) {
	for _, test := range []struct {
		name             string
		a, b             map[string]string
		thing, canonical string
	}{
		{
			"a hash at the end", map[string]string{"secrets default/cache-1f3a90c2": "of x"}, map[string]string{"secrets default/cache-77b0e41d": "of x"},
			"secrets default/cache-0c33e1f8", "secrets default/cache-*",
		},
		{
			"a hash that the content has, too, before a suffix",
			map[string]string{"secrets default/cache-1f3a90c2-tls": "cache-1f3a90c2"}, map[string]string{"secrets default/cache-17b0e41d-tls": "cache-17b0e41d"},
			"secrets default/cache-0c33e1f8-tls", "secrets default/cache-*-tls",
		},
		{
			"a name of another length", map[string]string{"secrets default/cache-1f3a90c2": ""}, map[string]string{"secrets default/cache-77b0e41d": ""},
			"secrets default/cache-primarystore", "secrets default/cache-primarystore",
		},
		{
			"a word as long as the hash", map[string]string{"secrets default/cache-1f3a90c2": ""}, map[string]string{"secrets default/cache-77b0e41d": ""},
			"secrets default/cache-standby2", "secrets default/cache-standby2",
		},
		{
			"letters and digits", map[string]string{"secrets default/cache-7fj2k": ""}, map[string]string{"secrets default/cache-wq4xz": ""},
			"secrets default/cache-pl9c2", "secrets default/cache-*",
		},
		{
			"another kind", map[string]string{"secrets default/cache-1f3a90c2": ""}, map[string]string{"secrets default/cache-77b0e41d": ""},
			"services default/cache-0c33e1f8", "services default/cache-0c33e1f8",
		},
		{
			"another content", map[string]string{"secrets default/cache-1f3a90c2": "of x"}, map[string]string{"secrets default/cache-77b0e41d": "of y"},
			"secrets default/cache-0c33e1f8", "secrets default/cache-0c33e1f8",
		},
		{
			"one more in a run", map[string]string{"secrets default/cache-1f3a90c2": ""},
			map[string]string{"secrets default/cache-77b0e41d": "", "secrets default/cache-9f3a90c2": ""},
			"secrets default/cache-0c33e1f8", "secrets default/cache-0c33e1f8",
		},
		{
			"a time", map[string]string{"jobs.batch default/hello-1795381274": ""}, map[string]string{"jobs.batch default/hello-1795381284": ""},
			"jobs.batch default/hello-1795381294", "jobs.batch default/hello-1795381294",
		},
		{
			"a short word", map[string]string{"secrets default/cache-blue": ""}, map[string]string{"secrets default/cache-gray": ""},
			"secrets default/cache-teal", "secrets default/cache-teal",
		},
		{
			"another namespace", map[string]string{"secrets ns1f3a90c2/cache": ""}, map[string]string{"secrets ns77b0e41d/cache": ""},
			"secrets ns0c33e1f8/cache", "secrets */cache",
		},
		{
			"two differences", map[string]string{"secrets default/a1f3a90c2-1f3a90c2": ""}, map[string]string{"secrets default/a77b0e41d-77b0e41d": ""},
			"secrets default/a0c33e1f8-0c33e1f8", "secrets default/a0c33e1f8-0c33e1f8",
		},
	} {
		names := Learn(test.a, test.b)
		got := test.thing
		if r := names.Replacer([]string{test.thing}); r != nil {
			got = r.Replace(got)
		}
		if got != test.canonical {
			t.Errorf("%s: %q is called %q, want %q", test.name, test.thing, got, test.canonical)
		}
	}
}
