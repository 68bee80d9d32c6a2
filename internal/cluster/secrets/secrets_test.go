// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets/secretstest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
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

// A value is found in every form.
func TestValuesAreFoundInEveryForm(t *testing.T) {
	for _, canary := range secretstest.Canaries {
		values := valuesOf("password", canary)
		for name, form := range secretstest.Forms {
			checkFound(t, values, name, canary, form(canary))
		}
	}
}

// A value is found in every form of a form: here each pair with one of the values.
func TestValuesAreFoundInFormsOfForms(t *testing.T) {
	values := make([]*secrets.Values, len(secretstest.Canaries))
	for n, canary := range secretstest.Canaries {
		values[n] = valuesOf("password", canary)
	}
	pair := 0
	for _, first := range secretstest.Names() {
		for _, second := range secretstest.Names() {
			for n, canary := range secretstest.Canaries {
				if rings.Exploring() || pair%len(values) == n {
					checkFound(t, values[n], first+" in "+second, canary, secretstest.Forms[second]("x="+secretstest.Forms[first](canary)))
				}
			}
			pair++
		}
	}
}

// checkFound checks that a value is hidden in a text that has it.
func checkFound(t *testing.T, values *secrets.Values, form, canary, written string) {
	t.Helper()
	text := "before " + written + " after"
	if got := values.Redact(text); got == text || !strings.Contains(got, secrets.Hidden) || strings.Contains(got, "canary") {
		t.Errorf("%s: %q stays in %q: %q", form, canary, text, got)
	}
}

// Any text is found in any form, and nothing that reads as it is left.
func TestAnyValueIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ -~ü&<>'"%+\\\n]{0,20}[a-z0-9]{3}[ -~]{0,3}[a-z0-9]{3}`).Draw(t, "value")
		value = strings.TrimSpace(value)
		name := rapid.SampledFrom(secretstest.Names()).Draw(t, "form")
		text := "{" + secretstest.Forms[name](value) + "}"
		if got := valuesOf("x", value).Redact(text); got == text {
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
		"a line of a key":    {secretstest.Key, "MHcCAQEEIBvK0pZ4u0m7xQ3aR5n9kXo2cT1JwYdHf6eLs8gVqWzEoAoGCCqGSM49"},
		"the end of a key":   {secretstest.Key, "AwEHoUQDQgAE3k1fQ2xNn7b0"},
		"a URL within JSON":  {`{"dsn":"amqp://u:hunter22@mq"}`, "hunter22"},
		"a header in base64": {base64.StdEncoding.EncodeToString([]byte("Bearer hunter22")), "hunter22"},
	} {
		text := "it is " + secretstest.Forms["JSON of kubectl"](test.part) + "!"
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

// The work for a hostile text grows as the text does, and no faster.
func TestWorkGrowsAsHostileTextsDo(t *testing.T) {
	values := valuesOf("a", `\\\\\\\\\\\\\\\\\\\\x`, "b", "''y", "c", "%25%25%25%25z", "d", "&amp;&amp;&amp;q", "e", "\n\n\n\n\n\n\nlast", "f", "ordinary-value-1")
	values.Redact("what is searched for is made once")
	const size, times = 128, 8
	for _, part := range []string{`\`, `'`, `%25`, `&amp;`, "\r\n ", `\\u0026amp;%2526`, "A", "ordinary-value", `\"''%27&#39;`} {
		work := func(length int) uint64 {
			text := strings.Repeat(part, length/len(part))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			values.Redact(text)
			values.Trace([]string{text})
			runtime.ReadMemStats(&after)
			return after.Mallocs - before.Mallocs
		}
		if short, long := work(size), work(times*size); long > 2*times*short {
			t.Errorf("%q, %d times as long: %d allocations instead of %d", part, times, long, short)
		} else {
			t.Logf("%q, %d times as long: %d allocations instead of %d", part, times, long, short)
		}
	}
}

// Nothing that is searched or that is a value stops the search, and what is found is not there
// afterwards.
func FuzzRedact(f *testing.F) {
	for _, canary := range secretstest.Canaries {
		for _, form := range secretstest.Forms {
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
