// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// printer makes the cells of tables from the printer columns of a definition. The real server's
// convertor cannot be imported without the rest of that server.
type printer struct {
	headers []metav1.TableColumnDefinition

	mu    sync.Mutex // guards paths, which keep state while they are evaluated
	paths []*jsonpath.JSONPath
}

// newPrinter returns the printer of a version. As upstream, one without columns shows the age, and
// the first column whose path cannot be read ends the list.
func newPrinter(v *apiextensionsv1.CustomResourceDefinitionVersion) *printer {
	described := metav1.ObjectMeta{}.SwaggerDoc()
	p := &printer{headers: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: described["name"]}}}
	columns := v.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: described["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	for _, c := range columns {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if path.Parse("{"+c.JSONPath+"}") != nil {
			break
		}
		description := c.Description
		if description == "" {
			description = fmt.Sprintf("Custom resource definition column (in JSONPath format): %s", c.JSONPath)
		}
		p.headers = append(p.headers, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority})
		p.paths = append(p.paths, path)
	}
	return p
}

// Columns returns the columns of the tables of a version: the name, and the printer columns of the
// definition. The slice is shared: do not change it.
func (v *Version) Columns() []metav1.TableColumnDefinition { return v.printer.headers }

// Cells returns the cells of an object in these columns.
func (v *Version) Cells(content map[string]any) []any {
	p := v.printer
	p.mu.Lock()
	defer p.mu.Unlock()
	m, _ := content["metadata"].(map[string]any)
	cells := []any{m["name"]}
	for i, path := range p.paths {
		cells = append(cells, cell(path, p.headers[i+1].Type, content))
	}
	return cells
}

// cell returns what a path finds, in the type of its column, or nil.
func cell(path *jsonpath.JSONPath, kind string, content map[string]any) any {
	found, err := path.FindResults(content)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	value := found[0][0].Interface()
	switch kind {
	case "string":
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return "<invalid>"
			}
			return metatable.ConvertToHumanReadableDateType(metav1.NewTime(at))
		}
	}
	return nil
}
