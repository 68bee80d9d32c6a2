// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/registry/rest"
)

// newConvertor returns what makes the tables of a version. As upstream, one without columns shows the
// age, and the first column whose path cannot be read ends the list.
func newConvertor(v *apiextensionsv1.CustomResourceDefinitionVersion) rest.TableConvertor {
	columns := v.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
		}}
	}
	convertor, _ := tableconvertor.New(columns) //nolint:errcheck // it says which column ends the list
	return convertor
}

// Columns returns the columns of the tables of a version: the name, and the printer columns of the
// definition. The slice is shared: do not change it.
func (v *Version) Columns() []metav1.TableColumnDefinition {
	return v.table(map[string]any{}).ColumnDefinitions
}

// Cells returns the cells of an object in these columns.
func (v *Version) Cells(content map[string]any) []any { return v.table(content).Rows[0].Cells }

func (v *Version) table(content map[string]any) *metav1.Table {
	table, err := v.convertor.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: content}, nil)
	if err != nil {
		panic(err) // an object has metadata
	}
	return table
}
