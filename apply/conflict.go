// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
)

// applyRest applies an object without the fields that others have set.
func (c *child) applyRest(ctx context.Context, conflict error, uid string, options ...client.PatchOption) (client.Object, error) {
	content := runtime.DeepCopyJSON(c.content)
	conflicts := conflictsOf(conflict)
	for _, cause := range conflicts {
		if !removePath(content, cause.Field) {
			return nil, fmt.Errorf("leaving %s of %s to its manager: the path is not known: %w", cause.Field, c.Ref, conflict)
		}
	}
	if len(conflicts) == 0 {
		return nil, conflict // of versions: it is retried
	}
	return c.apply(ctx, content, "uid", uid, options...)
}

// stopped is the failure of an object that must not take fields from others.
func stopped(ref Ref, err error) error {
	conflicts := conflictsOf(err)
	if len(conflicts) == 0 {
		return err // of versions: it is retried
	}
	texts := make([]string, len(conflicts))
	for i, cause := range conflicts {
		texts[i] = strings.TrimPrefix(cause.Field, ".") + " (" + cause.Message + ")"
	}
	return failure.Terminal(fmt.Errorf("%s: others have set %s", ref, strings.Join(texts, ", ")), reasonFieldConflict, "have the other manager give the fields up, or remove them from the set")
}

// conflictsOf returns the fields that other field managers have.
func conflictsOf(err error) []metav1.StatusCause {
	var conflicts []metav1.StatusCause
	for _, cause := range causesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, cause)
		}
	}
	return conflicts
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// removePath removes a field from content, by its path as conflicts name it:
// `.spec.template.spec.containers[name="web"].image`. It reports whether there is such a field.
func removePath(content any, path string) bool {
	fields, ok := content.(map[string]any)
	if !ok {
		return false
	}
	for name, below := range fields { // names may have dots: the path alone does not say where they end
		rest, found := strings.CutPrefix(path, "."+name)
		switch {
		case !found:
		case rest == "":
			delete(fields, name)
			return true
		case rest[0] == '.' && removePath(below, rest):
			return true
		case rest[0] == '[':
			items, _ := below.([]any)
			if kept, removed := removeItem(items, rest); removed {
				fields[name] = kept
				return true
			}
		}
	}
	return false
}

// removeItem removes an item of a list, or a field of it.
func removeItem(items []any, path string) ([]any, bool) {
	element, rest, ok := cutElement(path)
	if !ok {
		return items, false
	}
	for i, item := range items {
		if !matches(item, element) {
			continue
		}
		if rest == "" {
			return append(items[:i:i], items[i+1:]...), true
		}
		return items, removePath(item, rest)
	}
	return items, false
}

// matches reports whether an item of a list is the one of an element such as `name="web"`,
// `containerPort=80,protocol="TCP"` or `="value"`.
func matches(item any, element string) bool {
	if element == "" {
		return false
	}
	for element != "" {
		pair := element[:endOfPair(element)]
		element = strings.TrimPrefix(element[len(pair):], ",")
		key, text, _ := strings.Cut(pair, "=")
		wanted, ok := valueIn(text)
		if !ok {
			return false
		}
		have := item
		if key != "" {
			fields, _ := item.(map[string]any)
			if have = fields[key]; have == nil {
				continue // a key that is left to its default
			}
		}
		if n, isNumber := have.(int64); isNumber {
			have = float64(n)
		}
		if !reflect.DeepEqual(have, wanted) {
			return false
		}
	}
	return true
}

// valueIn returns the value that a path has for a key: a number or a boolean, or a string as Go
// quotes it.
func valueIn(text string) (value any, ok bool) {
	if strings.HasPrefix(text, `"`) {
		value, err := strconv.Unquote(text)
		return value, err == nil
	}
	return value, json.Unmarshal([]byte(text), &value) == nil
}

// endOfPair returns where the first pair of an element ends: at a comma that is in no value.
func endOfPair(element string) int {
	quoted := false
	for i := 0; i < len(element); i++ {
		switch {
		case element[i] == '\\' && quoted:
			i++
		case element[i] == '"':
			quoted = !quoted
		case element[i] == ',' && !quoted:
			return i
		}
	}
	return len(element)
}

// cutElement cuts the item in brackets off a path that begins with it.
func cutElement(path string) (element, rest string, ok bool) {
	quoted := false
	for i := 1; i < len(path); i++ {
		switch {
		case path[i] == '\\' && quoted:
			i++
		case path[i] == '"':
			quoted = !quoted
		case path[i] == ']' && !quoted:
			return path[1:i], path[i+1:], true
		}
	}
	return "", "", false
}
