// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var every = flag.Int("every", 10, "ask about every n-th probe only; 1 is all")

// refusal is a field error.
type refusal struct {
	Type   field.ErrorType `json:"type"`
	Path   string          `json:"path"`
	Detail string          `json:"detail"`
}

// probed is a line of testdata/probes.jsonl.gz: a change of one field of a sample, and what the real
// server answered.
type probed struct {
	Sample  int       `json:"sample"`
	Stored  object    `json:"stored"`
	Path    []any     `json:"path"`
	Value   any       `json:"value"`
	Becomes any       `json:"becomes"`
	Create  []refusal `json:"create"`
	Update  []refusal `json:"update"`
}

// in returns a copy of an object with the change.
func (p probed) in(o object) object {
	out := runtime.DeepCopyJSON(o)
	var at any = out
	for i, step := range p.Path {
		last := i == len(p.Path)-1
		switch step := step.(type) {
		case string:
			m := at.(object)
			if last && p.Value == nil {
				delete(m, step)
			} else if last {
				m[step] = runtime.DeepCopyJSONValue(p.Value)
			}
			at = m[step]
		case int64:
			list := at.([]any)
			if last && p.Value == nil {
				list[step] = object{}
			} else if last {
				list[step] = runtime.DeepCopyJSONValue(p.Value)
			}
			at = list[step]
		}
	}
	return out
}

func (p probed) String() string {
	var b strings.Builder
	for _, step := range p.Path {
		if i, ok := step.(int64); ok {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, ".%v", step)
		}
	}
	data, err := json.Marshal(p.Value)
	if err != nil {
		panic(err)
	}
	return strings.TrimPrefix(b.String(), ".") + " = " + string(data)
}

// probes returns the samples as the real server stores them, and the probes of all.
func probes(t *testing.T) ([]object, []probed) {
	t.Helper()
	file, err := os.Open("testdata/probes.jsonl.gz")
	must(t, err)
	defer file.Close() //nolint:errcheck // only read from
	unpacked, err := gzip.NewReader(file)
	must(t, err)
	data, err := io.ReadAll(unpacked)
	must(t, err)
	var stored []object
	var list []probed
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var p probed
		must(t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(line), &p))
		if p.Stored != nil {
			stored = append(stored, p.Stored)
			continue
		}
		list = append(list, p)
	}
	return stored, list
}

// prepared is an object as this server validates it.
func prepared(content, old object) (schema.GroupVersionKind, object) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	for name, value := range Empty(gvk) { // as Normalize adds them
		if content[name] == nil {
			content[name] = value
		}
	}
	metadataOf(content)["uid"] = "00000000-0000-0000-0000-000000000001"
	Default(gvk, content)
	if old != nil {
		PrepareUpdate(gvk, content, old, "")
	} else {
		PrepareCreate(gvk, content, func(string) string { return "30099" })
	}
	return gvk, content
}

func refusalsOf(errs field.ErrorList) []refusal {
	var out []refusal
	for _, e := range errs {
		detail, _, _ := strings.Cut(e.Detail, "\n")
		out = append(out, refusal{e.Type, e.Field, detail})
	}
	slices.SortFunc(out, func(a, b refusal) int {
		return strings.Compare(fmt.Sprint(a.Path, a.Type, a.Detail), fmt.Sprint(b.Path, b.Type, b.Detail))
	})
	return slices.Compact(out)
}

// tally counts how the answers compare with the real ones.
type tally struct {
	accepted, refused int            // by the real server
	wrong             []string       // refused here, accepted by the real server
	missed            map[string]int // accepted here, refused by the real server: by kind, path and reason
	missing           int
	same              int // refused with the same causes
}

func (c *tally) add(what string, p probed, want, got []refusal, kind string) {
	switch {
	case len(want) == 0 && len(got) == 0:
		c.accepted++
	case len(want) == 0:
		c.accepted++
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %s %s: %v", what, kind, p, got))
	case len(got) == 0:
		c.refused++
		c.missing++
		c.missed[fmt.Sprintf("%s %s: %s: %s", what, kind, pathOf(p), want[0].Detail)]++
	default:
		c.refused++
		if slices.Equal(want, got) {
			c.same++
		}
	}
}

