// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func Hash(intent map[string]any) string {
	data, _ := json.Marshal(intent)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func Covers(managed []metav1.ManagedFieldsEntry, manager string, intent map[string]any) bool {
	for _, e := range managed {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil {
			var owned map[string]any
			if json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
				return false
			}
			rest := map[string]any{}
			for k, v := range intent {
				if k == "apiVersion" || k == "kind" {
					continue
				}
				if m, ok := v.(map[string]any); ok && k == "metadata" {
					c := map[string]any{}
					for mk, mv := range m {
						if mk != "name" && mk != "namespace" {
							c[mk] = mv
						}
					}
					v = c
				}
				rest[k] = v
			}
			return covers(owned, rest)
		}
	}
	return false
}

func covers(owned map[string]any, v any) bool {
	if len(owned) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for k, f := range v {
			below, ok := owned["f:"+k].(map[string]any)
			if !ok || !covers(below, f) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			found := false
			for k, below := range owned {
				kind, text, _ := strings.Cut(k, ":")
				b, _ := below.(map[string]any)
				switch kind {
				case "k":
					var keys map[string]any
					_ = json.Unmarshal([]byte(text), &keys)
					m, _ := item.(map[string]any)
					same := true
					for kk, kv := range keys {
						if have, is := m[kk]; is {
							x, _ := json.Marshal(have)
							y, _ := json.Marshal(kv)
							same = same && string(x) == string(y)
						}
					}
					if same && covers(b, item) {
						found = true
					}
				case "v":
					var value any
					_ = json.Unmarshal([]byte(text), &value)
					found = found || reflect.DeepEqual(value, item)
				}
			}
			if !found {
				return false
			}
		}
	}
	return true
}
