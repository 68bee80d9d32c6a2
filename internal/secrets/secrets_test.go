// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/secrets"
)

func secret(data ...string) *unstructured.Unstructured {
	entries := map[string]any{}
	for pair := range slices.Chunk(data, 2) {
		entries[pair[0]] = base64.StdEncoding.EncodeToString([]byte(pair[1]))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db", "namespace": "shop"}, "data": entries,
	}}
}

func valuesOf(data ...string) *secrets.Values {
	values := new(secrets.Values)
	values.Add(secret(data...))
	return values
}

// forms are the ways in which programs write a text into another one.
var forms = map[string]func(string) string{
	"as it is":          func(s string) string { return s },
	"JSON of kubectl":   asJSON,
	"JSON without HTML": func(s string) string { return plainJSON(s) },
	"%q of Go":          func(s string) string { return fmt.Sprintf("%q", s) },
	"ASCII of Go":       strconv.QuoteToASCII,
	"a query of a URL":  url.QueryEscape,
	"a path of a URL":   url.PathEscape,
	"the user of a URL": func(s string) string {
		return (&url.URL{Scheme: "db", User: url.UserPassword("u", s), Host: "h"}).String()
	},
	"a URL in lower case":     func(s string) string { return lowerPercent(url.QueryEscape(s)) },
	"hexadecimal":             func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hexadecimal, upper case": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hexadecimal, after 0x":   func(s string) string { return "0x" + hex.EncodeToString([]byte(s)) },
	"base64":                  func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 of URLs":          func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 without padding":  func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 of user and it":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("us:" + s)) },
	"base64 after letters":    func(s string) string { return "xyz" + base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 in lines": func(s string) string {
		return lines(base64.StdEncoding.EncodeToString([]byte("some more before it: "+s)), 20)
	},
	"YAML":                     asYAML,
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

const key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBvK0pZ4u0m7xQ3aR5n9kXo2cT1JwYdHf6eLs8gVqWzEoAoGCCqGSM49\nAwEHoUQDQgAE3k1fQ2xNn7b0\n-----END EC PRIVATE KEY-----\n"

var canaries = []string{
	`p@ss$w0rd&x-Zq9<`, `p"w/d?canary\7261 ü`, `it's "100%" <b>&amp; \n $HOME ` + "`id`", "two\nlines & more", "a+b/c=d e%20f", "\u00fc\u00df\u4e16\U0001f511 key", strings.TrimSpace(key), "hunter2",
}

// A value is found in every form, and in every form of a form.
func TestValuesAreFoundInEveryForm(t *testing.T) {
	for _, canary := range canaries {
		values := valuesOf("password", canary)
		for first, inner := range forms {
			for second, outer := range forms {
				text := "before " + outer("x="+inner(canary)) + " after"
				redacted := values.Redact(text)
				if redacted == text || !strings.Contains(redacted, secrets.Hidden) {
					t.Errorf("%s in %s: %q stays in %q", first, second, canary, text)
				}
			}
			if text := inner(canary); strings.Contains(values.Redact(text), "canary") {
				t.Errorf("%s: %q stays in %q", first, canary, text)
			}
		}
	}
}

// Any text is found in any form, and nothing that reads as it is left.
func TestAnyValueIsFound(t *testing.T) {
	names := make([]string, 0, len(forms))
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ -~ü&<>'"%+\\\n]{0,20}[a-z0-9]{3}[ -~]{0,3}[a-z0-9]{3}`).Draw(t, "value")
		value = strings.TrimSpace(value)
		for strings.Contains(value, "\n ") { // a block of YAML whose lines begin with spaces of their own is not read
			value = strings.ReplaceAll(value, "\n ", "\n")
		}
		name := rapid.SampledFrom(names).Draw(t, "form")
		text := "{" + forms[name](value) + "}"
		if got := valuesOf("x", value).Redact(text); !strings.Contains(got, secrets.Hidden) && !strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(secrets.Hidden))) {
			t.Fatalf("%s: %q stays in %q", name, value, got)
		}
	})
}

