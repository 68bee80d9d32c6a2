// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
)

// candidate is a value that a property may get.
type candidate struct {
	kind  Kind
	value any
	why   string
}

// valuesOf returns the values that a property may get. value is what it has; nil if it is not there.
func valuesOf(name string, s *structuralschema.Structural, value any) []candidate {
	if s.XIntOrString {
		return texts(name, s, value)
	}
	switch s.Type {
	case "boolean":
		has, _ := value.(bool)
		return []candidate{{Changed, !has, ""}}
	case "integer", "number":
		return integers(s, value)
	case "string":
		return texts(name, s, value)
	case "array":
		if items, ok := value.([]any); ok && len(items) > 0 {
			return []candidate{{Empty, []any{}, ""}}
		}
	case "object":
		if m, ok := value.(map[string]any); ok && len(m) > 0 {
			return []candidate{{Empty, map[string]any{}, ""}}
		}
	}
	return nil
}

// integers returns values of a number. Without a minimum, a number below zero is the mistake that
// the API server does not refuse.
func integers(s *structuralschema.Structural, value any) []candidate {
	low, high, bounded := bounds(s)
	has, there := numberOf(value)
	var list []candidate
	if enum := others(s, value); len(enum) > 0 {
		return enum
	}
	next := max(low, 1)
	if there {
		next = has + 1
		if next > high {
			next = has - 1
		}
	}
	if next >= low && next <= high {
		list = append(list, candidate{Changed, next, ""})
	}
	if bounded {
		list = append(list, candidate{Minimum, low, ""})
	} else {
		list = append(list, candidate{Minimum, int64(0), ""}, candidate{Wrong, int64(-1), "below zero"})
	}
	if high != math.MaxInt64 {
		list = append(list, candidate{Maximum, high, ""})
	}
	return list
}

// bounds returns the smallest and the largest number that a schema allows, and whether it says what
// the smallest is.
func bounds(s *structuralschema.Structural) (low, high int64, bounded bool) {
	low, high = math.MinInt64, math.MaxInt64
	v := s.ValueValidation
	if v == nil {
		return low, high, false
	}
	if v.Minimum != nil {
		low, bounded = int64(math.Ceil(*v.Minimum)), true
		if v.ExclusiveMinimum && float64(low) == *v.Minimum {
			low++
		}
	}
	if v.Maximum != nil && *v.Maximum < 1<<53 {
		high = int64(math.Floor(*v.Maximum))
		if v.ExclusiveMaximum && float64(high) == *v.Maximum {
			high--
		}
	}
	return low, high, bounded
}

func numberOf(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// others returns the values of an enumeration but for the one that is there.
func others(s *structuralschema.Structural, value any) []candidate {
	if s.ValueValidation == nil {
		return nil
	}
	var list []candidate
	for _, e := range s.ValueValidation.Enum {
		if e.Object != nil && !equal(e.Object, value) {
			list = append(list, candidate{Changed, e.Object, ""})
		}
	}
	return list
}

// texts returns values of a string, or of a quantity.
func texts(name string, s *structuralschema.Structural, value any) []candidate {
	if enum := others(s, value); len(enum) > 0 {
		return enum
	}
	has, there := value.(string)
	if n, ok := numberOf(value); ok {
		return []candidate{{Changed, n + 1, ""}, {Minimum, int64(0), ""}, {Wrong, "no-such-port", "not a number"}}
	}
	var list []candidate
	meant := meaningOf(name, s, has)
	if another := meant.another(has); another != "" && (there || meant.invents) {
		list = append(list, candidate{Changed, another, ""})
	}
	for _, w := range meant.wrong {
		list = append(list, candidate{Wrong, w.value, w.why})
	}
	if there {
		list = append(list, candidate{Empty, "", ""})
	}
	if v := s.ValueValidation; v != nil && v.MaxLength != nil && *v.MaxLength <= 1024 && there && has != "" {
		list = append(list, candidate{Maximum, strings.Repeat("x", int(*v.MaxLength)), ""})
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return !allows(s, c.value) })
}

