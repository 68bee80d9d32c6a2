// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An operatorQuestion names the object that an operator is asked about.
type operatorQuestion struct {
	kind            string                  // as the user has written it
	gvk             schema.GroupVersionKind // empty if the API server could not be asked
	namespace, name string
}

// report asks the operator. The error says why there is no report, and a remedy.
func (f *explainFlags) report(ctx context.Context, config *rest.Config, q operatorQuestion) (*explanation.Report, error) {
	if f.endpoint == noEndpoint {
		return nil, errors.New("the operator was not asked; set --endpoint to where it serves its metrics")
	}
	object := journal.Object{Group: q.gvk.Group, Kind: q.gvk.Kind, Namespace: q.namespace, Name: q.name}
	if q.gvk.Empty() {
		var err error
		if object, err = f.known(ctx, config, q); err != nil {
			return nil, err
		}
	}
	query := url.Values{"group": {object.Group}, "kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}}
	answered, err := f.ask(ctx, config, query)
	if err != nil {
		return nil, err
	}
	var report explanation.Report
	if err := f.decode(answered, &report); err != nil {
		return nil, err
	}
	if report.Object.Kind != object.Kind || report.Object.Name != object.Name {
		return nil, fmt.Errorf("what answers at %s is not an operator of this version of ctrlkit: it was asked for %s %s", f.endpoint, object.Kind, object.Name)
	}
	return &report, nil
}

// known returns the object that the user means, among those that the operator knows.
func (f *explainFlags) known(ctx context.Context, config *rest.Config, q operatorQuestion) (journal.Object, error) {
	answered, err := f.ask(ctx, config, url.Values{})
	if err != nil {
		return journal.Object{}, err
	}
	var objects []journal.Object
	if err := f.decode(answered, &objects); err != nil {
		return journal.Object{}, err
	}
	for _, o := range objects {
		if o.Name == q.name && (o.Namespace == q.namespace || o.Namespace == "") && means(q.kind, o) {
			return o, nil
		}
	}
	return journal.Object{}, fmt.Errorf("the operator at %s knows no %s %s%s", f.endpoint, q.kind,
		strings.TrimPrefix(q.namespace+"/"+q.name, "/"), f.leader(ctx, config, answered.header))
}

// ask sends a question to the operator.
func (f *explainFlags) ask(ctx context.Context, config *rest.Config, query url.Values) (answer, error) {
	got, err := f.get(ctx, config, explanation.Path, query, 5*time.Second)
	switch {
	case err != nil:
		return answer{}, err
	case got.code == http.StatusNotFound && !bytes.HasPrefix(got.body, []byte(explanation.Unknown)):
		return answer{}, fmt.Errorf("what answers at %s serves no explanations: an operator needs explain.Serve", f.endpoint)
	case got.code == http.StatusNotFound:
		return answer{}, fmt.Errorf("the operator at %s says: %s%s", f.endpoint, strings.TrimSpace(string(got.body)), f.leader(ctx, config, got.header))
	}
	return got, f.refusal(got, explanation.Path)
}
