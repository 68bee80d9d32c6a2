// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package secretstest has the forms in which programs write a text into another one, and values of
// Secrets for which each of them is different: for tests of what must not show any.
package secretstest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Key is a private key.
const Key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBvK0pZ4u0m7xQ3aR5n9kXo2cT1JwYdHf6eLs8gVqWzEoAoGCCqGSM49\nAwEHoUQDQgAE3k1fQ2xNn7b0\n-----END EC PRIVATE KEY-----\n"

// Canaries are values with each class of characters.
var Canaries = []string{
	`p@ss$w0rd&x-Zq9<`, `p"w/d?canary\7261 ü`, `it's "100%" <b>&amp; \n $HOME ` + "`id`", "two\nlines & more", "own:\n  - spaces: in\n    lines",
	"a+b/c=d e%20f", "\u00fc\u00df\u4e16\U0001f511 key", strings.TrimSpace(Key), "hunter2",
}

// Names returns the names of all forms, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Forms)) }

// Forms write a text as it is written into others.
var Forms = map[string]func(string) string{
	"as it is":          func(s string) string { return s },
	"JSON of kubectl":   asJSON,
	"JSON in JSON":      func(s string) string { return asJSON(asJSON(s)) },
	"JSON without HTML": plainJSON,
	"JSON in base64": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"password":` + asJSON(s) + "}"))
	},
	"JSON, each character":    func(s string) string { return each(s, `\u%04x`, 0xffff) },
	"%q of Go":                func(s string) string { return fmt.Sprintf("%q", s) },
	"ASCII of Go":             strconv.QuoteToASCII,
	"JavaScript":              template.JSEscapeString,
	"bytes of C":              func(s string) string { return bytewise(s, `\x%02x`) },
	"octal bytes of C":        func(s string) string { return bytewise(s, `\%03o`) },
	"a query of a URL":        url.QueryEscape,
	"a path of a URL":         url.PathEscape,
	"the user of a URL":       userOfURL,
	"a URL in JSON":           func(s string) string { return asJSON(userOfURL(s)) },
	"a URL in lower case":     func(s string) string { return lowerPercent(url.QueryEscape(s)) },
	"a URL in a URL":          func(s string) string { return url.QueryEscape(userOfURL(s)) },
	"a URL, each byte":        func(s string) string { return bytewise(s, "%%%02X") },
	"hexadecimal":             func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hexadecimal in capitals": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hexadecimal, after 0x":   func(s string) string { return "0x" + hex.EncodeToString([]byte(s)) },
	"base64":                  func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 twice":            func(s string) string { return twice(base64.StdEncoding.EncodeToString, s) },
	"base64 of URLs":          func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 without padding":  func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 of user and it":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("us:" + s)) },
	"base64 after letters":    func(s string) string { return "xyz" + base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 in lines": func(s string) string {
		return lines(base64.StdEncoding.EncodeToString([]byte("some more before it: "+s)), 20)
	},
	"YAML":                     asYAML,
	"YAML in JSON":             func(s string) string { return asJSON(asYAML(s)) },
	"a block of YAML":          func(s string) string { return "key: |\n    " + strings.ReplaceAll(s, "\n", "\n    ") },
	"lines of Windows":         func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"single quotes of a shell": func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	"quotes in quotes":         func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
	"double quotes of a shell": func(s string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s)
	},
	"single quotes of YAML": func(s string) string { return strings.ReplaceAll(s, "'", "''") },
	"CSV":                   func(s string) string { return strings.ReplaceAll(s, `"`, `""`) },
	"HTML":                  html.EscapeString,
	"HTML, each character":  func(s string) string { return each(s, "&#%d;", 0x10ffff) },
	"HTML, in hexadecimal":  func(s string) string { return each(s, "&#x%X;", 0x10ffff) },
	"XML":                   asXML,
}

func asJSON(s string) string {
	text, _ := json.Marshal(s) //nolint:errcheck // a string
	return string(text)
}

func plainJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) //nolint:errcheck // a string
	return strings.TrimSpace(b.String())
}

func asYAML(s string) string {
	text, _ := yaml.Marshal(map[string]string{"key": s}) //nolint:errcheck // a string
	return string(text)
}

func asXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) //nolint:errcheck // a buffer
	return b.String()
}

func userOfURL(s string) string {
	return (&url.URL{Scheme: "db", User: url.UserPassword("u", s), Host: "h"}).String()
}

// each writes each character up to the last one in a format; the others stay.
func each(s, format string, last rune) string {
	var b strings.Builder
	for _, r := range s {
		if r > last {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func bytewise(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func twice(encode func([]byte) string, s string) string { return encode([]byte(encode([]byte(s)))) }

func lowerPercent(s string) string {
	b := []byte(s)
	for i := range b {
		if i > 0 && b[i-1] == '%' || i > 1 && b[i-2] == '%' {
			b[i] = bytes.ToLower(b[i : i+1])[0]
		}
	}
	return string(b)
}

func lines(s string, n int) string {
	var all []string
	for part := range slices.Chunk([]byte(s), n) {
		all = append(all, string(part))
	}
	return strings.Join(all, "\n  ")
}
