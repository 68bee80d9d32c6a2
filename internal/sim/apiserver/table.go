// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// tableKind is the kind of tables: what kubectl prints.
const tableKind = "Table"

// tableFor returns the kind of table that a client wants as an answer, or nil if it wants objects.
func (k *kind) tableFor(accept string) *schema.GroupVersionKind {
	if !strings.Contains(accept, "as="+tableKind) {
		return nil
	}
	a, ok := endpoint{custom: k.definition != nil}.negotiate(accept)
	if !ok || a.as == nil || a.as.Kind != tableKind {
		return nil
	}
	return a.as
}

// withTable makes a table of a good answer if the client wants one.
func (k *kind) withTable(r *Request, response *Response) *Response {
	as := k.tableFor(r.Accept)
	if as == nil || response.Code >= 300 || k.review || r.Subresource == "scale" {
		return response
	}
	rows, err := rowsOption(r)
	if err != nil {
		return fail(err).response()
	}
	t := tableMaker{kind: k, as: *as, object: rows}
	body, err := t.table(response.Body)
	if err != nil {
		return fail(err).response()
	}
	return &Response{Code: response.Code, Header: response.Header, Body: append(body, '\n')}
}

// rowsOption returns which objects a client wants beside the cells of a row.
func rowsOption(r *Request) (metav1.IncludeObjectPolicy, error) {
	switch p := metav1.IncludeObjectPolicy(r.Query.Get("includeObject")); p {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return p, nil
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", p))
	}
}

// tableMaker makes tables of the objects of a kind.
type tableMaker struct {
	kind      *kind
	as        schema.GroupVersionKind
	object    metav1.IncludeObjectPolicy
	noHeaders bool
}

// table returns the table of an object or a list, which are given as JSON. A Status stays what it is.
func (t tableMaker) table(body []byte) ([]byte, error) {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta    `json:"metadata"`
		Items           *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading what the table is made of: %w", err)
	}
	if list.Kind == "Status" && list.APIVersion == "v1" {
		return bytes.TrimSuffix(body, []byte("\n")), nil
	}
	out := &metav1.Table{ListMeta: list.Metadata, Rows: []metav1.TableRow{}}
	out.SetGroupVersionKind(t.as)
	columns := t.columns()
	if !t.noHeaders {
		out.ColumnDefinitions = columns.Headers
	}
	items := []json.RawMessage{body}
	if list.Items != nil {
		items = *list.Items
	}
	for _, item := range items {
		row, err := t.row(columns, item)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the table: %w", err)
	}
	return data, nil
}

// columns returns what the tables of the kind show.
func (t tableMaker) columns() builtin.Columns {
	if t.kind.definition != nil {
		d := t.kind.definition
		return builtin.Columns{Headers: d.Columns(), Cells: func(obj runtime.Object) []any { return d.Cells(obj.(*unstructured.Unstructured).Object) }}
	}
	return builtin.ColumnsOf(t.kind.gvk)
}

func (t tableMaker) row(columns builtin.Columns, item []byte) (metav1.TableRow, error) {
	var obj runtime.Object = &unstructured.Unstructured{}
	if t.kind.definition == nil {
		obj = builtin.New(t.kind.gvk)
	}
	if err := json.Unmarshal(item, obj); err != nil {
		return metav1.TableRow{}, fmt.Errorf("reading an object of the table: %w", err)
	}
	row := metav1.TableRow{Cells: columns.Cells(obj)}
	switch t.object {
	case metav1.IncludeObject:
		row.Object.Raw = t.withKind(item)
	case metav1.IncludeMetadata:
		m, err := meta.Accessor(obj)
		if err != nil {
			return row, fmt.Errorf("reading the metadata of an object of the table: %w", err)
		}
		partial := meta.AsPartialObjectMetadata(m)
		partial.SetGroupVersionKind(t.as.GroupVersion().WithKind("PartialObjectMetadata"))
		row.Object.Object = partial
	}
	return row, nil
}

// withKind returns an item of a list with the kind and version that those of built-in kinds lack.
func (t tableMaker) withKind(item []byte) []byte {
	content := map[string]json.RawMessage{}
	if err := json.Unmarshal(item, &content); err != nil || content["kind"] != nil {
		return item
	}
	content["kind"], content["apiVersion"] = encode(t.kind.gvk.Kind), encode(t.kind.gvk.GroupVersion().String())
	return encode(content)
}

// tableOf returns the function that makes tables of the objects in the events of a watch, or nil if the
// client wants objects. As upstream, only the first table has the definitions of the columns.
func (k *kind) tableOf(r *Request) (func([]byte) []byte, error) {
	as := k.tableFor(r.Accept)
	if as == nil {
		return nil, nil
	}
	rows, err := rowsOption(r)
	if err != nil {
		return nil, err
	}
	t := tableMaker{kind: k, as: *as, object: rows}
	return func(object []byte) []byte {
		body, err := t.table(object)
		if err != nil {
			return object // it was encoded a moment ago
		}
		t.noHeaders = true
		return body
	}, nil
}