// allows reports whether the validations of a string let a value through, as far as they are
// checked here.
func allows(s *structuralschema.Structural, value any) bool {
	text, ok := value.(string)
	v := s.ValueValidation
	if !ok || v == nil {
		return true
	}
	n := int64(utf8.RuneCountInString(text))
	if v.MinLength != nil && n < *v.MinLength || v.MaxLength != nil && n > *v.MaxLength {
		return false
	}
	if v.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(v.Pattern)
	return err != nil || pattern.MatchString(text)
}

// A meaning is what a text stands for, by the name of its property, its format, or the value that it
// has.
type meaning struct {
	matches func(name string, s *structuralschema.Structural, has string) bool
	invents bool // a value is known, also where the object has none
	another func(has string) string
	wrong   []struct{ value, why string }
}

type wrong = []struct{ value, why string }

var (
	imagePattern    = regexp.MustCompile(`^[a-z0-9./-]+(:[A-Za-z0-9._-]+)?(@sha256:[0-9a-f]+)?$`)
	cronPattern     = regexp.MustCompile(`^(@[a-z]+|(\S+\s+){4}\S+)$`)
	durationPattern = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`)
)

func constant(text string) func(string) string { return func(string) string { return text } }

// meanings are tried in this order; the last one matches each text.
var meanings = []meaning{
	{
		func(name string, _ *structuralschema.Structural, has string) bool {
			return strings.HasSuffix(name, "image") && (has == "" || imagePattern.MatchString(has))
		}, true,
		func(has string) string { return strings.Split(has, "@")[0] + "-2" }, wrong{{"registry.invalid/none:0", "no such image"}, {"not an image", "not a reference"}},
	},
	{
		func(name string, _ *structuralschema.Structural, has string) bool {
			return strings.Contains(name, "schedule") || strings.Contains(name, "cron") || cronPattern.MatchString(has)
		}, true,
		func(has string) string {
			if has == "7 3 * * *" {
				return "8 3 * * *"
			}
			return "7 3 * * *"
		}, wrong{{"99 99 * * *", "no such time"}, {"never", "not a schedule"}},
	},
	{
		func(name string, s *structuralschema.Structural, has string) bool {
			return format(s) == "uri" || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri") || strings.Contains(has, "://")
		}, true,
		constant("http://other.example.com/"), wrong{{"http://no-such-host.invalid/", "no such host"}, {"://", "not a URL"}},
	},
	{
		func(name string, s *structuralschema.Structural, has string) bool {
			return format(s) == "duration" || durationPattern.MatchString(has) || has == "" && (strings.HasSuffix(name, "interval") || strings.HasSuffix(name, "timeout") || strings.HasSuffix(name, "duration"))
		}, true,
		func(has string) string {
			if has == "90s" {
				return "91s"
			}
			return "90s"
		}, wrong{{"0s", "no time"}, {"-1s", "below zero"}, {"soon", "not a duration"}},
	},
	{
		func(name string, s *structuralschema.Structural, has string) bool {
			_, err := resource.ParseQuantity(has)
			return s.XIntOrString && (has == "" || err == nil) || err == nil && (name == "storage" || name == "size" || name == "memory" || name == "cpu")
		}, true,
		func(has string) string {
			q, err := resource.ParseQuantity(has)
			if err != nil {
				return "1Gi"
			}
			more := q.DeepCopy()
			more.Add(q)
			return more.String()
		}, wrong{{"0", "none"}, {"-1", "below zero"}, {"much", "not a quantity"}},
	},
	{
		func(name string, _ *structuralschema.Structural, _ string) bool {
			return strings.HasSuffix(name, "ref") || strings.HasSuffix(name, "secret") || strings.HasSuffix(name, "name") || strings.HasSuffix(name, "configmap")
		}, false,
		func(has string) string { return has + "-2" }, wrong{{"no-such-object", "no such object"}, {"Not A Name", "not a name"}},
	},
	{
		func(string, *structuralschema.Structural, string) bool { return true }, false,
		func(has string) string {
			if has == "" {
				return "other"
			}
			return has + "2"
		}, nil,
	},
}

func format(s *structuralschema.Structural) string {
	if s.ValueValidation == nil {
		return ""
	}
	return s.ValueValidation.Format
}

func meaningOf(name string, s *structuralschema.Structural, has string) meaning {
	name = strings.ToLower(name)
	i := slices.IndexFunc(meanings, func(m meaning) bool { return m.matches(name, s, has) })
	return meanings[i]
}