// The parts of a value are found without the rest.
func TestPartsAreFound(t *testing.T) {
	for name, test := range map[string]struct{ value, part string }{
		"a URL":              {"postgres://app:s3cr%3Ft-pw@db:5432/orders?sslmode=off", "s3cr?t-pw"},
		"a URL, as written":  {"postgres://app:s3cr%3Ft-pw@db:5432/orders", "s3cr%3Ft-pw"},
		"a registry":         {`{"auths":{"r.example.com":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("robot:T0p-s3cret")) + `"}}}`, "T0p-s3cret"},
		"JSON":               {`{"a":[{"password":"correcthorse"}]}`, "correcthorse"},
		"a number":           {`{"pin":73190021}`, "73190021"},
		"YAML":               {"users:\n- name: me\n  user:\n    token: abc.def.ghi\n", "abc.def.ghi"},
		"variables":          {"# x\nexport DB_PASSWORD='correct horse'\nA=b\n", "correct horse"},
		"a connection":       {"host=db user=app password=hunter22 dbname=x", "hunter22"},
		"ADO":                {"Server=db;User Id=a;Pwd=hunter22;", "hunter22"},
		"a header":           {"Authorization: Bearer eyJabc.def", "eyJabc.def"},
		"a line of a key":    {key, "MHcCAQEEIBvK0pZ4u0m7xQ3aR5n9kXo2cT1JwYdHf6eLs8gVqWzEoAoGCCqGSM49"},
		"the end of a key":   {key, "AwEHoUQDQgAE3k1fQ2xNn7b0"},
		"a URL within JSON":  {`{"dsn":"amqp://u:hunter22@mq"}`, "hunter22"},
		"a header in base64": {base64.StdEncoding.EncodeToString([]byte("Bearer hunter22")), "hunter22"},
	} {
		text := "it is " + asJSON(test.part) + "!"
		if got := valuesOf("x", test.value).Redact(text); !strings.Contains(got, secrets.Hidden) {
			t.Errorf("%s: %q stays in %q", name, test.part, got)
		}
	}
}

// What is no value stays: words and names in documents that a Secret has, and what is only alike.
func TestTheRestStays(t *testing.T) {
	values := valuesOf("config", "kind: Cluster\nhost: registry.example.com\nnamespace: kube-system\npassword: hunter22\n", "short", "12345", "user", "postgres-7")
	values.Keep("postgres-7")
	for _, text := range []string{
		"kind: Cluster", "registry.example.com/app:v1", "kube-system", "hunter 22", "12345", "postgres-7", "image: postgres-7", `{"a":"b\u0026c"}`, "aGVsbG8gd29ybGQ=", "\x00\xff\\", "%", "&", `\u00`, "",
	} {
		if got := values.Redact(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := values.Trace([]string{"name: postgres-7", "kube-system"}); len(got.Unsure) > 0 || !slices.Equal(got.Named, []string{"Secret shop/db, key user"}) {
		t.Errorf("left: %+v", got)
	}
}

// What a search does not know is named: letters of a value in a form that no one has heard of.
func TestTraceNamesWhatItDoesNotKnow(t *testing.T) {
	values := valuesOf("password", `p@ss$w0rd&x-Zq9<`)
	deep := `p@ss$w0rd&x-Zq9<`
	for range 7 {
		deep = base64.StdEncoding.EncodeToString([]byte("the next level: " + deep))
	}
	for _, test := range []struct{ text, want string }{
		{"p.@.s.s.$.w.0.r.d.&.x.-.Z.q.9.<", "Secret shop/db, key password"},
		{deep, secrets.TooDeep},
	} {
		if got := values.Trace([]string{"x", test.text}); !slices.Contains(got.Unsure, test.want) {
			t.Errorf("%s: left %+v", test.text, got)
		}
	}
	if got := values.Trace([]string{"password", "a & b", "zq9"}); len(got.Unsure)+len(got.Named) > 0 {
		t.Errorf("left of nothing: %+v", got)
	}
}

// A Secret is shown without its values, wherever they are in it.
func TestRedactObject(t *testing.T) {
	s := secret("password", "p@ss$w0rd&x", "pin", "1234")
	s.Object["stringData"] = map[string]any{"more": "further"}
	s.SetAnnotations(map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"cEBzcyR3MHJkJng="},"stringData":{"old":"former-pw"}}`,
		"note": "is p@ss$w0rd\\u0026x", "pin": "1234", "version": "1.2.3",
	})
	before := s.DeepCopy()
	got := new(secrets.Values).RedactObject(s)
	want := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secrets.Hidden, "note": "is " + secrets.Hidden, "pin": secrets.Hidden, "version": "1.2.3"}
	if fmt.Sprint(got.GetAnnotations()) != fmt.Sprint(want) || fmt.Sprint(got.Object["data"]) != "map[password:(hidden) pin:(hidden)]" || fmt.Sprint(got.Object["stringData"]) != "map[more:(hidden)]" {
		t.Errorf("got %v", got.Object)
	}
	if fmt.Sprint(before) != fmt.Sprint(s) {
		t.Error("the Secret itself has changed")
	}
}

// A long hostile text takes no long time.
func TestHostileTextsTakeNoLongTime(t *testing.T) {
	values := valuesOf("a", `\\\\\\\\\\\\\\\\\\\\x`, "b", "''''''''''''''''''''y", "c", "%25%25%25%25z", "d", "&amp;&amp;&amp;q", "e", "\n\n\n\n\n\n\nlast", "f", "ordinary-value-1")
	for _, part := range []string{`\`, `'`, `%25`, `&amp;`, "\r\n ", `\\u0026amp;%2526`, "A", "ordinary-value", `\"''%27&#39;`} {
		began := time.Now()
		text := strings.Repeat(part, 1<<12/len(part))
		values.Redact(text)
		values.Trace([]string{text})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q takes %s", part, took)
		} else {
			t.Logf("%q takes %s", part, took)
		}
	}
}

// Nothing that is searched or that is a value stops the search, and what is found is not there
// afterwards.
func FuzzRedact(f *testing.F) {
	for _, canary := range canaries {
		for _, form := range forms {
			f.Add(canary, form(canary))
		}
	}
	f.Fuzz(func(t *testing.T, value, text string) {
		values := valuesOf("x", value)
		values.Trace([]string{text})
		core := strings.TrimSpace(value)
		if len(core) < secrets.Shortest || strings.Contains(secrets.Hidden, core) {
			return
		}
		if got := values.Redact("<" + core + ">" + text); strings.HasPrefix(got, "<"+core+">") {
			t.Errorf("%q stays in %q", core, got)
		}
	})
}