func pathOf(p probed) string {
	name, _, _ := strings.Cut(p.String(), " = ")
	return name
}

// What the real server accepts is accepted here. What it refuses is refused here, but for a known
// part, and mostly with the same causes.
func TestRulesSayWhatTheRealServerSays(t *testing.T) {
	stored, list := probes(t)
	create, change := tally{missed: map[string]int{}}, tally{missed: map[string]int{}}
	before := make([]object, len(stored))
	for i, o := range stored {
		_, before[i] = prepared(o, o)
	}
	each := *every
	if testing.Short() {
		each *= 10
	}
	for i := 0; i < len(list); i += each {
		p := list[i]
		before := before[p.Sample]
		gvk, obj := prepared(p.in(stored[p.Sample]), nil)
		create.add("create", p, sorted(p.Create), refusalsOf(Validate(gvk, obj)), id(gvk))
		_, obj = prepared(p.in(stored[p.Sample]), before)
		change.add("update", p, sorted(p.Update), refusalsOf(ValidateUpdate(gvk, obj, before, "")), id(gvk))
	}
	for _, c := range []*tally{&create, &change} {
		for _, w := range c.wrong {
			t.Errorf("the real server accepts it: %s", w)
		}
		t.Logf("%d accepted; %d refused, %d with the same causes, %d are accepted here", c.accepted, c.refused, c.same, c.missing)
		if c.missing*100 > c.refused*25 || c.same*100 < c.refused*60 {
			t.Errorf("of %d that the real server refuses, %d are accepted here, and only %d have the same causes", c.refused, c.missing, c.same)
		}
		for _, key := range slices.SortedFunc(maps.Keys(c.missed), func(a, b string) int { return strings.Compare(a, b) }) {
			t.Logf("%4d %s", c.missed[key], key)
		}
	}
}

func sorted(list []refusal) []refusal {
	slices.SortFunc(list, func(a, b refusal) int {
		return strings.Compare(fmt.Sprint(a.Path, a.Type, a.Detail), fmt.Sprint(b.Path, b.Type, b.Detail))
	})
	return list
}

// The samples are stored as the real server stores them.
func TestDefaultsAreThoseOfTheRealServer(t *testing.T) {
	stored, _ := probes(t)
	data, err := os.ReadFile("testdata/samples.yaml")
	must(t, err)
	for i, document := range strings.Split(string(data), "\n---\n") {
		var o object
		text, err := yaml.YAMLToJSON([]byte(document))
		must(t, err)
		must(t, json.Unmarshal(text, &o))
		apiVersion, _ := o["apiVersion"].(string)
		kind, _ := o["kind"].(string)
		content, _, err := Normalize(schema.FromAPIVersionAndKind(apiVersion, kind), text)
		must(t, err)
		content["apiVersion"], content["kind"] = apiVersion, kind
		_, got := prepared(content, nil)
		want := stored[i]
		for _, o := range []object{got, want} {
			delete(o, "status")
			delete(metadataOf(o), "generation")
			delete(metadataOf(o), "creationTimestamp")
			delete(metadataOf(o), "resourceVersion")
			if o["kind"] == "Pod" { // admission plugins of the server set these
				for _, name := range []string{"preemptionPolicy", "priority", "tolerations"} {
					delete(child(o, "spec"), name)
				}
			}
		}
		if text := cmp.Diff(clean(t, want), clean(t, got)); text != "" {
			t.Errorf("sample %d, %s (-real +memory):\n%s", i, got["kind"], text)
		}
	}
}

// clean returns an object as JSON has it.
func clean(t *testing.T, o object) any {
	t.Helper()
	data, err := json.Marshal(o)
	must(t, err)
	var out any
	must(t, json.Unmarshal(data, &out))
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
