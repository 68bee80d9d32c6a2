// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shortest is how many bytes a value of a Secret has at least for which other objects are searched:
// shorter ones occur in them by chance.
const shortest = 6

// longest is how many bytes a value has at most that is searched together with all others.
const longest = 4096

// Hide replaces all values of Secrets, in the Secrets and wherever else they occur: in other
// objects, in the reports and in the head. others are Secrets that are not recorded, of which
// recorded objects may have values. Equal values get equal stand-ins of the same length. What a
// file is left with, because it is also a name, is named in the head.
//
// A value is found if it occurs as it is, in base64, in hexadecimal, or escaped for JSON or a URL;
// a part of a value is not, nor is a value of fewer than six bytes outside of Secrets.
func (r *Recording) Hide(others []*unstructured.Unstructured) {
	h := &hider{standIns: standIns{key: make([]byte, 32)}, names: r.names()}
	rand.Read(h.key) //nolint:errcheck // it never fails
	for _, obj := range slices.Concat(r.Objects, others) {
		if isSecret(obj) {
			h.values = append(h.values, valuesOf(obj)...)
		}
	}
	h.prepare()
	for _, obj := range r.Objects {
		if isSecret(obj) {
			h.hideSecret(obj)
		}
		obj.Object, _ = h.anywhere(obj.Object).(map[string]any)
	}
	for i, report := range r.Reports {
		r.Reports[i], _ = h.anywhere(report).(map[string]any)
	}
	for i, text := range r.Unread {
		r.Unread[i] = h.text(text, 0)
	}
	r.noteLeft(h)
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && obj.GetAPIVersion() == "v1"
}

// names returns the texts by which objects refer to others. They stay as they are.
func (r *Recording) names() map[string]bool {
	names := map[string]bool{}
	for _, obj := range r.Objects {
		for _, name := range []string{
			obj.GetName(), obj.GetNamespace(), obj.GetKind(), obj.GetAPIVersion(), obj.GroupVersionKind().Group, string(obj.GetUID()),
		} {
			names[name] = true
		}
	}
	return names
}

// A value is one of a Secret.
type value struct {
	of   string // "Secret default/x, key password"
	text string
}

// valuesOf returns the values of a Secret, and those that kubectl has applied.
func valuesOf(secret *unstructured.Unstructured) []value {
	var list []value
	add := func(content map[string]any) {
		for _, field := range []string{"data", "stringData"} {
			entries, _ := content[field].(map[string]any)
			for key, entry := range entries {
				of := fmt.Sprintf("Secret %s/%s, key %s", secret.GetNamespace(), secret.GetName(), key)
				list = append(list, value{of, plain(field, entry)})
			}
		}
	}
	add(secret.Object)
	add(lastAppliedOf(secret))
	slices.SortFunc(list, func(a, b value) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.text, b.text)) })
	return slices.Compact(list)
}

// plain returns an entry of a field of a Secret without its encoding.
func plain(field string, entry any) string {
	text, ok := entry.(string)
	if !ok {
		return fmt.Sprint(entry)
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); field == "data" && err == nil {
		return string(decoded)
	}
	return text
}

func lastAppliedOf(obj *unstructured.Unstructured) map[string]any {
	var content map[string]any
	_ = json.Unmarshal([]byte(obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &content) //nolint:errcheck // what is no JSON has no values
	return content
}

// hider replaces values.
type hider struct {
	standIns
	values []value
	names  map[string]bool
	texts  *strings.Replacer // of what may be part of a text
	keys   *strings.Replacer // of what may be part of a key
	long   [][2]string
}

// prepare makes the replacers.
func (h *hider) prepare() {
	var inTexts, inKeys []string
	seen := map[string]bool{}
	for _, v := range h.values {
		core := strings.TrimSpace(v.text)
		if seen[core] || len(core) < shortest || h.names[core] {
			continue
		}
		seen[core] = true
		if len(core) > longest {
			h.long = append(h.long, forms(core, h.of(core))...)
			continue
		}
		for _, form := range forms(core, h.of(core)) {
			inTexts = append(inTexts, form[0], form[1])
			if !isWord(core) {
				inKeys = append(inKeys, form[0], form[1])
			}
		}
	}
	h.texts, h.keys = longestFirst(inTexts), longestFirst(inKeys)
}

// isWord reports whether a text could be the name of a field.
func isWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
}

