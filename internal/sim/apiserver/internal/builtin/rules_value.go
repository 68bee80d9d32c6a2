// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// formats are the formats that rules name. The generator knows the same.
var formats = map[string]func(string) []string{
	"label":         validation.IsDNS1123Label,
	"label1035":     validation.IsDNS1035Label,
	"subdomain":     validation.IsDNS1123Subdomain,
	"subdomainCaps": validation.IsDNS1123SubdomainWithUnderscore,
	"wildcard":      validation.IsWildcardDNS1123Subdomain,
	"labelKey":      content.IsLabelKey,
	"qualifiedName": validation.IsQualifiedName,
	"labelValue":    validation.IsValidLabelValue,
	"configMapKey":  validation.IsConfigMapKey,
	"envVar":        validation.IsEnvVarName,
	"relaxedEnvVar": validation.IsRelaxedEnvVarName,
	"portName":      validation.IsValidPortName,
	"httpHeader":    validation.IsHTTPHeaderName,
	"pathSegment":   content.IsPathSegmentName,
	"ip":            func(s string) []string { return details(validation.IsValidIP(nil, s)) },
	"cidr":          func(s string) []string { return details(validation.IsValidCIDR(nil, s)) },
}

func details(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Detail)
	}
	return out
}

func (c *checker) format(name string, text string, value any, at *step) {
	if name == "" || text == "" {
		return
	}
	for _, detail := range formats[name](text) {
		c.refuse(&refusedAs{field.ErrorTypeInvalid, detail}, at, value)
	}
}

func (c *checker) text(r *rule, text string, at *step) {
	switch {
	case text == "":
	case r.Prefix != "" && !strings.HasPrefix(text, r.Prefix), r.Enum != nil && r.EnumAs != nil && !slices.Contains(r.Enum, text):
		c.refuse(r.EnumAs, at, text)
	case r.Enum != nil && !slices.Contains(r.Enum, text):
		quoted := make([]string, len(r.Enum))
		for i, v := range r.Enum {
			quoted[i] = strconv.Quote(v)
		}
		c.refuse(&refusedAs{field.ErrorTypeNotSupported, "supported values: " + strings.Join(quoted, ", ")}, at, text)
	}
	c.format(r.Format, text, text, at)
	if r.Min == nil && r.Max == nil && r.Values == "" && r.Refused == nil {
		return
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil:
			c.refusedValue(r, "text", text, at)
		case n < 0:
			c.refusedValue(r, "percent<0", text, at)
		case n > 100:
			c.refusedValue(r, "percent>100", text, at)
		}
		return
	}
	if r.Values != "" || r.Refused != nil {
		c.format(r.Values, text, text, at)
		c.refusedValue(r, "text", text, at)
		return
	}
	if q, err := resource.ParseQuantity(text); err == nil && r.Min != nil {
		if q.CmpInt64(r.Min.Value) < 0 {
			c.refuse(&r.Min.refusedAs, at, text)
		}
	}
}

func (c *checker) refusedValue(r *rule, key, text string, at *step) {
	if as, ok := r.Refused[key]; ok {
		c.refuse(&as, at, text)
	}
}

func (c *checker) number(r *rule, n int64, at *step) {
	switch {
	case r.Min != nil && n < r.Min.Value:
		c.refuse(&r.Min.refusedAs, at, n)
	case r.Max != nil && n > r.Max.Value:
		c.refuse(&r.Max.refusedAs, at, n)
	}
}

// unique checks that the elements of a list, or a field of them, differ.
func (c *checker) unique(name string, list []any, at *step) {
	for i, e := range list {
		value, here := e, &step{parent: at, index: i}
		if name != "" {
			o, _ := e.(object)
			value, here = o[name], &step{parent: here, name: name}
		}
		if value == nil || value == "" {
			continue
		}
		for _, earlier := range list[:i] {
			if name != "" {
				o, _ := earlier.(object)
				earlier = o[name]
			}
			if reflect.DeepEqual(earlier, value) {
				c.refuse(&refusedAs{Type: field.ErrorTypeDuplicate}, here, value)
				break
			}
		}
	}
}

func (c *checker) entry(r *rule, key string, value any, at *step) {
	if r.Keys != "" {
		for _, detail := range formats[r.Keys](key) {
			c.refuse(&refusedAs{field.ErrorTypeInvalid, detail}, at, key)
		}
	}
	if text, ok := value.(string); ok {
		c.format(r.Values, text, text, at)
	}
}

// checkConstants checks the changes of an object by the rules of its kind.
func checkConstants(gvk schema.GroupVersionKind, obj, old object) field.ErrorList {
	n := ruleBook()[id(gvk)]
	if n == nil {
		return nil
	}
	var c checker
	c.constants(n, obj, old, nil)
	return c.errs
}

func (c *checker) constants(n *node, obj, old object, at *step) {
	for _, f := range n.fields {
		if !f.fixed {
			continue
		}
		is, was := obj[f.name], old[f.name]
		here := &step{parent: at, in: obj, name: f.name}
		if !isFixed(here) {
			continue
		}
		for _, constant := range f.constants {
			if changedExcept(is, was, "", constant.Except) {
				err := constant.at(here.path(), is)
				if is == nil {
					err.BadValue = nil // most are pointers, of which the error says that they are null
				}
				c.errs = append(c.errs, err)
			}
		}
		a, _ := is.(object)
		b, _ := was.(object)
		if a != nil && b != nil {
			c.constants(f, a, b, here)
		}
	}
}

// equal compares two values as the real server does, for which an empty list or map is none.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) || hollow(a) && hollow(b) }

// hollow reports whether a value may be that of a field that is not set. For pointers it is another
// one, which the rules do not know: such a change is not refused.
func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case int64:
		return v == 0
	case bool:
		return !v
	case object:
		for _, e := range v {
			if !hollow(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// changedExcept reports whether two values differ in anything but the excepted paths.
func changedExcept(is, was any, at string, except []string) bool {
	if slices.Contains(except, at) && at != "" || equal(is, was) {
		return false
	}
	a, aIsObject := is.(object)
	b, bIsObject := was.(object)
	if aIsObject && bIsObject || aIsObject && was == nil || bIsObject && is == nil {
		for name := range a {
			if changedExcept(a[name], b[name], strings.TrimPrefix(at+"."+name, "."), except) {
				return true
			}
		}
		for name := range b {
			if _, both := a[name]; !both && changedExcept(nil, b[name], strings.TrimPrefix(at+"."+name, "."), except) {
				return true
			}
		}
		return false
	}
	x, xIsList := is.([]any)
	y, yIsList := was.([]any)
	if xIsList && yIsList && len(x) == len(y) {
		for i := range x {
			if changedExcept(x[i], y[i], at+"[]", except) {
				return true
			}
		}
		return false
	}
	return true
}