// forms returns how a value may occur in a text, and what stands for that.
func forms(text, standIn string) [][2]string {
	list := [][2]string{{text, standIn}}
	for _, form := range []func(string) string{
		quoted, url.QueryEscape, url.PathEscape, func(s string) string { return hex.EncodeToString([]byte(s)) },
		func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
		func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	} {
		list = append(list, [2]string{form(text), form(standIn)})
	}
	return list
}

// quoted returns a text as it is inside of a JSON string.
func quoted(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) //nolint:errcheck // a string
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// longestFirst returns a replacer that prefers long texts where one contains the other.
func longestFirst(pairs []string) *strings.Replacer {
	chunks := slices.Collect(slices.Chunk(pairs, 2))
	slices.SortStableFunc(chunks, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	return strings.NewReplacer(slices.Concat(chunks...)...)
}

// hideSecret replaces the values in a Secret.
func (h *hider) hideSecret(secret *unstructured.Unstructured) {
	annotations := secret.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		content := lastAppliedOf(secret)
		h.hideData(content)
		text, err := json.Marshal(content)
		if err != nil || content == nil {
			text = []byte("{}")
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(text) + "\n"
		secret.SetAnnotations(annotations)
	}
	h.hideData(secret.Object)
}

func (h *hider) hideData(content map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		entries, _ := content[field].(map[string]any)
		for key, entry := range entries {
			standIn := h.of(plain(field, entry))
			if field == "data" {
				standIn = base64.StdEncoding.EncodeToString([]byte(standIn))
			}
			entries[key] = standIn
		}
	}
}

// anywhere replaces values in what may have them by chance.
func (h *hider) anywhere(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[h.keys.Replace(key)] = h.anywhere(child)
		}
		return out
	case []any:
		for i, child := range v {
			v[i] = h.anywhere(child)
		}
	case string:
		return h.text(v, 0)
	case int64:
		if n, err := strconv.ParseInt(h.texts.Replace(strconv.FormatInt(v, 10)), 10, 64); err == nil {
			return n
		}
	}
	return value
}

// encoded matches what may be base64.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}={0,2}`)

// text replaces the values in a text, also in what is encoded in it. deep is how often it was
// decoded.
func (h *hider) text(text string, deep int) string {
	if h.names[text] {
		return text
	}
	for _, pair := range h.long {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	text = h.texts.Replace(text)
	if deep >= 2 {
		return text
	}
	return encoded.ReplaceAllStringFunc(text, func(token string) string {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			decoded, err := e.DecodeString(token)
			if err != nil {
				continue
			}
			if hidden := h.text(string(decoded), deep+1); hidden != string(decoded) {
				return e.EncodeToString([]byte(hidden))
			}
			break
		}
		return token
	})
}

// noteLeft names the values that the recording still has.
func (r *Recording) noteLeft(h *hider) {
	var all strings.Builder
	for _, obj := range r.Objects {
		write(&all, obj.Object)
	}
	for _, report := range r.Reports {
		write(&all, report)
	}
	for _, text := range r.Unread {
		write(&all, text)
	}
	for _, v := range h.values {
		core := strings.TrimSpace(v.text)
		if len(core) < shortest || slices.Contains(r.Left, v.of) {
			continue
		}
		if strings.Contains(all.String(), core) || strings.Contains(all.String(), base64.RawStdEncoding.EncodeToString([]byte(core))) {
			r.Left = append(r.Left, v.of)
		}
	}
}

// write writes all texts in a value, and all keys.
func write(to *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			to.WriteString(key + "\x00")
			write(to, child)
		}
	case []any:
		for _, child := range v {
			write(to, child)
		}
	case nil, bool:
	default:
		fmt.Fprint(to, v, "\x00")
	}
}
